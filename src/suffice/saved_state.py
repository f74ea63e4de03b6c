"""Saved states: JSON dictionaries that name their kind and have a checksum, so that damage is noticed.

Every object with a state has ``state_dict()`` and ``from_state()``. The dictionaries contain JSON values only, so they
can be written with :func:`json.dumps`, or stored in a database.
"""

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import numpy as np

from suffice.errors import InvalidValueError, SufficeError

_FORMAT: Final = "format"
_CHECKSUM: Final = "checksum"
_T = TypeVar("_T")


def encoded_array(value: Any) -> Any:
    """An array as JSON values with exactly the same numbers; other values are returned unchanged.

    Examples:
        >>> decoded_array(encoded_array(np.array([0.1, np.nan])))
        array([0.1, nan])
    """
    if not isinstance(value, np.ndarray):
        return value
    content = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode("ascii")
    return {"dtype": value.dtype.str, "shape": list(value.shape), "data": content}


def decoded_array(value: Any) -> Any:
    """The array of :func:`encoded_array`; other values are returned unchanged."""
    if not isinstance(value, Mapping):
        return value
    dtype = np.dtype(value["dtype"])
    if dtype.hasobject:
        raise ValueError("arrays of objects are not restored")
    array = np.frombuffer(base64.b64decode(value["data"], validate=True), dtype=dtype)
    return array.reshape(value["shape"]).copy()


def plain_value(value: Any) -> Any:
    """A label or another single value without NumPy's type, as JSON has it."""
    return value.item() if isinstance(value, np.generic) else value


def sealed(kind: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a state with its kind and a checksum.

    Args:
        kind: What was saved, and the version of the form, such as ``"suffice-learner-1"``.
        content: The state, as JSON values.

    Examples:
        >>> sorted(sealed("suffice-example-1", {"n": 3}))
        ['checksum', 'format', 'n']
    """
    state = {_FORMAT: kind, **content}
    return {**state, _CHECKSUM: _checksum(state)}


def restored(
    kind: str, state: Any, name: str, restore: Callable[[Mapping[str, Any]], _T], *, older: bool = False
) -> _T:
    """Return an object from a state that :func:`sealed` returned.

    Args:
        kind: The expected kind.
        state: The state, also after a round trip through JSON.
        name: The function that returned it, for messages.
        restore: Makes the object from the state.
        older: Whether the kind is of an earlier version, whose states have no checksum.

    Raises:
        InvalidValueError: The state is of another kind, or damaged.

    Examples:
        >>> state = sealed("suffice-example-1", {"n": 3})
        >>> restored("suffice-example-1", state, "example.state_dict", lambda content: content["n"])
        3
        >>> restored("suffice-example-1", {**state, "n": 4}, "example.state_dict", lambda content: content["n"])
        Traceback (most recent call last):
        ...
        suffice.errors.InvalidValueError: state was changed or damaged since example.state_dict returned it
    """
    if not isinstance(state, Mapping) or state.get(_FORMAT) != kind:
        given = state.get(_FORMAT) if isinstance(state, Mapping) else None
        came = f"has the format {given!r}" if isinstance(given, str) else f"is a {type(state).__name__} without one"
        raise InvalidValueError(f"state must be the result of {name}, which has the format {kind!r}; this {came}")
    try:
        content = {key: value for key, value in state.items() if key != _CHECKSUM}
        if not older and _checksum(content) != state.get(_CHECKSUM):
            raise InvalidValueError(f"state was changed or damaged since {name} returned it")
        return restore(content)
    except SufficeError:
        raise
    # A state without a checksum may be damaged in any way.
    except (ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, TypeError, ValueError) as error:
        raise InvalidValueError(f"state is not a complete result of {name}: {error!r}") from None


def _checksum(state: Mapping[str, Any]) -> str:
    text = json.dumps(state, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
