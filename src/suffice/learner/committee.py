"""A committee made of anybody's classifier: the same estimator, each time on labels drawn again."""

from typing import Any

import numpy as np

from suffice.arguments import whole
from suffice.errors import InvalidValueError


def bagged_votes(  # noqa: PLR0913 - all but four by keyword
    estimator: Any, X: Any, y: Any, X_new: Any, *, members: int = 10, seed: int = 0
) -> tuple[Any, int]:
    """Votes of a committee made by bagging, for :func:`suffice.criteria.committee_agreement`.

    Each member is a clone of the estimator, fitted on as many labels as there are, drawn with replacement within each
    class, so that no member lacks one.

    Args:
        estimator: A classifier of scikit-learn's kind; it is not changed.
        X: Inputs that are labelled, ``n x D``.
        y: Their labels, of at least two classes.
        X_new: Inputs to vote on, ``m x D``.
        members: Size of the committee, at least 2.
        seed: Seed of the drawing; the same one gives committees that can be compared from step to step.

    Returns:
        The class that each member votes for, as a number from 0, ``members x m``; and the number of classes.

    Raises:
        InvalidValueError: There are fewer than two classes, or X and y do not fit.

    Reference: [TomanekWermterHahn2007], a committee of classifiers trained on parts of the labels.

    Examples:
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> X, y = np.arange(20.0)[:, None], np.repeat(["a", "b"], 10)
        >>> votes, classes = bagged_votes(DecisionTreeClassifier(random_state=0), X, y, [[0.0], [19.0]], members=3)
        >>> votes.tolist(), classes
        ([[0, 1], [0, 1], [0, 1]], 2)
    """
    from sklearn.base import clone

    inputs, labels = np.asarray(X), np.asarray(y)
    classes = np.unique(labels)
    if labels.ndim != 1 or len(inputs) != len(labels) or len(classes) < 2:
        raise InvalidValueError(
            f"a committee needs one label for each of the {len(inputs)} rows of X, and two classes; y has shape "
            f"{labels.shape} and {len(classes)} class{'es' * (len(classes) != 1)}"
        )
    rng = np.random.default_rng(whole(seed, "seed", least=0))
    places = [np.flatnonzero(labels == label) for label in classes]
    votes = []
    for _ in range(whole(members, "members", least=2)):
        rows = np.concatenate([rng.choice(each, size=len(each)) for each in places])
        fitted = clone(estimator).fit(inputs[rows], labels[rows])
        votes.append(np.searchsorted(classes, fitted.predict(np.asarray(X_new))))
    return np.array(votes), len(classes)
