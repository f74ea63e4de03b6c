"""Bounds held against the truth: by hand on a few items, and along real runs."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import suffice as sf
from suffice.bounds import risk_gap, total_variation
from suffice.errors import InvalidValueError, MissingInputError
from suffice.models import BayesianLogistic
from suffice.trace import Relearned, Trace
from suffice_research.compare.judging import BoundCoverage, class_columns, coverage_summary, guarantee_rows, guarantees
from suffice_research.compare.scoring import RunCase
from tests.research.compare.compare_runs import VALIDATION, real_run, stop_set, task

#: Probabilities of the second class on four items after each of four steps; the truth is 1, 1, 0, 0.
SECOND = np.array([[0.75, 0.25, 0.25, 0.0], [0.75, 0.75, 0.25, 0.0], [0.75, 0.75, 0.75, 0.0], [0.75, 0.75, 0.75, 0.0]])
LABELS = np.array([1, 1, 0, 0])


def small(kl: float = 0.02, **measures: Any) -> Trace:
    p = np.stack([1.0 - SECOND, SECOND], axis=2)
    trace = replace(Trace.of_divergences([kl] * 4, [kl] * 4, first=4), initial=np.array([2, 0]))
    return replace(trace, indices=np.array([1, 3, 1, 3]), measures={"stop_probabilities": p, **measures})


def by_name(found: list[BoundCoverage]) -> dict[str, BoundCoverage]:
    return {each.bound: each for each in found}


def test_the_bounds_on_a_change_by_hand() -> None:
    # The error: (.25 + .75 + .25 + 0) / 4, then .1875, .3125 and .3125: it changes by .125, .125 and 0.
    found = by_name(guarantees(small(), LABELS, np.arange(4)))
    tight = found["ErrorStability tight"]
    assert (tight.steps, tight.informative) == (3, 1.0)
    assert tight.held == pytest.approx(1 / 3)
    assert tight.ratio == pytest.approx(total_variation(0.02, 0.02) / 0.125)
    paper = found["ErrorStability paper"]
    assert paper.held == 1.0
    assert paper.ratio == pytest.approx(2.0 * risk_gap(0.02) / 0.125)


def test_the_bound_on_f_by_hand() -> None:
    # Predictions of the second class: {0}, {0, 1}, {0, 1, 2}, the same; F is 2/3, 1, 4/5, 4/5.
    # Kappas: 3 of 4 agree and 2 of 4 would by chance, 0.5; the same, 0.5; 1. Bounds 4, 4 and 0.
    found = by_name(guarantees(small(), LABELS, np.arange(4)))["KappaCertificate"]
    assert (found.steps, found.held) == (3, 1.0)
    assert found.informative == pytest.approx(1 / 3)
    assert found.ratio == pytest.approx(np.median([4.0 / (1 / 3), 4.0 / (1 / 5)]))


def test_the_pac_bayes_bound_by_hand() -> None:
    trace = small(train_error=np.array([0.0, 0.0, 0.5, 0.5]), kl_prior=np.zeros(4))
    found = by_name(guarantees(trace, LABELS, np.arange(4)))["PacBayes"]
    n = np.arange(5, 9)
    bounds = np.array([0.0, 0.0, 0.5, 0.5]) + np.sqrt(np.log(2.0 * np.sqrt(n) / 0.05) / (2.0 * n))
    truth = np.array([0.3125, 0.1875, 0.3125, 0.3125])
    assert found.steps == 4
    assert found.held == np.mean(truth <= bounds)
    assert found.ratio == pytest.approx(np.median(bounds / truth))


def test_no_agreement_beyond_chance_bounds_nothing() -> None:
    p = np.array([[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]])
    trace = replace(small(), n_labelled=np.array([5, 6]), indices=np.array([1, 3]), measures={"stop_probabilities": p})
    trace = replace(trace, kl_new_old=np.full(2, 0.02), kl_old_new=np.full(2, 0.02))
    found = by_name(guarantees(trace, LABELS, [0, 2]))["KappaCertificate"]
    assert (found.held, found.informative, found.ratio) == (1.0, 0.0, None)


def test_steps_that_changed_the_prior_are_left_out() -> None:
    known = Relearned(1, np.full(2, 0.02), np.full(2, 0.02))
    found = by_name(guarantees(replace(small(), relearned=(known,)), LABELS, np.arange(4)))
    assert found["ErrorStability tight"].steps == 2
    assert found["ErrorStability tight"].held == 0.5


def test_classes_in_the_order_in_which_they_were_met() -> None:
    trace = replace(Trace.of_divergences([0.1] * 3, [0.1] * 3, first=2), initial=np.array([3, 1]))
    labels = np.array(["d", "c", "b", "a", "e"])
    batches = replace(trace, indices=np.array([[0, 2], [4, 1], [1, 2]]), n_labelled=np.array([4, 6, 8]))
    assert class_columns(batches, labels) == ["a", "c", "b", "d", "e"]


def test_a_class_that_was_never_met_is_always_wrong() -> None:
    labels = np.array([1, 1, 0, 7])
    trace = replace(small(), indices=np.array([1, 1, 1, 1]))
    error = [(0.25 + 0.75 + 0.25 + 1.0) / 4, (0.25 + 0.25 + 0.25 + 1.0) / 4]
    found = by_name(guarantees(trace, labels, np.arange(4)))["ErrorStability tight"]
    assert found.ratio == pytest.approx(0.1 / (error[0] - error[1]))
    given_classes = by_name(guarantees(trace, labels, np.arange(4), classes=[0, 1]))
    assert given_classes["ErrorStability tight"] == found


@given(st.integers(0, 10**6))
def test_the_bound_on_f_always_holds(seed: int) -> None:
    """A theorem, so that this tests the code: any predictions, any labels."""
    rng = np.random.default_rng(seed)
    size, steps = int(rng.integers(2, 30)), 8
    second = rng.random((steps, size)) < rng.random()
    flips = rng.random((steps, size)) < 0.1
    second = np.where(np.arange(steps)[:, None] == 0, second, second[0] ^ flips).astype(float)
    labels = np.concatenate([[0, 1], (rng.random(size) < rng.random()).astype(int)])
    trace = replace(
        Trace.of_divergences(np.ones(steps), np.ones(steps), first=2),
        indices=np.zeros(steps, dtype=np.intp),
        measures={"stop_probabilities": np.stack([1.0 - second, second], axis=2)},
    )
    assert by_name(guarantees(trace, labels, 2 + np.arange(size)))["KappaCertificate"].held == 1.0


@pytest.mark.parametrize("name", ["logistic", "logistic batch"])
def test_bounds_along_real_runs(name: str) -> None:
    trace, labels = real_run(name), task("classification").y_pool[VALIDATION:]
    found = by_name(guarantees(trace, labels, stop_set(len(labels))))
    assert list(found) == ["ErrorStability paper", "ErrorStability tight", "PacBayes", "KappaCertificate"]
    changes = len(trace) - 1 - len(trace.relearned)
    assert [each.steps for each in found.values()] == [changes, changes, len(trace), changes]
    assert all(each.held == 1.0 for each in found.values())
    assert found["ErrorStability paper"].ratio > 4.0 * found["ErrorStability tight"].ratio > 4.0  # type: ignore[operator]


def test_columns_are_those_of_the_recorded_probabilities() -> None:
    """Three classes, one of them met late: what is told to be right is right more often than not."""
    rng = np.random.default_rng(0)
    labels = np.repeat([2, 0, 1], 60)
    X = 4.0 * np.eye(3)[labels] + rng.normal(size=(180, 3))
    drawn = sf.StopSet.draw(180, 90, seed=1)
    trace = sf.simulate(
        BayesianLogistic(1.0),
        X,
        labels,
        initial=[0, 1, 60],
        steps=40,
        record="all",
        stop_set=drawn,
        X_test=X,
        y_test=labels,
    )
    columns = class_columns(trace, labels)
    assert columns == [0, 2, 1]
    p = trace.measures["stop_probabilities"][-1]
    assert np.mean(np.array(columns)[p.argmax(axis=1)] == labels[drawn.indices]) > 0.9
    found = by_name(guarantees(trace, labels, drawn))
    # The bound on F is for two classes.
    assert list(found) == ["ErrorStability paper", "ErrorStability tight", "PacBayes"]
    assert found["ErrorStability tight"].held > 0.9


def test_what_is_missing_is_said() -> None:
    with pytest.raises(MissingInputError, match="did not record stop_probabilities"):
        guarantees(real_run("gp"), LABELS, [0])
    with pytest.raises(InvalidValueError, match="with 4 items"):
        guarantees(small(), LABELS, [0, 1])


def test_runs_together() -> None:
    a, b = (BoundCoverage("one", 10, held, 0.5, ratio) for held, ratio in ((1.0, 2.0), (0.4, None)))
    cases = [RunCase("x", "logistic", 0), RunCase("x", "logistic", 1), RunCase("y", "logistic", 0)]
    (found,) = coverage_summary(list(zip(cases, ([a], [b], [a]), strict=True)))
    assert found == {
        "bound": "one",
        "held": pytest.approx(0.85),
        "least_held": 0.4,
        "informative": 0.5,
        "ratio": 2.0,
        "data_sets": 2,
        "runs": 3,
    }
    (row,) = guarantee_rows(cases[1], [b])
    assert (row["data"], row["seed"], row["bound"], row["ratio"]) == ("x", 1, "one", None)
