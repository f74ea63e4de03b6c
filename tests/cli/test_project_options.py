"""How a project is found, made and gone on with, and a helpful sentence for whatever cannot be."""

import csv
import os
import time
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from suffice.cli.app import app
from suffice.cli.project_options import (
    ProjectModel,
    ProjectOptions,
    login_name,
    opened_project,
    person_name,
    place_of,
)
from suffice.cli.rule_options import BoundName
from suffice.cli.settings_options import settings_of
from suffice.errors import InvalidValueError, MissingExtraError, SufficeError
from suffice.project.events import EventKind
from suffice.project.settings import Settings
from tests.processes import run_suffice

RUN = CliRunner()


def table(name: str = "t.csv", /, rows: int = 30, **columns: Any) -> None:
    rng = np.random.default_rng(0)
    cells = {"a": rng.normal(size=rows).tolist(), "b": rng.normal(size=rows).tolist()} | columns
    with Path(name).open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(cells)
        writer.writerows(zip(*cells.values(), strict=True))


def opened(data: str = "t.csv", /, **options: Any) -> tuple[Settings, str]:
    """Open a project, close it, and return its settings and what was said."""
    output = Console(file=StringIO(), width=1000)
    with opened_project(settings_of(ProjectOptions, data=data, **options), output) as project:
        assert isinstance(output.file, StringIO)
        return project.settings, output.file.getvalue()


def refused(data: str = "t.csv", /, **options: Any) -> str:
    """The sentence that refuses; nothing is left behind."""
    before = sorted(Path().rglob("*"))
    with pytest.raises(SufficeError) as caught:
        opened(data, **options)
    assert sorted(Path().rglob("*")) == before
    return str(caught.value)


def test_a_project_is_made_with_what_was_asked_for_and_gone_on_with() -> None:
    table()
    settings, said = opened(
        classes='no,"yes, indeed"',
        threshold=0.2,
        bound=BoundName.tight,
        average=3,
        seed=7,
        initial=5,
        overlap=0.25,
        opinions=3,
        person="ann",
    )
    assert (settings.overlap, settings.opinions) == (0.25, 3)
    assert said == "Project t.suffice: made, 30 items; labels are 2 classes.\n"
    assert (settings.task, settings.classes, settings.model) == ("classification", ("no", "yes, indeed"), "logistic")
    again, said = opened(person="bob")
    assert said == "Project t.suffice: resumed, 0 of 30 labelled.\n"
    assert again == settings
    assert (settings.random_share, settings.at_most) == (0.35, None)
    assert settings.rule["params"]["average"] == 3
    rule = {"threshold": 0.2, "bound": BoundName.tight, "average": 3}
    same = {"classes": '"yes, indeed",no', **rule, "seed": 7, "overlap": 0.25, "opinions": 3}
    assert opened(**same)[0] == settings
    with pytest.raises(InvalidValueError, match="a rule cannot be changed afterwards"):
        opened(average=4)
    # By its folder, its file, and without the data.
    Path("t.csv").unlink()
    for name in ("t.suffice", "t.suffice/project.sqlite", "t.csv"):
        assert opened(name)[0] == settings


def test_numbers_get_a_gaussian_process_and_labels_that_are_there_are_kept() -> None:
    table(price=[f"{k / 7:.2f}" if k < 12 else "" for k in range(30)])
    settings, said = opened(target="price")
    assert "30 items, 12 of them labelled already; labels are numbers" in said
    assert (settings.task, settings.model, settings.target) == ("regression", "gp", "price")
    with opened_project(ProjectOptions(data="t.csv", person="ann"), Console(file=StringIO())) as project:
        kinds = [event.kind for event in project.events()]
    assert kinds == [EventKind.made, *[EventKind.labelled] * 12, EventKind.resumed]


def test_the_costs_and_the_wanted_error_are_kept() -> None:
    table()
    settings, _ = opened(classes="a,b", label_cost=0.5, mistake_cost=20.0, at_most="5%")
    costs = {"error_cost": None, "label_cost": 0.5, "mistake_cost": 20.0, "tolerance": None}
    assert (settings.rule["rule"], settings.rule["params"], settings.at_most) == ("LabelWorth", costs, 0.05)
    assert opened(label_cost=0.5, mistake_cost=20.0, at_most="0.05")[0] == settings
    assert opened(regression=True, tolerance=3.0, at_most="12", project="n.suffice")[0].at_most == 12.0


