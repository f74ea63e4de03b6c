"""`suffice run --of all`: labels until a goal for all labels is guaranteed, and the file of final labels."""

import csv
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from typer.testing import CliRunner

from suffice.cli.app import app
from suffice.cli.rule_options import ModelName, RunModelName, share_of
from suffice.errors import InvalidValueError
from tests.processes import run_suffice

RUN = CliRunner()
#: What other programs rely on.
KEYS = {"guaranteed", "rows", "labelled_by_people", "predicted", "wrong_at_most", "confidence_level", "true_wrong"}


def write(name: str, names: Any, rows: Any) -> str:
    with Path(name).open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(names)
        writer.writerows(rows)
    return name


def cancer(name: str = "cancer.csv", *, extra: str = "note") -> str:
    """A table of classes with numbers that are written in their own way, a text, and two rows without a target."""
    data = load_breast_cancer()
    kinds = ["malignant" if target == 0 else "benign" for target in data.target]
    kinds[5] = kinds[77] = ""
    rows = [
        [f"{k:04}", *(f"{value:.3e}" for value in values[:8]), f"row, {k}", kind]
        for k, (values, kind) in enumerate(zip(data.data, kinds, strict=True))
    ]
    return write(name, ["id", *data.feature_names[:8], extra, "kind"], rows)


def diabetes() -> str:
    data = load_diabetes()
    rows = np.column_stack([data.data, data.target])
    return write("diabetes.csv", [*data.feature_names, "progression"], rows.tolist())


def result(*arguments: str) -> dict[str, Any]:
    done = RUN.invoke(app, ["run", *arguments, "--of", "all", "--json"])
    assert done.exit_code == 0, (done.output, done.exception)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_classes_as_json_and_the_final_file() -> None:
    name = cancer()
    found = result(name, "--target", "kind", "--at-most", "5%", "--model", "logistic", "--final", "final.csv")
    assert set(found) >= KEYS
    assert (found["guaranteed"], found["rows"], found["confidence_level"]) == (True, 567, 0.95)
    assert found["labelled_by_people"] + found["predicted"] == 567
    assert found["labelled_by_people"] < 300
    assert found["true_wrong"] <= found["wrong_at_most"] == 28
    assert (found["model"], found["of"], found["at_most"]) == ("logistic", "all", 0.05)
    assert found["guarantee"]["wrong_at_most"] == 28
    assert found["final"] == "final.csv"
    assert found["planned"][0]["n_labelled"] == 10
    before, final = (pd.read_csv(each, dtype=str, keep_default_na=False) for each in (name, "final.csv"))
    assert list(final) == [*before, "label", "source", "probability"]
    assert (final[list(before)] == before).all(axis=None)
    known = final["kind"] != ""
    assert (final.loc[~known, ["label", "source", "probability"]] == "").all(axis=None)
    people = known & final["source"].isin(["person", "check"])
    assert people.sum() == found["labelled_by_people"]
    assert (final["source"] == "check").sum() == found["in_check"]
    assert (final.loc[people, "label"] == final.loc[people, "kind"]).all()
    assert (final.loc[known, "label"] != final.loc[known, "kind"]).sum() == found["true_wrong"]
    by_model = final["source"] == "model"
    assert by_model.sum() == found["predicted"]
    assert final.loc[by_model, "probability"].astype(float).between(0.5, 1.0).all()
    assert (final.loc[people, "probability"] == "").all()


