"""`suffice recommend`: a rule, what to expect of it, and how to use it."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import suffice as sf
from suffice.cli.app import app
from suffice.cli.rule_options import ModelName
from suffice.criteria import Criterion
from suffice.errors import InvalidValueError
from suffice_research.recommendation.compared_rules import catalogue, recommend, recorded_evidence
from suffice_research.recommendation.recommend_command import python_line, run_options
from tests.processes import run_suffice

RUN = CliRunner()
CLASSES = ["--task", "classification", "--error-cost", "2000", "--label-cost", "2"]
NUMBERS = ["--task", "regression", "--error-cost", "2000", "--label-cost", "2"]


def part(typical: float, settings: list[Any] | None = None) -> dict[str, Any]:
    """What is expected of a rule at three ratios; the second is meant."""
    numbers = {"typical": typical, "mean": 2 * typical, "median": typical / 2, "p90": 3 * typical}
    return {"settings": settings, **{name: [9.0, value, 9.0] for name, value in numbers.items()}}


CLASSIFICATION = {
    "LabelWorth": part(0.12),
    "StabilizingPredictions": part(0.2, [0.9, 0.98, 0.99]),
    "MinExpectedError": part(0.3, [0.1, 0.05, 0.01]),
    "Budget": part(1.5, [50, 100, 500]),
    "EntropyMax": part(2.0, [0.3, 0.2, 0.1]),
}
IN_BATCHES = {"LabelWorth": part(0.5), "StabilizingPredictions": part(0.4, [0.8, 0.95, 0.99])}
REGRESSION = {
    "ErrorStability tight": part(0.085, [0.1, 0.05, 0.01]),
    "MaxVariance": part(0.25, [0.5, 0.1, 0.01]),
    "LabelWorth": part(0.4),
}
RUNS = {"logistic": 10, "classification": 10, "gp": 7, "regression": 7}
EVIDENCE = {
    "command": "suffice compare",
    "ratios": [10.0, 1000.0, 100000.0],
    "data": {"logistic": ["wine"], "classification": ["wine"], "gp": ["yacht"], "regression": ["yacht"]},
    "runs": {name: {"1": runs, "10": runs} for name, runs in RUNS.items()},
    "rules": {
        "logistic": {"1": CLASSIFICATION, "10": IN_BATCHES},
        "classification": {"1": CLASSIFICATION, "10": IN_BATCHES},
        "gp": {"1": REGRESSION, "10": REGRESSION},
        "regression": {"1": REGRESSION, "10": REGRESSION},
    },
}


def at_the_second(found: dict[str, Any]) -> dict[str, float]:
    return {name: found[name][1] for name in ("typical", "mean", "median", "p90")}


@pytest.fixture
def _evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice_research.recommendation.compared_rules.recorded_evidence", lambda: EVIDENCE)


def result(*arguments: str) -> dict[str, Any]:
    done = RUN.invoke(app, ["recommend", *arguments, "--json"])
    assert done.exit_code == 0, (done.output, done.exception)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def told(*arguments: str) -> str:
    """What a person is told, in one line."""
    done = RUN.invoke(app, ["recommend", *arguments], env={"COLUMNS": "120"})
    assert done.exit_code == 0, (done.output, done.exception)
    return " ".join(done.output.replace("\u00a0", " ").split())


@pytest.mark.usefixtures("_evidence")
def test_as_json() -> None:
    found = result(*CLASSES, "--model", "logistic")
    assert found == {
        "task": "classification",
        "model": "logistic",
        "error_cost": 2000.0,
        "label_cost": 2.0,
        "mistake_cost": None,
        "unlabelled": None,
        "target_variance": None,
        "batch": 1,
        "given": None,
        "rule": {
            "name": "LabelWorth", "error_cost": 2000.0, "label_cost": 2.0, "mistake_cost": None, "tolerance": None,
        },
        "needs": sorted(sf.LabelWorth().needs()),
        "expected": {"name": "LabelWorth", "setting": None, **at_the_second(CLASSIFICATION["LabelWorth"])},
        "others": [
            {"name": name, "setting": setting, "typical": typical, **at_the_second(CLASSIFICATION[name])}
            for name, setting, typical in (
                ("StabilizingPredictions", 0.98, 0.2),
                ("MinExpectedError", 0.05, 0.3),
                ("Budget", 100, 1.5),
            )
        ],
        "evidence": found["evidence"],
        "python": "sf.LabelWorth(error_cost=2000.0, label_cost=2.0)",
        "run_options": [
            "--task", "classification", "--model", "logistic", "--label-cost", "2", "--error-cost", "2000",
        ],
    }  # fmt: skip
    assert found["evidence"].startswith("On 10 runs with logistic on wine")


@pytest.mark.usefixtures("_evidence")
def test_a_person_is_told_the_rule_the_regret_and_how_to_use_it() -> None:
    shown = told(*CLASSES, "--model", "logistic")
    for words in (
        "Take LabelWorth(error_cost=2000.0, label_cost=2.0). Stop when one more label is expected to be worth less "
        "than it costs",
        "Expected: typically 12 % more expensive than the best stop in hindsight, labels and error together; at most "
        "6.0 % in "
        "half of the runs, at most 36 % in nine of ten. (On average 24 %, ",
        "LabelWorth 12 % 6.0 % 36 % 24 % StabilizingPredictions threshold 0.98 20 % 10 % 60 % 40 %",
        "Budget labels 100 150 % 75 % 450 % 300 %",
        "The rule to take, then the next best over all prices of an error; the numbers are those at this price.",
        "On 10 runs with logistic on wine",
        "rule = sf.LabelWorth(error_cost=2000.0, label_cost=2.0) learner = sf.ActiveLearner(model, X, criterion=rule)",
        "suffice run DATA --target COLUMN --task classification --model logistic --label-cost 2 --error-cost 2000",
    ):
        assert words in shown
    assert "EntropyMax" not in shown
    assert "variance" not in shown


@pytest.mark.usefixtures("_evidence")
def test_others_stand_in_the_order_over_all_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is better at this price, and worse at the two others, comes later."""
    here = {**part(0.05, [0.2, 0.1, 0.01]), "typical": [90.0, 0.05, 90.0]}
    rules = {"classification": {"1": {**CLASSIFICATION, "EntropyMax": here}}}
    monkeypatch.setattr(
        "suffice_research.recommendation.compared_rules.recorded_evidence", lambda: {**EVIDENCE, "rules": rules}
    )
    advice = result(*CLASSES)
    assert advice["rule"]["name"] == "LabelWorth"
    assert [other["name"] for other in advice["others"]] == ["StabilizingPredictions", "MinExpectedError", "Budget"]