def test_classes_that_may_be_missed_are_kept() -> None:
    table()
    assert opened(classes="a,b", may_miss=["b"])[0].may_miss == ("b",)
    assert opened(may_miss=["b"])[0].may_miss == ("b",)


def test_random_items_can_be_switched_off() -> None:
    table()
    assert opened(classes="a,b", random_share=0.0)[0].random_share == 0.0
    assert opened(random_share=0.0)[0].random_share == 0.0


def test_a_file_that_was_changed_since_is_spoken_of() -> None:
    table()
    opened(classes="a,b")
    later = time.time() + 60.0
    os.utime("t.csv", (later, later))
    assert "changes in t.csv since then are not seen" in opened()[1]
    assert "changes" not in opened("t.suffice")[1]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"classes": "a,c"}, "the project t.suffice has the classes a, b; change it with suffice classes"),
        ({"regression": True}, "the project t.suffice has the task classification; --regression cannot be changed"),
        ({"target": "kind"}, "the project t.suffice has the target label; --target cannot be changed"),
        (
            {"model": ProjectModel("gp")},
            "has the model logistic; change it with suffice switch t.suffice --model gp",
        ),
        ({"model": ProjectModel.auto}, "t.suffice was made without --model auto, and has the model logistic"),
        ({"may_miss": ["b"]}, "has classes that may be missed: none; change it on the page, under Settings"),
        ({"seed": 3}, "has the seed none; --seed cannot be changed"),
        ({"initial": 3}, "has initial labels: 10; --initial cannot be changed"),
        ({"overlap": 0.5}, "has the overlap 0.0; change it on the page, under Settings"),
        ({"opinions": 3}, "has opinions per item of the overlap: 2; change it on the page, under Settings"),
        ({"random_share": 0.3}, "has the share of random items 0.35; --random-share cannot be changed"),
        ({"at_most": "5%"}, "has the target error None; change it on the page, under Settings"),
        ({"mistake_cost": 3.0}, "the options ask for LabelWorth(error_cost=None, label_cost=1.0, mistake_cost=3.0"),
        ({"text": "b"}, "has the text column None; --text cannot be changed"),
        ({"threshold": 0.3}, "the options ask for ErrorStability(threshold=0.3"),
        ({"rule": "MaxConfidence"}, "the options ask for MaxConfidence"),
    ],
)
def test_what_contradicts_a_project_is_refused(options: dict[str, object], sentence: str) -> None:
    table()
    opened(classes="a,b")
    found = refused(**options)
    assert sentence in found
    assert "another project with --project" in found or "suffice switch" in found


def test_classes_for_a_project_of_numbers_are_refused() -> None:
    table()
    opened(regression=True)
    assert "the project t.suffice has numbers for labels; --classes cannot be changed" in refused(classes="a,b")


def sql_like() -> dict[str, Any]:
    return {"'; DROP TABLE items; --": ["1"] * 15 + ["2"] * 15, "emoji 🐌": [f"{k % 3}" for k in range(30)]}


def test_columns_like_sql_and_emoji_are_names_like_any_other() -> None:
    table(**sql_like())
    settings, _ = opened(classes="🐌,🦊", target="select * from")
    assert set(sql_like()) <= set(settings.columns)
    assert settings.classes == ("🐌", "🦊")


@pytest.mark.parametrize("megabytes", [1, pytest.param(10, marks=pytest.mark.slow)])
def test_megabytes_in_a_cell_are_answered_or_taken(megabytes: int) -> None:
    table(long=["x" * 1_000_000 * megabytes, *(f"word{k}" for k in range(29))])
    result = RUN.invoke(app, ["label", "t.csv", "--classes", "a,b"], input="q\n")
    assert result.exit_code == 0 or isinstance(result.exception, SufficeError), result.output[:1000]
    assert len(result.output) < 100_000