def test_words() -> None:
    done = RUN.invoke(
        app, ["run", cancer(), "--target", "kind", "--at-most", "10%", "--of", "all", "--final", "f.jsonl"]
    )
    assert done.exit_code == 0, done.output
    said = done.stdout.replace("\u00a0", " ")
    assert "model: the best of 3 on the labels so far (logistic, kernel, forest); 567 rows to label" in said
    assert "Labels of people: " in said
    assert "would have been saved." in said
    assert "Guaranteed: at most 56 of all 567 labels are wrong (95 % confidence)." in said
    assert "of the 567 labels are wrong" in said
    assert "Your goal was at most 10 %." in said
    assert "All rows with their final labels: f.jsonl" in said
    rows = [json.loads(line) for line in Path("f.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["id"] for row in rows] == [f"{k:04}" for k in range(569)]
    assert {row["source"] for row in rows} == {"person", "check", "model", None}


def test_a_screening() -> None:
    options = ["--target", "kind", "--positive", "malignant", "--at-most", "10%"]
    found = result(cancer(), *options, "--final", "final.csv")
    assert found.keys() >= {"guaranteed", "rows", "labelled_by_people", "predicted", "confidence_level"}
    assert (found["positive"], found["of"], found["at_most"], found["model"]) == ("malignant", "all", 0.1, "logistic")
    assert (found["guaranteed"], found["rows"]) == (True, 567)
    assert found["labelled_by_people"] < 560
    assert found["recall_at_least"] == found["found"] / (found["found"] + found["missed_at_most"]) >= 0.9
    assert found["true_missed"] <= found["missed_at_most"]
    assert found["true_recall"] == pytest.approx(found["found"] / (found["found"] + found["true_missed"]))
    assert found["guarantee"]["class_name"] == "malignant"
    assert "wrong_at_most" not in found
    final = pd.read_csv("final.csv", dtype=str, keep_default_na=False)
    read, relevant = final["source"].isin(["person", "check"]), final["kind"] == "malignant"
    assert (read & relevant).sum() == found["found"]
    assert ((final["source"] == "model") & relevant).sum() == found["true_missed"]
    first, second, third = (sentence.replace("\u00a0", " ") for sentence in found["sentences"])
    assert first.startswith(f"Read by people: {found['labelled_by_people']} of 567 items, of which ")
    assert second.startswith("Guaranteed: people have found at least 9")
    assert second.endswith("are predictions, which may be wrong.")
    assert third.startswith(f"In truth {found['true_missed']} of the ")
    assert third.endswith("Your goal was at most 10 %.")


def test_numbers_with_a_tolerance() -> None:
    options = ["--target", "progression", "--tolerance", "100", "--at-most", "10%", "--final", "final.parquet"]
    found = result(diabetes(), *options, "--model", "ridge", "--basis", "0")
    assert (found["task"], found["tolerance"], found["model"]) == ("regression", 100.0, "ridge")
    assert found["true_wrong"] <= found["wrong_at_most"] == 44
    final = pd.read_parquet("final.parquet")
    off = (final["label"] - final["progression"].astype(float)).abs() > 100.0
    assert off.sum() == found["true_wrong"]
    assert final["probability"].isna().all()


def test_mistakes_of_people_and_cheaper_answers() -> None:
    options = ["--target", "kind", "--at-most", "5%", "--model", "logistic"]
    found = result(cancer(), *options, "--annotator-error", "2%", "--correction-cost", "0.5")
    assert (found["annotator_error"], found["correction_cost"]) == (0.02, 0.5)
    assert found["guarantee"]["allowed"] == 17
    assert found["wrong_at_most"] <= 28


@pytest.mark.parametrize("model", ["forest", "boosting"])
def test_trees(model: str) -> None:
    found = result(cancer(), "--target", "kind", "--at-most", "10%", "--model", model)
    assert found["model"] == model
    assert found["true_wrong"] <= found["wrong_at_most"]
    assert found["labelled_by_people"] < found["rows"]


def test_trees_without_a_goal() -> None:
    arguments = ["run", cancer(), "--target", "kind", "--model", "forest", "--batch", "20", "--most", "90", "--json"]
    done = RUN.invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["model"] == "forest"


def test_the_model_is_chosen_by_the_labels() -> None:
    X = np.random.default_rng(0).normal(size=(600, 2)).round(3)
    kinds = np.where(X[:, 0] * X[:, 1] > 0.0, "same", "other")
    name = write("crossed.csv", ["a", "b", "kind"], [[*row, kind] for row, kind in zip(X.tolist(), kinds, strict=True)])
    found = result(name, "--target", "kind", "--at-most", "10%")
    assert found["models"][0] == {"name": "logistic", "n_labelled": 0}
    assert found["model"] in ("kernel", "forest")
    assert result(name, "--target", "kind", "--at-most", "10%", "--model", "auto") == found
    done = RUN.invoke(app, ["run", name, "--target", "kind", "--at-most", "10%", "--of", "all"])
    assert "labels on, the model was " in done.stdout


def test_a_goal_that_only_people_reach() -> None:
    found = result(cancer(), "--target", "kind", "--at-most", "0.1%", "--model", "logistic")
    assert (found["wrong_at_most"], found["true_wrong"], found["guaranteed"]) == (0, 0, True)


def test_percentages_are_exact() -> None:
    assert share_of("2.9%", "--at-most") == 0.029
    assert share_of("0.07%", "--at-most") == 0.0007
    assert [each.value for each in RunModelName] == [*(each.value for each in ModelName), "auto"]


GOAL = ["--at-most", "5%", "--of", "all"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--of", "all"], "--of all needs --at-most"),
        (["--of", "most", "--at-most", "5%"], "--of must be rest or all, not 'most'"),
        (["--of", "all", "--at-most", "5"], "write 5% for 5 percent"),
        ([*GOAL, "--annotator-error", "5%"], "--annotator-error 5% must be below --at-most 5%"),
        ([*GOAL, "--annotator-error", "lots"], "--annotator-error must be a share"),
        ([*GOAL, "--correction-cost", "0"], "--correction-cost must be a number above 0"),
        ([*GOAL, "--tolerance", "2"], "--tolerance is for numbers, and the target is a class"),
        ([*GOAL, "--task", "regression", "--tolerance", "1"], "must hold numbers for regression"),
        ([*GOAL, "--final", "final.docx"], "the name of the final file must end in .csv, .xlsx, .jsonl or .parquet"),
        ([*GOAL, "--final", "missing/final.csv"], "cannot be saved to missing/final.csv"),
        ([*GOAL, "--final", "cancer.csv"], "is the table itself"),
        ([*GOAL, "--mistake-cost", "2"], "--mistake-cost is not used with --of all"),
        ([*GOAL, "--rule", "Budget"], "--rule is not used with --of all"),
        ([*GOAL, "--figure", "run.png"], "--figure is not used with --of all"),
        ([*GOAL, "--save", "run.npz"], "--save is not used with --of all"),
        ([*GOAL, "--most", "50"], "--most cannot be combined with --of all"),
        ([*GOAL, "--test", "0.5"], "--test cannot be combined with --of all"),
        ([*GOAL, "--positive", "other"], "--positive must be a class of the column 'kind'"),
        ([*GOAL, "--positive", "benign", "--recall", "90%"], "--recall cannot be combined with --of all"),
        ([*GOAL, "--positive", "benign", "--annotator-error", "1%"], "--annotator-error does not apply to a screening"),
        ([*GOAL, "--positive", "benign", "--correction-cost", "2"], "--correction-cost does not apply to a screening"),
        ([*GOAL, "--positive", "benign", "--model", "auto"], "--model auto compares models by their errors"),
        ([*GOAL, "--positive", "benign", "--tolerance", "1"], "--tolerance is for numbers"),
        ([*GOAL, "--engine", "dask"], "--engine dask cannot be combined with --of all"),
        ([*GOAL, "--checkpoint", "run.checkpoint"], "--checkpoint cannot be combined with --of all"),
        (["--at-most", "5%", "--final", "final.csv"], "--final is for a goal about all labels; give --of all too"),
        (["--annotator-error", "1%"], "--annotator-error is for a goal about all labels"),
        (["--correction-cost", "0.5", "--of", "rest"], "--correction-cost is for a goal about all labels"),
        (["--model", "auto"], "--model auto is for a goal about all labels"),
    ],
)
def test_bad_options_are_answered_with_a_sentence(options: list[str], said: str) -> None:
    done = RUN.invoke(app, ["run", cancer(), "--target", "kind", *options])
    message = done.stderr or str(done.exception)
    assert said in message
    assert isinstance(done.exception, InvalidValueError), done.exception


def test_numbers_need_a_tolerance() -> None:
    done = RUN.invoke(app, ["run", diabetes(), "--target", "progression", *GOAL])
    assert "--of all for numbers needs --tolerance" in (done.stderr or str(done.exception))


def test_a_column_of_the_final_file_is_in_the_table() -> None:
    done = RUN.invoke(app, ["run", cancer(extra="source"), "--target", "kind", *GOAL, "--final", "final.csv"])
    assert done.exit_code == 0, done.output
    assert "The column source is named source_2, because the table has a column source." in done.output
    with open("final.csv", newline="") as file:
        names = next(csv.reader(file))
    assert names[-3:] == ["label", "source_2", "probability"]
    assert "source" in names


def test_the_final_file_as_a_workbook() -> None:
    openpyxl = pytest.importorskip("openpyxl")
    done = RUN.invoke(app, ["run", cancer(), "--target", "kind", *GOAL, "--final", "final.xlsx"])
    assert done.exit_code == 0, done.output
    rows = list(openpyxl.load_workbook("final.xlsx").active.values)
    assert rows[0][-3:] == ("label", "source", "probability")
    assert len(rows) == 570
    assert {row[-2] for row in rows[1:]} >= {"person", "check", "model"}


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="a file system that nobody may write to")
def test_a_place_that_cannot_be_written_to() -> None:
    done = RUN.invoke(app, ["run", cancer(), "--target", "kind", *GOAL, "--final", f"/proc/{os.getpid()}/final.csv"])
    assert "the final labels cannot be saved to" in (done.stderr or str(done.exception))


def test_the_exit_code_of_a_bad_option() -> None:
    done = run_suffice("run", cancer(), "--target", "kind", "--of", "all")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("suffice: --of all needs --at-most, the share of wrong labels that is acceptable")
