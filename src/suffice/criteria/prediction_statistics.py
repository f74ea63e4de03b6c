"""Statistics that stopping rules use, computed from class probabilities, and the agreement of two classifications."""

from collections.abc import Set
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from suffice.arguments import floats, whole
from suffice.errors import InvalidValueError
from suffice.numerics import Floats

#: Fields about the pool that are computed from class probabilities.
POOL_FIELDS: Final = frozenset(
    {
        *("pool_max_entropy", "pool_uncertainty", "pool_risk", "pool_margin", "pool_confidence_variance"),
        *("pool_changes", "pool_f"),
    }
)
# Number of digits to which probabilities are compared.
_DIGITS: Final = 10


def entropies(probabilities: Any) -> Floats:
    r"""Return the entropy of each row in nats, :math:`H = -\sum_k p_k \log p_k`.

    Args:
        probabilities: ``n x K``.

    Examples:
        >>> entropies([[0.5, 0.5], [1.0, 0.0]]).round(4)
        array([0.6931, 0.    ])
    """
    return np.asarray(_entropy_terms(_probability_table(probabilities)).sum(axis=1))


def pool_facts(probabilities: Any, *, before: Any = None) -> dict[str, Any]:
    """Return the fields of a :class:`Step` that are about the pool: ``Step(n_labelled=31, **pool_facts(p))``.

    Args:
        probabilities: Predictions for the unlabelled items, ``n x K``; at least one item.
        before: Class that was predicted for each of *these* items at the previous step, as a column, ``n``. With it
            the result includes ``pool_changes``.

    Returns:
        ``pool_max_entropy``, ``pool_uncertainty``, ``pool_risk``, ``pool_margin``, ``pool_confidence_variance``,
        ``pool_f``, and, if ``before`` is given, ``pool_changes``.

    Examples:
        >>> facts = pool_facts([[0.9, 0.1], [0.4, 0.6]], before=[0, 0])
        >>> round(facts["pool_risk"], 4), round(facts["pool_margin"], 4), facts["pool_changes"]
        (0.25, 0.2, 1)
    """
    p = _probability_table(probabilities)
    if not len(p):
        raise InvalidValueError(
            "probabilities must have at least one row: the pool is empty, and nothing is left to label"
        )
    if before is not None and np.shape(before) != (len(p),):
        raise InvalidValueError(
            f"before must hold a class for each of the {len(p)} items; its shape is {np.shape(before)}"
        )
    return pool_statistics(p, POOL_FIELDS, before)


def pool_statistics(p: Floats, names: Set[str], before: Any = None) -> dict[str, Any]:
    """Return those of the fields of :func:`pool_facts` that are wanted.

    Args:
        p: Predictions for the unlabelled items, ``n x K``; at least one item.
        names: The wanted fields.
        before: As for :func:`pool_facts`.
    """
    found: dict[str, Any] = {}
    if names & {"pool_max_entropy", "pool_uncertainty"}:
        H, K = entropies(p), p.shape[1]
        found["pool_max_entropy"] = float(H.max())
        found["pool_uncertainty"] = min(float(H.mean() / np.log(K)), 1.0) if K > 1 else 0.0
    if names & {"pool_risk", "pool_confidence_variance"}:
        confidence = p.max(axis=1)
        found["pool_risk"] = max(float(1.0 - confidence.mean()), 0.0)
        found["pool_confidence_variance"] = float(confidence.var())
    if "pool_margin" in names:
        found["pool_margin"] = float(margins(p).min())
    if "pool_f" in names:
        found["pool_f"] = expected_f(p)
    if before is not None and "pool_changes" in names:
        found["pool_changes"] = int(np.count_nonzero(likeliest(p) != np.asarray(before)))
    return {name: value for name, value in found.items() if name in names}


def likeliest(probabilities: Any) -> NDArray[np.intp]:
    """Return the column of the largest probability of each row; the first of those that are equal up to rounding.

    Classes without a label have equal probabilities, whose last digits depend on the processor.

    Examples:
        >>> likeliest(np.array([[0.1, 0.45, 0.45 + 1e-15]])).tolist()
        [1]
    """
    return np.asarray(np.round(probabilities, _DIGITS).argmax(axis=1))


