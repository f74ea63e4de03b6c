"""Stoppers in simulations of ASReview."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.errors import InvalidTypeError, InvalidValueError, MissingInputError
from suffice.integrations import asreview as stoppers
from tests.integrations.snippets import run_snippet

asreview = pytest.importorskip("asreview")

RNG = np.random.default_rng(1)
N = 150
RELEVANT = (RNG.random(N) < 0.12).astype(int)
TEXTS = [
    " ".join(f"word{k}" for k in (RNG.integers(0, 60, 12) if relevant else RNG.integers(40, 300, 12)))
    for relevant in RELEVANT
]
NAMES = [
    "suffice_consecutive_irrelevant",
    "suffice_knee",
    "suffice_poisson_recall",
    "suffice_quantile_recall",
    "suffice_recall_test",
    "suffice_safe",
]


def simulated(stopper: Any, n_query: int = 1, prior: tuple[int, ...] = ()) -> Any:
    import pandas as pd
    from asreview.models.classifiers import NaiveBayes
    from asreview.models.feature_extractors import Tfidf
    from asreview.models.queriers import Max

    records = pd.DataFrame({"title": "", "abstract": TEXTS})
    start = [int(np.flatnonzero(kind == RELEVANT)[0]) for kind in (1, 0)]
    cycle = asreview.ActiveLearningCycle(Max(), NaiveBayes(), None, Tfidf(), n_query=n_query)
    simulation = asreview.Simulate(records, RELEVANT, [cycle], stopper=stopper, print_progress=False)
    simulation.label([*start, *prior])
    simulation.review()
    return simulation


def test_the_snippet() -> None:
    variables = run_snippet("with_asreview")
    stopper, simulation = variables["stopper"], variables["simulation"]
    assert stopper.verdict.stop
    assert stopper.verdict.n_labelled == len(simulation._results) < 600


def test_the_entry_points_are_found() -> None:
    from asreview.extensions import extensions, load_extension

    offered = {each.name for each in extensions("models.stoppers") if each.name.startswith("suffice")}
    assert offered == {"suffice", *NAMES}
    for name in offered:
        assert load_extension("models.stoppers", name).name == name


def test_the_same_rule_stops_where_that_of_asreview_stops() -> None:
    from asreview.models.stoppers import NConsecutiveIrrelevant

    own = simulated(stoppers.ConsecutiveIrrelevantStopper(items=15))
    theirs = simulated(NConsecutiveIrrelevant(15))
    assert own._results["record_id"].tolist() == theirs._results["record_id"].tolist()
    assert len(own._results) < N


@pytest.mark.parametrize("n_query", [1, 7])
def test_live_and_afterwards_are_the_same(n_query: int) -> None:
    """The web interface makes a new stopper each time and gives it all labels."""
    live = stoppers.RecallTestStopper(at_least=0.8)
    results = simulated(live, n_query)._results
    afterwards = stoppers.RecallTestStopper(at_least=0.8)
    assert afterwards.stop(results, RELEVANT)
    assert afterwards.verdicts == live.verdicts
    assert live.verdict is not None
    assert live.verdict.n_labelled == len(results)
    assert "probability" in live.verdict.reason


@pytest.mark.parametrize("name", NAMES)
def test_a_cycle_is_written_and_read_again(name: str, tmp_path: Path) -> None:
    from asreview.extensions import load_extension
    from asreview.models.queriers import Max

    params: dict[str, Any] = {"sample": 14, "at_least": 0.8, "control": list(range(14))} if "quantile" in name else {}
    stopper = load_extension("models.stoppers", name)(**params)
    path = tmp_path / "cycle.json"
    asreview.ActiveLearningCycle(Max(), stopper=stopper).to_file(path)
    again = asreview.ActiveLearningCycle.from_file(path).stopper
    assert type(again) is type(stopper)
    assert again.rule == stopper.rule
    assert again.control == stopper.control


def test_a_composed_rule_in_a_configuration() -> None:
    rule = sf.RecallTest(0.9) | sf.Budget(40)
    stopper = stoppers.RuleStopper(json.loads(json.dumps(stoppers.RuleStopper(rule).get_params()))["rule"])
    assert len(simulated(stopper)._results) == 40


def test_control_items_and_time() -> None:
    control = np.flatnonzero(RELEVANT)[2:10]
    stopper = stoppers.QuantileRecallStopper(control, sample=8, at_least=0.6)
    found = simulated(stopper)._results["record_id"].tolist()
    assert set(control[: stopper.rule.required() - 1]) & set(found)  # type: ignore[attr-defined]
    timed = stoppers.RuleStopper(sf.TimeLimit(10.0))
    results = {"record_id": [1, 2, 3], "label": [0, 1, 0], "time": [100.0, 105.0, 111.0]}
    assert timed.stop(results, range(9))
    assert [verdict.stop for verdict in timed.verdicts] == [False, False, True]


def test_every_record_is_labelled() -> None:
    assert len(simulated(stoppers.RuleStopper(sf.Budget(10_000)), n_query=40)._results) == N


def test_corrected_labels_and_missing_ones() -> None:
    stopper = stoppers.ConsecutiveIrrelevantStopper(items=2)
    results: dict[str, Any] = {"record_id": [4, 5, 6, 7], "label": [1, 0, 0, np.nan]}
    assert stopper.stop(results, range(9))
    assert len(stopper.verdicts) == 3
    assert not stopper.stop({**results, "label": [1, 0, 1, np.nan]}, range(9))
    assert not stopper.stop({"record_id": [], "label": []}, range(9))
    assert stopper.verdict is None


@pytest.mark.slow
def test_the_command(tmp_path: Path) -> None:
    lines = ["record_id,title,abstract,included"]
    lines += [f"{k},,{text},{label}" for k, (text, label) in enumerate(zip(TEXTS, RELEVANT, strict=True))]
    (tmp_path / "records.csv").write_text("\n".join(lines))
    cycle: dict[str, Any] = {"querier": "max", "classifier": "nb", "feature_extractor": "tfidf"}
    cycle |= {"stopper": "suffice_recall_test", "stopper_param": {"at_least": 0.8}}
    (tmp_path / "cycle.json").write_text(json.dumps(cycle))
    command = [sys.executable, "-m", "asreview", "simulate", "records.csv", "--config-file", "cycle.json"]
    done = subprocess.run(
        [*command, "--n-stop", "-1", "--prior-seed", "1", "--n-prior-included", "1", "-o", "out.asreview"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out.asreview").exists()
    assert f"{N}/{N}" not in done.stderr


def test_bad_arguments() -> None:
    with pytest.raises(MissingInputError, match=r"QuantCI requires expected_found.* does not see the model"):
        stoppers.RuleStopper(sf.QuantCI() | sf.Budget(3))
    with pytest.raises(InvalidTypeError, match="rule must be a stopping rule or its state_dict"):
        stoppers.RuleStopper("RecallTest")  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="at_least"):
        stoppers.RecallTestStopper(at_least=2.0)
    with pytest.raises(InvalidValueError, match="control must hold the record ids of the 14 control items"):
        stoppers.QuantileRecallStopper([1, 2], sample=14, at_least=0.8)
    with pytest.raises(InvalidValueError, match=r"labels 0 \(irrelevant\) or 1 \(relevant\), not 2"):
        stoppers.KneeStopper().stop({"record_id": [1], "label": [2]}, range(9))
    with pytest.raises(InvalidValueError, match="2 labels, and data has 1 records"):
        stoppers.KneeStopper().stop({"record_id": [1, 2], "label": [0, 1]}, range(1))
