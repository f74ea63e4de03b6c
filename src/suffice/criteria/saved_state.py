"""Checks of the state of a stopping rule that was saved as JSON."""

import math
import types
import typing
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal, Union, get_args, get_origin

from suffice.errors import InvalidValueError


def annotations_of(kind: type) -> dict[str, Any]:
    """Return the annotations of a class by field; none if they cannot be evaluated.

    Examples:
        >>> from suffice.criteria import Patience
        >>> annotations_of(Patience)["in_a_row"]
        <class 'int'>
    """
    try:
        return typing.get_type_hints(kind)
    except Exception:
        return {}


def require_type(value: Any, annotation: Any, name: str, *, counts: bool) -> None:
    """Refuse a value that does not fit the annotation of its field.

    Numbers must be finite. ``True`` is not a number. A whole number fits where a float is expected. An annotation that
    does not describe JSON values or classes is not checked.

    Args:
        value: The value.
        annotation: Type of the field.
        name: Name of the field, for the error.
        counts: Whether whole numbers must be at least 0.

    Raises:
        InvalidValueError: The value does not fit; the message names the field.

    Examples:
        >>> require_type([0.5, 2], list[float], "values", counts=True)
        >>> require_type(float("nan"), float | None, "gamma", counts=True)
        Traceback (most recent call last):
        ...
        suffice.errors.InvalidValueError: gamma must be a finite number or None, not nan
    """
    if not _fits(value, annotation, counts=counts):
        raise InvalidValueError(f"{name} must be {_words(annotation, counts=counts)}, not {shortened(value)}")


def require_state(rule: object, name: str, requirement: str, *, holds: bool) -> None:
    """Refuse a saved state that contradicts itself or the parameters; for ``check_state`` of a rule.

    Args:
        rule: The rule, with the restored state.
        name: Field of the state.
        requirement: What the field must be, for the error.
        holds: Whether it is.

    Raises:
        InvalidValueError: It is not.
    """
    if not holds:
        value = shortened(getattr(rule, name))
        raise InvalidValueError(
            f"{name} in the saved state of {type(rule).__name__} must be {requirement}, not {value}"
        )


def rises(numbers: Sequence[float]) -> bool:
    """Whether each number is larger than the one before.

    Examples:
        >>> rises([1, 2, 5]), rises([1, 1]), rises([])
        (True, False, True)
    """
    return all(one < other for one, other in pairwise(numbers))


def within(numbers: Sequence[float], low: float, high: float = math.inf) -> bool:
    """Whether all numbers are from ``low`` to ``high``.

    Examples:
        >>> within([0.0, 1.0], 0.0, 1.0), within([-0.1], 0.0)
        (True, False)
    """
    return all(low <= number <= high for number in numbers)


def shortened(value: Any) -> str:
    """Return the printed form of a value, at most 60 characters of it."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _fits(value: Any, annotation: Any, *, counts: bool) -> bool:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation in (int, float):
        return _is_number(value, whole=annotation is int) and (annotation is float or value >= 0 or not counts)
    if origin in (Union, types.UnionType):
        return any(_fits(value, each, counts=counts) for each in arguments)
    if origin is Literal:
        return value in arguments
    if origin in (list, tuple):
        # JSON has lists only. Entries of a tuple with a type for each entry are not checked.
        alike = len(arguments) == 1 or (len(arguments) == 2 and arguments[1] is Ellipsis)
        each = arguments[0] if alike else Any
        return isinstance(value, list | tuple) and all(_fits(entry, each, counts=counts) for entry in value)
    known = isinstance(annotation, type) and annotation is not Any and origin is None
    return not known or isinstance(value, annotation)


def _is_number(value: Any, *, whole: bool) -> bool:
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        return False
    return whole or _is_finite(value)


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _words(annotation: Any, *, counts: bool, several: bool = False) -> str:
    """Return what an annotation requires, in words."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    names = {
        type(None): ("None", "None"),
        bool: ("True or False", "True or False"),
        str: ("text", "texts"),
        int: ("a whole number", "whole numbers"),
        float: ("a finite number", "finite numbers"),
    }
    if annotation in names:
        found = names[annotation][several]
        return f"{found} of at least 0" if annotation is int and counts else found
    if origin in (Union, types.UnionType):
        return " or ".join(_words(each, counts=counts, several=several) for each in arguments)
    if origin in (list, tuple) and arguments:
        return f"{'lists' if several else 'a list'} of {_words(arguments[0], counts=counts, several=True)}"
    if origin is Literal:
        return " or ".join(map(repr, arguments))
    return f"{'objects' if several else 'an object'} of the type {getattr(annotation, '__name__', annotation)}"