def margins(probabilities: Any) -> Floats:
    """Return the difference between the two largest probabilities of each row; 1 if there is one class only.

    Examples:
        >>> margins([[0.5, 0.3, 0.2]]).round(4)
        array([0.2])
    """
    p = _probability_table(probabilities)
    if p.shape[1] == 1:
        return np.ones(len(p))
    top = np.partition(p, p.shape[1] - 2, axis=1)
    return np.asarray(top[:, -1] - top[:, -2])


def expected_f(probabilities: Any) -> float:
    r"""Return the F score that a classifier expects of its own predictions.

    With ``d`` 1 where a class is predicted and 0 elsewhere, :math:`TP = \sum p d`, :math:`FP = \sum (1-p) d`,
    :math:`FN = \sum p (1-d)` and :math:`F = 2 TP / (2 TP + FP + FN)`. For two classes, F
    is that of the second, positive one. For more, it is the mean over the classes. A class that is neither predicted
    nor expected (0/0) has F = 1.

    Args:
        probabilities: ``n x K``.

    Reference: [LawsSchuetze2008], the F score that a classifier expects.

    Examples:
        >>> round(expected_f([[0.2, 0.8], [0.9, 0.1]]), 4)  # TP .8, FP .2, FN .1
        0.8421
    """
    p = _probability_table(probabilities)
    d = np.zeros_like(p)
    d[np.arange(len(p)), likeliest(p)] = 1.0
    right, wrong = (p * d).sum(axis=0), ((1.0 - p) * d + p * (1.0 - d)).sum(axis=0)
    total = 2.0 * right + wrong
    scores = np.where(total > 0.0, 2.0 * right / np.where(total > 0.0, total, 1.0), 1.0)
    return float(np.clip(scores[-1] if len(scores) == 2 else scores.mean(), 0.0, 1.0))


def worth_facts(probabilities: Any, *, earlier: Any = None, draws: Any = None) -> dict[str, float]:
    r"""Return the fields of a :class:`Step` that :class:`LabelWorth` requires of a classifier, except for counts.

    Args:
        probabilities: Current predictions for a sample of items that stays the same, ``N x K``.
        earlier: The classes predicted for the same items when there were half as many labels: columns of
            ``probabilities``, ``N``.
        draws: Predictions of a committee or of posterior draws, ``N x D x K``, whose average is ``probabilities``.

    Returns:
        ``unlabelled_error``; ``reducible_error``, from the draws; ``recent_gain``, from the earlier predictions;
        ``error_scale`` and ``calibration``, both 1. If only draws or only earlier predictions are given, the one
        estimate is used for both fields.

    Raises:
        InvalidValueError: Neither draws nor earlier predictions are given, or an argument has a wrong shape.

    Examples:
        >>> facts = worth_facts([[0.9, 0.1], [0.4, 0.6]], earlier=[0, 0])
        >>> {name: round(value, 3) for name, value in facts.items() if value != 1.0}
        {'unlabelled_error': 0.25, 'reducible_error': 0.1, 'recent_gain': 0.1}
    """
    p = _probability_table(probabilities)
    rows = np.arange(len(p))
    if earlier is None and draws is None:
        raise InvalidValueError("worth_facts requires earlier, draws, or both")
    gain = reducible = 0.0
    if earlier is not None:
        codes = np.asarray(earlier)
        if codes.shape != (len(p),) or codes.dtype.kind not in "iu" or codes.min() < 0 or codes.max() >= p.shape[1]:
            raise InvalidValueError(f"earlier must hold a column of probabilities, 0 to {p.shape[1] - 1}, for each row")
        gain = max(0.0, float((p.max(axis=1) - p[rows, codes]).mean()))
    if draws is not None:
        drawn = np.asarray(draws, dtype=np.float64)
        if drawn.ndim != 3 or drawn.shape[::2] != p.shape:
            raise InvalidValueError(f"draws must be of shape {len(p)} x D x {p.shape[1]}, not {drawn.shape}")
        reducible = max(0.0, float((drawn.max(axis=2).mean(axis=1) - drawn.mean(axis=1).max(axis=1)).mean()))
    return {
        "unlabelled_error": float(1.0 - p.max(axis=1).mean()),
        "reducible_error": gain if draws is None else reducible,
        "recent_gain": reducible if earlier is None else gain,
        "error_scale": 1.0,
        "calibration": 1.0,
    }


