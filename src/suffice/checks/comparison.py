"""Comparing several columns of predictions on one check, so that keeping the best one is valid."""

from collections.abc import Mapping
from typing import Any

from suffice.checks.guarantee import Guarantee, UnlabelableAs
from suffice.checks.random_check import Check, require_fixed_size
from suffice.errors import InvalidTypeError, InvalidValueError


def compare(
    check: Check,
    predictions: Mapping[str, Any],
    *,
    tolerance: float | None = None,
    unlabelable_as: UnlabelableAs = "wrong",
) -> dict[str, Guarantee]:
    """Guarantee the shares of wrong predictions of several models on one check.

    Each of the K models gets the part ``1 / K`` of the error probability of the check, so that all guarantees hold
    together. The best one may be kept. All predictions must be fixed before the first answer of the check.

    Args:
        check: A complete check of fixed size.
        predictions: For each model, by name: its predictions by item, or in the order of ``check.items``.
        tolerance: Largest acceptable distance between number and prediction; None for classes.
        unlabelable_as: Whether an item that cannot be labelled counts as ``"wrong"`` or is ``"excluded"``.

    Returns:
        The guarantee of each model by name, the best first.

    Raises:
        InvalidTypeError: The check or the predictions are of the wrong type.
        InvalidValueError: There is no model, the check is sequential or not complete, or a prediction is missing.

    Examples:
        >>> import numpy as np
        >>> check = Check.draw(np.arange(4600), size=200, rng=np.random.default_rng(0))
        >>> check = check.tell(dict.fromkeys(check.items, "ham"))
        >>> found = compare(check, {"rules": ["ham"] * 180 + ["spam"] * 20, "forest": ["ham"] * 197 + ["spam"] * 3})
        >>> list(found)
        ['forest', 'rules']
        >>> print(found["forest"])
        At most 4.9 % of the predictions for the 4,400 unlabelled items are wrong (95 % confidence).
    """
    require_fixed_size(check, "to compare models")
    if not isinstance(predictions, Mapping):
        raise InvalidTypeError(
            f"predictions must be a mapping of names to predictions, not {type(predictions).__name__}; for example "
            '{"forest": [...], "logistic": [...]}'
        )
    if not predictions:
        raise InvalidValueError("predictions must have at least one model")
    found = {}
    for name, values in predictions.items():
        if not isinstance(name, str):
            raise InvalidTypeError(f"the name of a model must be a text, not {name!r}")
        if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
            raise InvalidTypeError(
                f"the predictions of {name!r} must be by item or a series, not {type(values).__name__}"
            )
        try:
            found[name] = check.guarantee(
                values, tolerance=tolerance, parts=len(predictions), unlabelable_as=unlabelable_as, model=name
            )
        except InvalidValueError as error:
            if not check.complete:
                raise
            raise InvalidValueError(f"predictions of {name!r}: {error}") from None
    return dict(sorted(found.items(), key=lambda pair: (pair[1].value, pair[1].wrong)))