@pytest.mark.parametrize(("batch", "rule"), [(1, "LabelWorth"), (3, "LabelWorth"), (4, "StabilizingPredictions")])
@pytest.mark.usefixtures("_evidence")
def test_labels_bought_at_a_time(batch: int, rule: str) -> None:
    found = result(*CLASSES, "--model", "logistic", "--batch", str(batch))
    assert found["batch"] == batch
    assert found["rule"]["name"] == rule
    own = recommend("classification", "logistic", 2000.0, 2.0, batch=batch)
    assert found["expected"]["typical"] == own.regret
    words = [] if batch == 1 else ["--batch", str(batch)]
    costs = ["--label-cost", "2", "--error-cost", "2000"]
    limits = costs if rule == "LabelWorth" else ["--rule", rule, "--threshold", "0.95"]
    assert found["run_options"] == ["--task", "classification", "--model", "logistic", *limits, *words]


@pytest.mark.usefixtures("_evidence")
def test_the_variance_is_passed_on_only_where_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    passed = []

    def noting(*arguments: Any, **options: Any) -> Any:
        passed.append(options["target_variance"])
        return recommend(*arguments, **options)

    monkeypatch.setattr("suffice_research.recommendation.compared_rules.recommend", noting)
    result(*CLASSES)
    result(*NUMBERS)
    result(*NUMBERS, "--target-variance", "900")
    assert passed == [None, None, 900.0]