def relevance_facts(probabilities: Any, labelled: Any) -> dict[str, Any]:
    """Return the fields of a :class:`Step` that :class:`QuantCI` requires.

    Args:
        probabilities: Probability of the positive class of each item by the current model, labelled and unlabelled
            items, ``N``.
        labelled: Whether each item is labelled, ``N`` flags.

    Returns:
        ``expected_found``, ``found_variance``, ``expected_missed`` and ``missed_variance``.

    Raises:
        InvalidValueError: They are not probabilities, or not one flag for each.

    Examples:
        >>> facts = relevance_facts([0.9, 0.8, 0.5, 0.1], [True, True, False, False])
        >>> {name: round(value, 3) for name, value in facts.items()}
        {'expected_found': 1.7, 'found_variance': 0.25, 'expected_missed': 0.6, 'missed_variance': 0.34}
    """
    p, flags = floats(probabilities, "probabilities"), np.asarray(labelled)
    if p.ndim != 1 or not (p >= -1e-6).all() or not (p <= 1.0 + 1e-6).all():
        raise InvalidValueError("probabilities must hold a number from 0 to 1 for each item")
    if flags.shape != p.shape or flags.dtype.kind != "b":
        raise InvalidValueError(f"labelled must hold True or False for each of the {len(p)} items")
    p = np.clip(p, 0.0, 1.0)
    variance = p * (1.0 - p)
    return {
        "expected_found": float(p[flags].sum()),
        "found_variance": float(variance[flags].sum()),
        "expected_missed": float(p[~flags].sum()),
        "missed_variance": float(variance[~flags].sum()),
    }


def selected_losses(p: Floats, codes: NDArray[Any]) -> dict[str, float]:
    """Return the losses of labels under the predictions before they were learned, and the expected cross entropy.

    Args:
        p: Predictions, ``k x K``.
        codes: Columns of the labels; -1 for a new class. A new class is predicted wrong. It, or a label of probability
            0, counts as one of probability 1e-6 in the cross entropy.

    Returns:
        The share of wrong predictions, the mean cross entropy, and its expectation, as fields of a step.

    Examples:
        >>> losses = selected_losses(np.array([[0.5, 0.5], [0.25, 0.75]]), np.array([1, 1]))
        >>> {name: round(value, 3) for name, value in losses.items()}
        {'selected_wrong': 0.5, 'selected_loss': 0.49, 'selected_expected_loss': 0.628}
    """
    given = np.where(codes >= 0, p[np.arange(len(p)), codes], 0.0)
    return {
        "selected_wrong": float(np.mean(likeliest(p) != codes)),
        "selected_loss": float(-np.log(np.maximum(given, 1e-6)).mean()),
        "selected_expected_loss": float(entropies(p).mean()),
    }


def committee_agreement(votes: Any, n_classes: int) -> float:
    r"""Return the agreement of a committee: 1 minus the normalised vote entropy, averaged over items.

    .. math:: 1 + \frac{1}{n \log \min(K, C)} \sum_i \sum_k \frac{V_{ik}}{C} \log \frac{V_{ik}}{C}

    for ``V`` votes out of ``C`` members: 1 if all votes are equal, 0 if they are spread as evenly as possible.

    Args:
        votes: The class that each member votes for, as a whole number from 0, ``C x n``.
        n_classes: ``K``.

    Reference: [TomanekHahn2008], the normalised vote entropy.

    Examples:
        >>> round(committee_agreement([[0, 1], [0, 0]], n_classes=2), 4)
        0.5
    """
    codes = np.asarray(votes)
    if codes.ndim != 2 or not codes.size or codes.dtype.kind not in "iu":
        raise InvalidValueError(
            "votes must be classes as whole numbers, with one row per member and one column per item"
        )
    members, items = codes.shape
    most = min(int(n_classes), members)
    if codes.min() < 0 or codes.max() >= n_classes:
        raise InvalidValueError(f"votes must be from 0 to {n_classes - 1}, the number of classes minus 1")
    if most < 2:
        return 1.0
    counts: NDArray[Any] = np.zeros((items, int(n_classes)))
    np.add.at(counts, (np.tile(np.arange(items), members), codes.ravel()), 1.0)
    disagreement = _entropy_terms(counts / members).sum(axis=1).mean() / np.log(most)
    return float(np.clip(1.0 - disagreement, 0.0, 1.0))


def _entropy_terms(p: Floats) -> Floats:
    """Return ``-p log p`` elementwise, 0 at 0. Rounding may leave a probability slightly outside 0 to 1."""
    # Imported here, so that `import suffice` loads numpy only.
    from scipy.special import entr

    return np.asarray(entr(np.clip(p, 0.0, 1.0)))