BAD = [
    ("empty.csv", {"classes": "a,b"}, InvalidValueError, "empty.csv is empty"),
    ("binary.csv", {"classes": "a,b"}, InvalidValueError, "binary.csv is not text"),
    ("nowhere.csv", {"classes": "a,b"}, InvalidValueError, "there is no file nowhere.csv"),
    ("ids.csv", {"classes": "a,b", "id": "a"}, InvalidValueError, "a"),
    ("t.csv", {}, InvalidValueError, "give the classes as --classes a,b,c, or --regression"),
    ("t.csv", {"classes": "a"}, InvalidValueError, "at least two classes are required"),
    ("t.csv", {"classes": 'a,"b'}, InvalidValueError, "--classes"),
    ("t.csv", {"classes": "a,b", "regression": True}, InvalidValueError, "--classes and --regression exclude"),
    ("t.csv", {"classes": "a,b", "rule": "ErrorStabilty"}, InvalidValueError, "Did you mean ErrorStability?"),
    ("t.csv", {"classes": "a,b", "rule": "TimeLimit"}, InvalidValueError, "TimeLimit"),
    ("t.csv", {"classes": "a,b", "rule": "MaxVariance"}, InvalidValueError, "--model logistic does not provide"),
    ("t.csv", {"classes": "a,b", "model": ProjectModel("gp")}, InvalidValueError, "gp is for regression"),
    (
        "t.csv",
        {"classes": "a,b", "model": ProjectModel("forest"), "threshold": 0.1},
        InvalidValueError,
        "--rule ErrorStability requires kl_new_old, kl_old_new, which --model forest does not provide; rules for",
    ),
    (
        "t.csv",
        {"classes": "a,b", "model": ProjectModel("forest"), "tolerance": 1.0},
        InvalidValueError,
        "--tolerance is for numbers",
    ),
    (
        "t.csv",
        {"classes": "a,b", "model": ProjectModel.auto, "at_most": "5%"},
        InvalidValueError,
        "--model auto is for a goal about all labels: give --at-most and --of all too",
    ),
    (
        "t.csv",
        {"classes": "a,b", "may_miss": ["c"]},
        InvalidValueError,
        "--may-miss must be one of the classes 'a', 'b', not 'c'",
    ),
    ("t.csv", {"regression": True, "may_miss": ["a"]}, InvalidValueError, "--may-miss is for classes"),
    (
        "t.csv",
        {"classes": "a,b", "positive": "a", "may_miss": ["b"]},
        InvalidValueError,
        "--may-miss does not go with --positive",
    ),
    ("t.csv", {"classes": "a,b", "threshold": 2.0}, InvalidValueError, "threshold"),
    ("t.csv", {"classes": "a,b", "mistake_cost": 0.0}, InvalidValueError, "--mistake-cost must be a number above 0"),
    ("t.csv", {"classes": "a,b", "tolerance": 1.0}, InvalidValueError, "--tolerance is for numbers"),
    ("t.csv", {"classes": "a,b", "at_most": "7"}, InvalidValueError, "write 7% for 7 percent"),
    ("t.csv", {"regression": True, "at_most": "7%"}, InvalidValueError, "must be a number in units of the target"),
    ("t.csv", {"classes": "a,b", "overlap": 1.5}, InvalidValueError, "--overlap must be a number from 0 to 1"),
    ("t.csv", {"classes": "a,b", "opinions": 1}, InvalidValueError, "--opinions must be a whole number, 2 or more"),
    (
        "t.csv",
        {"classes": "a,b", "random_share": 1.5},
        InvalidValueError,
        "--random-share must be a number from 0 to 1",
    ),
    ("t.csv", {"classes": "a,b", "random_share": -0.1}, InvalidValueError, "number from 0 to 1, not -0.1"),
    ("t.csv", {"classes": "a,b", "random_share": float("nan")}, InvalidValueError, "number from 0 to 1, not nan"),
    ("t.csv", {"classes": "a,b", "initial": 0}, InvalidValueError, "--initial must be a whole number, 1 or more"),
    ("t.csv", {"classes": "a,b", "initial": 31}, InvalidValueError, "--initial must be at most the number of items"),
    ("t.csv", {"classes": "a,b", "seed": -1}, InvalidValueError, "--seed must be a whole number, 0 or more"),
    ("t.csv", {"classes": "a,b", "person": " "}, InvalidValueError, "the name of a person must be"),
    ("t.csv", {"classes": "a,b", "text": "bdoy"}, InvalidValueError, "bdoy"),
    ("t.csv", {"classes": "a,b", "project": "no/such/place"}, SufficeError, "does not exist; name another folder"),
    ("t.csv", {"classes": "a,b", "project": "t.csv/x"}, SufficeError, "does not exist; name another folder"),
    ("t.csv", {"classes": "a,b", "project": "full"}, SufficeError, "the folder holds something else"),
    ("t.csv", {"classes": "a,b", "project": "t.csv"}, SufficeError, "t.csv"),
    ("t.csv", {"classes": "a,b", "project": "mysql://x/y"}, InvalidValueError, "a folder or a PostgreSQL database"),
    ("nothing.suffice", {}, SufficeError, "there is no project in nothing.suffice"),
    ("fake.sqlite", {}, SufficeError, "fake.sqlite is not a project"),
    ("nothing.suffice", {"project": "x"}, InvalidValueError, "is a project, and --project names another"),
]