@pytest.mark.usefixtures("_evidence")
def test_regression_says_what_it_takes_the_variance_to_be() -> None:
    shown = told(*NUMBERS, "--model", "gp")
    assert "Take ErrorStability(bound='tight'). " in shown
    assert "The variance of the target is assumed to be 1: give yours with --target-variance." in shown
    assert "rule = sf.ErrorStability(bound='tight')" in shown
    assert "--task regression --model gp --bound tight --threshold 0.05" in shown
    given = ["--target-variance", "0.01"]
    assert "is assumed to be 1" not in told(*NUMBERS, *given)
    # An error that costs 1000 labels for a unit of 1 costs 10 for a target whose variance is 0.01.
    assert result(*NUMBERS, *given)["expected"]["typical"] == 9.0


@pytest.mark.usefixtures("_evidence")
def test_a_loop_of_ones_own() -> None:
    options = [*CLASSES, "--given", "stop_probabilities, pool_risk"]
    found = result(*options)
    assert found["given"] == ["stop_probabilities", "pool_risk"]
    assert found["rule"]["name"] == "StabilizingPredictions"
    assert found["run_options"] is None
    shown = told(*options)
    assert "verdict = rule.observe(sf.Step(n_labelled=..., stop_probabilities=...))" in shown
    assert "suffice run" not in shown


@pytest.mark.parametrize("fields", ["n_labelled", "pool_max_entropy"])
@pytest.mark.usefixtures("_evidence")
def test_a_loop_that_can_feed_no_rule_better_than_a_budget(fields: str) -> None:
    found = result(*CLASSES, "--given", fields)
    assert found["rule"] == {"name": "Budget", "labels": 100}
    assert [other["name"] for other in found["others"]] == ([] if fields == "n_labelled" else ["EntropyMax"])
    shown = told(*CLASSES, "--given", fields)
    assert "Take Budget(labels=100). " in shown
    assert "did better over all prices than any rule that this loop can feed" in shown
    assert "verdict = rule.observe(sf.Step(n_labelled=...))" in shown


@pytest.mark.usefixtures("_evidence")
def test_a_rule_that_the_command_has_no_options_for(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = {"classification": {"1": {"Budget": part(0.1, [50, 100, 500])}}}
    monkeypatch.setattr(
        "suffice_research.recommendation.compared_rules.recorded_evidence", lambda: {**EVIDENCE, "rules": rules}
    )
    shown = told(*CLASSES)
    assert "rule = sf.Budget(labels=100)" in shown
    assert "suffice run has no options for this rule." in shown


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--error-cost", "0"], "--error-cost must be a number above 0, not 0.0"),
        (["--label-cost", "nan"], "--label-cost must be a number above 0, not nan"),
        (["--target-variance", "0"], "--target-variance must be a number above 0, not 0.0"),
        (["--task", "classification", "--target-variance", "2"], "--target-variance goes with --task regression"),
        (["--batch", "0"], "--batch must be a whole number, 1 or more, not 0"),
        (["--model", "logistic"], "--model logistic is for classification, and --task is regression; use --model gp"),
        (["--model", "dropout"], "--model dropout is for classification"),
        (["--task", "classification", "--model", "gp"], "use --model logistic or kernel or components or dropout"),
        (
            ["--mistake-cost", "2"],
            "--error-cost is the cost of an error as a whole, and --mistake-cost is about",
        ),
        (["--target", "y"], "--target goes with a file; name the file too"),
        (["--given", " , "], "--given must name fields of a suffice.Step, separated by commas; it names none"),
        (["--given", "pool_rsk"], "given names 'pool_rsk', which is no field of a Step. Did you mean pool_risk?"),
    ],
)
@pytest.mark.usefixtures("_evidence")
def test_what_cannot_be_used_gets_a_sentence(options: list[str], words: str) -> None:
    done = RUN.invoke(app, ["recommend", *NUMBERS, *options])
    assert isinstance(done.exception, InvalidValueError), done.exception
    assert words in str(done.exception)
    assert done.output == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--task", "regression", "--label-cost", "1"], "give --unlabelled, or --error-cost, or a file"),
        (["--task", "guess", *NUMBERS[2:]], "regression"),
        ([*NUMBERS[2:]], "name a file and its --target, or say with --task what is predicted"),
        (["no-such.csv", "--target", "y"], "there is no file no-such.csv"),
        (["no-such.csv"], "no-such.csv: name the column to predict with --target"),
        ([*NUMBERS, "--error-cost", "-3"], "suffice: --error-cost must be a number above 0, not -3.0"),
    ],
)
def test_wrong_use_exits_with_2(arguments: list[str], words: str) -> None:
    done = run_suffice("recommend", *arguments, COLUMNS="200")
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "rule",
    [entry.rule(setting) for entry in catalogue() if entry.make for setting in {entry.settings[0], entry.settings[-1]}],
    ids=lambda rule: python_line(rule).removeprefix("sf."),
)
def test_the_python_line_makes_the_rule(rule: Criterion) -> None:
    assert eval(python_line(rule), {"sf": sf}) == rule


