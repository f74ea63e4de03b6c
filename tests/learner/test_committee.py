"""Committees of any classifier."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from suffice.criteria import committee_agreement
from suffice.errors import InvalidValueError
from suffice.learner import bagged_votes


def test_a_committee_agrees_where_classes_are_apart_and_not_where_they_mix() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = (X[:, 0] + 0.5 * rng.normal(size=200) > 0).astype(int)
    near, far = np.column_stack([0.1 * rng.normal(size=50), rng.normal(size=50)]), np.array([[5.0, 0.0], [-5.0, 0.0]])
    close, classes = bagged_votes(DecisionTreeClassifier(random_state=0), X, y, near, seed=1)
    apart, _ = bagged_votes(DecisionTreeClassifier(random_state=0), X, y, far, seed=1)
    assert committee_agreement(close, classes) < 0.7
    assert committee_agreement(apart, classes) > 0.9
    assert close.shape == (10, 50)


def test_votes_are_seeded_and_are_those_of_members_fitted_on_labels_drawn_again() -> None:
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(40, 3)), np.repeat(["no", "yes"], 20)
    votes, _ = bagged_votes(LogisticRegression(), X, y, X, members=2, seed=5)
    again, _ = bagged_votes(LogisticRegression(), X, y, X, members=2, seed=5)
    assert np.array_equal(votes, again)
    draws = np.random.default_rng(5)
    rows = np.concatenate([draws.choice(np.arange(0, 20), size=20), draws.choice(np.arange(20, 40), size=20)])
    first = LogisticRegression().fit(X[rows], y[rows]).predict(X)
    assert np.array_equal(votes[0], (first == "yes").astype(int))


def test_a_rare_class_is_in_every_member() -> None:
    X, y = np.arange(30.0)[:, None], np.array([0] * 29 + [7])
    votes, classes = bagged_votes(DecisionTreeClassifier(random_state=0), X, y, [[0.0], [29.0]], members=5)
    assert classes == 2
    assert votes.tolist() == [[0, 1]] * 5


@pytest.mark.parametrize(
    ("y", "words"), [([1, 1, 1], "1 class$"), ([0, 1], r"shape \(2,\)"), ([[0], [1], [0]], r"shape \(3, 1\)")]
)
def test_labels_that_make_no_committee_are_refused(y: list[int], words: str) -> None:
    with pytest.raises(InvalidValueError, match=words):
        bagged_votes(LogisticRegression(), np.zeros((3, 1)), y, [[0.0]])