def _probability_table(probabilities: Any) -> Floats:
    p = floats(probabilities, "probabilities")
    if p.ndim != 2 or p.shape[1] < 1:
        raise InvalidValueError(f"probabilities must be a table with one row per item; its shape is {p.shape}")
    # In half precision the sum may differ from 1 by this much.
    if not (p >= -1e-6).all() or not (np.abs(p.sum(axis=1) - 1.0) < 1e-2).all():
        raise InvalidValueError("probabilities must be numbers of at least 0, and each row must add up to 1")
    return p


def cohen_kappa(a: Any, b: Any) -> float:
    r"""Return the agreement of two classifications of the same items beyond chance.

    .. math:: \kappa = \frac{p_o - p_e}{1 - p_e}, \qquad p_o = \frac{1}{n} \sum_i [a_i = b_i],
              \qquad p_e = \sum_k \frac{n_k(a)}{n} \frac{n_k(b)}{n},

    with :math:`n_k` the number of items in class ``k``. It is from -1 to 1. If both put every item into the same single
    class (0/0), it is 1.

    Args:
        a: Class of each item, as a whole number from 0, ``n``.
        b: Class of each item in the other classification, ``n``.

    Raises:
        InvalidValueError: They are not classes of the same items, or there are no items.

    Reference: [Cohen1960].

    Examples:
        >>> round(cohen_kappa([0, 0, 1, 1], [0, 0, 1, 0]), 4)
        0.5
        >>> cohen_kappa([1, 1, 1], [1, 1, 1])
        1.0
    """
    a, b = _classes(a, "a"), _classes(b, "b")
    _require_same_items(a, b)
    n, k = len(a), max(int(a.max()), int(b.max())) + 1
    # Both terms times n squared, as integers, so that only the division rounds.
    agreed = n * int(np.count_nonzero(a == b))
    chance = int(np.bincount(a, minlength=k) @ np.bincount(b, minlength=k))
    return 1.0 if chance == n * n else (agreed - chance) / (n * n - chance)


def f_change(a: Any, b: Any, n_classes: int) -> float:
    r"""Return the difference of two classifications of the same items, as a change of the F score.

    .. math:: 1 - \frac{2 n_{11}}{2 n_{11} + n_{10} + n_{01}}

    with :math:`n_{11}` the number of items that are positive in both, :math:`n_{10}` and :math:`n_{01}` in one only.
    For two classes, the second one is positive. For more, it is the mean over the classes, each taken as positive. A
    class that is in neither (0/0) counts as unchanged: 0.

    Args:
        a: Class of each item, as a whole number from 0, ``n``.
        b: Class of each item in the other classification, ``n``.
        n_classes: Number of classes.

    Raises:
        InvalidValueError: They are not classes of the same items, there are no items, or a class is ``n_classes`` or
            more.

    Reference: [AltschulerBloodgood2019], for two classes; the mean over more is ours.

    Examples:
        >>> round(f_change([0, 1, 1, 1], [0, 1, 1, 0], n_classes=2), 4)
        0.2
        >>> f_change([0, 0], [0, 0], n_classes=2)
        0.0
    """
    a, b, k = _classes(a, "a"), _classes(b, "b"), whole(n_classes, "n_classes", least=1)
    _require_same_items(a, b)
    if max(a.max(), b.max()) >= k:
        raise InvalidValueError(
            f"n_classes is {k}, so classes must be from 0 to {k - 1}; one is {max(a.max(), b.max())}"
        )
    both = np.bincount(a[a == b], minlength=k)
    either = np.bincount(a, minlength=k) + np.bincount(b, minlength=k)
    changes = np.divide(either - 2 * both, either, out=np.zeros(k), where=either > 0)
    return float(changes[1] if k == 2 else changes.mean())


def _classes(value: Any, name: str) -> NDArray[np.intp]:
    array = np.asarray(value)
    if array.ndim != 1 or not array.size or array.dtype.kind not in "iu" or array.min() < 0:
        raise InvalidValueError(f"{name} must hold the class of each item, whole numbers from 0, at least one")
    return array.astype(np.intp, copy=False)


def _require_same_items(a: NDArray[np.intp], b: NDArray[np.intp]) -> None:
    if len(a) != len(b):
        raise InvalidValueError(f"a and b must be classes of the same items; a has {len(a)} items and b has {len(b)}")