@pytest.mark.parametrize(
    ("rule", "options"),
    [
        (sf.LabelWorth(), ""),
        (sf.LabelWorth(0.1, 3.0), "--label-cost 3 --error-cost 0.1"),
        (sf.LabelWorth(mistake_cost=20.0, tolerance=3.5), "--mistake-cost 20 --tolerance 3.5"),
        (sf.ExpectedCost(1e6, 3.0), "--rule ExpectedCost --label-cost 3 --error-cost 1000000"),
        (sf.ExpectedCost(1e6, 3.0, window=4.0), None),
        (sf.ErrorStability(0.3), "--threshold 0.3"),
        (sf.ErrorStability(0.3, bound="tight"), "--bound tight --threshold 0.3"),
        (sf.ErrorStability(0.3, average=10, scale="median"), "--average 10 --scale median --threshold 0.3"),
        (sf.ErrorStability(0.3, calibration_labels=20), "--calibration-labels 20 --threshold 0.3"),
        (sf.ErrorStability.from_cost(1.0, 100.0), None),
        (sf.MaxVariance(0.3), "--rule MaxVariance --threshold 0.3"),
        (sf.ClassificationChange(), "--rule ClassificationChange"),
        (sf.DropInConfidence(7), None),
        (sf.HeldOutPlateau(), None),
        (sf.PacBayes(0.5), None),
    ],
)
def test_options_that_make_the_rule(rule: Criterion, options: str | None) -> None:
    found = run_options(rule)
    assert (None if found is None else " ".join(found)) == options


def test_a_network_calibrates_the_rule_of_the_paper_otherwise() -> None:
    assert run_options(sf.ErrorStability(0.2), ModelName("dropout")) is None
    assert run_options(sf.ErrorStability(0.2, calibration=1), ModelName("dropout")) == ["--threshold", "0.2"]


@pytest.mark.parametrize(
    ("task", "model"),
    [
        ("regression", None),
        ("regression", "gp"),
        ("regression", "ridge"),
        ("classification", None),
        ("classification", "logistic"),
        ("classification", "dropout"),
    ],
)
@pytest.mark.parametrize(("error_cost", "batch"), [("1", "1"), ("1000", "10"), ("10000000", "100")])
def test_with_the_evidence_that_comes_along(task: str, model: str | None, error_cost: str, batch: str) -> None:
    options = ["--task", task, "--error-cost", error_cost, "--label-cost", "1", "--batch", batch]
    found = result(*options, *([] if model is None else ["--model", model]))
    assert found["evidence"].startswith("On ")
    named = {found["expected"]["name"], *(other["name"] for other in found["others"])}
    assert len(named) == 4
    assert "LabelWorth" in named or batch != "1"
    assert python_line(eval(found["python"], {"sf": sf})) == found["python"]
    assert len(recorded_evidence()["ratios"]) > 1