@pytest.mark.parametrize(("data", "options", "kind", "sentence"), BAD)
def test_bad_input_is_answered_and_leaves_nothing_behind(
    data: str, options: dict[str, object], kind: type[SufficeError], sentence: str
) -> None:
    table()
    table("ids.csv", a=["same"] * 30)
    Path("empty.csv").touch()
    Path("binary.csv").write_bytes(bytes(range(256)) * 50)
    Path("fake.sqlite").write_bytes(b"not a database at all, but long enough to be taken for one" * 20)
    Path("full").mkdir()
    Path("full/something").touch()
    said = refused(data, **options)
    assert sentence in said
    assert "\n" not in said
    with pytest.raises(kind):
        opened(data, **options)


def test_a_read_only_folder_is_told_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    table()
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    assert "is read-only; name another folder with --project FOLDER" in refused(classes="a,b")


def test_a_typo_in_the_target_is_answered_with_the_columns() -> None:
    table(price=["1.5", "2.5"] * 15)
    said = refused(target="prcie")
    assert "prcie" in said
    assert "price" in said


def test_a_project_that_cannot_be_made_leaves_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    table()

    def fail(*_: object, **__: object) -> None:
        raise SufficeError("the disk is full")

    monkeypatch.setattr("suffice.project.create.write_contents", fail)
    assert refused(classes="a,b") == "the disk is full"


def test_without_sqlalchemy_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    table()
    monkeypatch.setattr("suffice.cli.project_options.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"-m pip install .*'sqlalchemy>="):
        opened(classes="a,b")


def test_who_labels_has_a_name_also_where_the_system_knows_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> str:
        raise KeyError("uid not found")

    monkeypatch.setattr("getpass.getuser", unknown)
    assert login_name() == "me"
    assert person_name(None) == "me"
    assert person_name(" Zoë ") == "Zoë"


def test_places_follow_from_the_data() -> None:
    Path("photos").mkdir()
    assert place_of("photos") == ("photos.suffice", False)
    assert place_of("photos/") == ("photos.suffice", False)
    assert place_of("data/mails.parquet") == ("data/mails.suffice", False)
    assert place_of(".") == (f"{Path().absolute()}.suffice", False)
    assert place_of("postgresql://ann@db/mails") == ("postgresql://ann@db/mails", True)


@pytest.mark.parametrize(
    "arguments", [["t.csv", "--classes", "a"], ["t.csv", "--rule", "x"], ["t.csv", "--model", "x"]]
)
def test_the_command_ends_with_a_sentence_and_no_traceback(arguments: list[str]) -> None:
    table()
    found = run_suffice("label", *arguments)
    assert found.returncode == 2
    assert found.stdout == ""
    assert "Traceback" not in found.stderr
    assert not Path("t.suffice").exists()


def test_the_command_that_made_a_project_goes_on_with_it_after_changes(tmp_path: Path) -> None:
    data = tmp_path / "t.csv"
    data.write_text("x\n" + "\n".join(map(str, range(20))), encoding="utf-8")
    text = tmp_path / "how.md"
    text.write_text("# How", encoding="utf-8")
    values = {
        "data": str(data),
        "classes": "a,b",
        "overlap": 0.5,
        "label_cost": 2.0,
        "person": "ann",
        "guidelines": text,
    }
    options = settings_of(ProjectOptions, **values)
    console = Console(quiet=True)
    with opened_project(options, console) as project:
        assert project.settings.guidelines == "# How"
        project.rename_class("a", "c", person="ann")
        project.change_settings({"overlap": 0.1, "label_cost": 3.0}, person="ann")
    text.write_text("# How else", encoding="utf-8")
    with opened_project(options, console) as project:
        assert project.settings.classes == ("c", "b")
        assert project.settings.guidelines == "# How else"
        assert project.setting_changes()[0].person == "ann"
    for changed, words in (
        ({"classes": "a,x"}, "change it with suffice classes; leave it out"),
        ({"overlap": 0.9}, "change it on the page, under Settings; leave it out"),
        ({"label_cost": 9.0}, "costs can be changed on the page, under Settings"),
        ({"guidelines": tmp_path / "none.md"}, "none.md cannot be read: No such file"),
    ):
        with pytest.raises(InvalidValueError, match=words):
            opened_project(settings_of(ProjectOptions, **values | changed), console)