def test_help_has_an_example() -> None:
    shown = " ".join(RUN.invoke(app, ["recommend", "--help"], env={"COLUMNS": "200"}).output.replace("│", " ").split())
    assert "Example: suffice recommend mails.csv --target spam --mistake-cost 20" in shown
    assert "--task classification --mistake-cost 20 --unlabelled 5000" in shown
    assert "Labels that are bought at a time" in shown


def write_table() -> None:
    lines = [f"{n % 7},{n % 11},{'odd' if n % 7 + n % 11 > 8 else 'even'},{n % 7 - n % 11}.5" for n in range(500)]
    Path("my table.csv").write_text("\n".join(["size,weight,kind,number", *lines]))


@pytest.mark.usefixtures("_evidence")
def test_a_file_says_the_task_the_model_and_how_many() -> None:
    write_table()
    options = ["my table.csv", "--target", "kind", "--mistake-cost", "2"]
    found = result(*options)
    assert (found["task"], found["model"], found["unlabelled"], found["mistake_cost"]) == (
        "classification", "logistic", 500, 2.0,
    )  # fmt: skip
    # 500 items at 2 labels each: the second ratio of the evidence, 1000.
    assert found["expected"]["typical"] == 0.12
    assert found["rule"]["mistake_cost"] == 2.0
    assert found["run_options"] == ["--mistake-cost", "2"]
    shown = told(*options, "--ignore", "number")
    for words in (
        "my table.csv: 500 rows with a label, 2 features, target 'kind'",
        "Classification (2 classes); model: Bayesian logistic regression",
        "Costs: 1 for a label, 2 for each wrong prediction among 500 items.",
        "Take LabelWorth(mistake_cost=2.0).",
        "suffice run 'my table.csv' --target kind --ignore number --mistake-cost 2",
    ):
        assert words in shown
    more = result(*options, "--unlabelled", "500000")
    assert (more["unlabelled"], more["expected"]["typical"]) == (500_000, 9.0)


@pytest.mark.usefixtures("_evidence")
def test_a_file_of_numbers_says_the_variance() -> None:
    write_table()
    found = result("my table.csv", "--target", "number", "--ignore", "kind", "--error-cost", "3")
    assert (found["task"], found["model"], found["unlabelled"]) == ("regression", "gp", None)
    assert found["target_variance"] == pytest.approx(17.18, rel=0.01)
    shown = told("my table.csv", "--target", "number", "--ignore", "kind")
    assert "1 for each prediction no better than the mean among 500 items." in shown
    wrong = RUN.invoke(app, ["recommend", "my table.csv", "--target", "kind", "--model", "gp"])
    assert "--model gp is for regression, and --task is classification" in str(wrong.exception)


@pytest.mark.usefixtures("_evidence")
def test_without_a_file_the_number_of_items_is_asked_for() -> None:
    found = result("--task", "classification", "--unlabelled", "1000")
    assert (found["mistake_cost"], found["expected"]["typical"]) == (1.0, 0.12)
    shown = told("--task", "classification", "--unlabelled", "1000")
    assert "Costs: 1 for a label, 1 for each wrong prediction among 1,000 items." in shown


@pytest.mark.usefixtures("_evidence")
def test_where_a_budget_did_best_the_default_rule_is_shown_too(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = {"logistic": {"1": {"Budget": part(0.1, [50, 100, 500])}}}
    monkeypatch.setattr(
        "suffice_research.recommendation.compared_rules.recorded_evidence", lambda: {**EVIDENCE, "rules": rules}
    )
    write_table()
    shown = told("my table.csv", "--target", "kind", "--mistake-cost", "2")
    assert "did better over all prices than any rule; it knows nothing of your data." in shown
    assert "suffice run has no options for this rule. With the default rule and the same costs, on this table:" in shown
    assert "suffice run 'my table.csv' --target kind --mistake-cost 2" in shown
