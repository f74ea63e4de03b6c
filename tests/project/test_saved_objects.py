"""Objects that are saved without pickle: the same to the last bit, known classes only, and no code runs."""

import json
import math
from dataclasses import dataclass, is_dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from suffice.criteria import Verdict
from suffice.forecast import Forecast
from suffice.models.laplace import Snapshot
from suffice.saved_objects import MODULES, NotSavableError, SavedObjects, restored_objects, saved_objects
from suffice.session.decision import ErrorNow

MUCH = 10**6


def again(value: Any) -> Any:
    """The value after it was saved and restored."""
    return restored_objects(saved_objects(value, most_bytes=MUCH))


def form(value: Any) -> Any:
    """The type and the bits of a value, in a form that can be compared."""
    if isinstance(value, np.ndarray):
        layout = (value.flags.f_contiguous, value.flags.c_contiguous)
        return np.ndarray, value.dtype, value.shape, layout, value.tobytes()
    if isinstance(value, float | np.floating):
        # A single NaN is saved without its sign.
        return type(value), "nan" if math.isnan(value) else np.asarray(value).tobytes()
    if isinstance(value, slice):
        value = [slice, value.start, value.stop, value.step]
    elif is_dataclass(value):
        value = [type(value), vars(value)]
    elif isinstance(value, dict):
        value = [dict, *value.items()]
    return type(value), [form(each) for each in value] if isinstance(value, list | tuple) else value


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same in type and to the last bit."""
    return bool(form(one) == form(other))


ARRAYS = hnp.arrays(
    st.sampled_from(["f8", "f4", "f2", "i8", "i1", "u1", "b1", "U3", "S2", ">f8"]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
).map(lambda array: np.asfortranarray(array) if array.size % 2 else array)
PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.floats().map(np.float64),
    st.integers(-100, 100).map(np.int8),
    st.text(max_size=5).map(lambda text: np.str_(text.rstrip("\0"))),  # NumPy drops a NUL at the end
    st.booleans().map(np.bool_),
    ARRAYS,
    st.builds(slice, st.integers(), st.none(), st.integers()),
)
KEYS = st.one_of(st.integers(), st.text(), st.tuples(st.integers(), st.text()))
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(KEYS, inner, max_size=4),
        st.sets(st.integers() | st.text(), max_size=4),
        st.frozensets(st.integers(), max_size=4),
        st.builds(ErrorNow, st.floats(), st.floats(), st.floats()),
        st.builds(Forecast, labels=st.integers(), low=st.integers(), high=st.integers()),
    ),
    max_leaves=12,
)


@given(VALUES)
def test_everything_is_restored_to_the_last_bit(value: Any) -> None:
    assert same(again(value), value)
    # The same value gives the same file.
    first, second = (saved_objects(value, most_bytes=MUCH) for _ in range(2))
    assert first.text == second.text
    assert first.numbers.tobytes() == second.numbers.tobytes()


def test_one_object_stays_one_object() -> None:
    shared: list[Any] = [1, np.arange(3.0)]
    found = again({"a": shared, "b": (shared, shared[1])})
    assert found["a"] is found["b"][0]
    assert found["a"][1] is found["b"][1]
    shared.append(shared)
    circle = again(shared)
    assert circle[2] is circle


def test_parts_of_one_array_stay_parts_of_it() -> None:
    owner = np.zeros((2, 3, 8))
    found = again([owner[0], owner[1], owner[0, :, ::2], owner])
    found[3][0, 1, 4] = 7.0
    assert found[0][1, 4] == found[2][1, 2] == 7.0
    assert found[2].strides == owner[0, :, ::2].strides
    turned = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    part = again([turned[1:, 1:]])[0]
    assert part.strides == turned[1:, 1:].strides
    np.testing.assert_array_equal(part, turned[1:, 1:])


def test_a_small_part_of_a_large_array_is_saved_alone() -> None:
    large = np.zeros((100, 10_000))
    assert saved_objects(large[3, :5], most_bytes=MUCH).numbers.nbytes < 1000


def test_arrays_can_be_written_to() -> None:
    found = again([np.zeros(3), np.zeros((0, 2)), np.float64(2.0)])
    found[0][1] = 1.0
    assert found[1].shape == (0, 2)


def test_what_is_computed_from_the_rest_is_not_saved() -> None:
    snapshot = Snapshot(np.zeros(2), np.eye(2), 2.0 * np.eye(2), 1.0)
    before = saved_objects(snapshot, most_bytes=MUCH)
    assert snapshot.inverse_factor[0, 0] == 0.5
    assert saved_objects(snapshot, most_bytes=MUCH).text == before.text
    assert restored_objects(before).inverse_factor[1, 1] == 0.5


def test_a_frozen_object_is_restored() -> None:
    verdict = Verdict(stop=True, value=0.5, threshold=None, ready=True, reason="so", rule="R", n_labelled=3)
    assert again(verdict) == verdict


@dataclass
class Unknown:
    value: int = 1


@pytest.mark.parametrize(
    "value",
    [
        Unknown(),
        print,
        partial(print, 1),
        Unknown,
        np.array([None]),
        np.array(["2020-01-01"], dtype="M8[D]"),
        1j,
        b"bytes",
        np.bytes_(b"bytes"),
        range(3),
        np.random.default_rng(0),
        object(),
    ],
)
def test_what_is_not_known_is_refused(value: Any) -> None:
    with pytest.raises(NotSavableError):
        saved_objects([value], most_bytes=MUCH)


def test_what_is_too_large_is_refused() -> None:
    with pytest.raises(NotSavableError, match="more than 100 bytes"):
        saved_objects(np.zeros(13), most_bytes=100)
    assert saved_objects(np.zeros(12), most_bytes=100).numbers.nbytes == 96


@pytest.mark.parametrize(
    "node",
    [
        ["object", "os.system", {}],
        ["object", "builtins.list", {}],
        ["object", "suffice.trace.np", {}],
        ["object", "suffice.forecast.labels_left", {}],
        ["object", "suffice.criteria.step_and_verdict.Callable", {}],
        ["object", "suffice.session.decision.ErrorNow", {}],
        ["named", "suffice.session.decision.ErrorNow", 1.0],
        ["named", "suffice.forecast.Forecast", 1, 2, 3, 4],
        ["array", "<f8", "C", [3], 0],
        ["array", "<f8", "C", [-1], 0],
        ["array", "<f8", "C", [1], -8],
        ["array", "|O", "C", [1], 0],
        ["array", "<f8", "C", [10**12, 10**12], 0],
        ["view", ["array", "<f8", "C", [2], 0], [3], [8], 0],
        ["view", ["array", "<f8", "C", [2], 0], [1], [8], -8],
        ["view", 3, [1], [8], 0],
        ["again", 0],
        ["dict", 1],
        ["set", ["list"]],
        ["scalar", "<f8", "x"],
        ["scalar", "|O", 1],
        ["dtype", "nonsense"],
        ["slice", 1, 2, 3, 4],
        ["nonsense"],
        ["__class__"],
        [],
        [["list"]],
    ],
)
def test_damage_is_an_error_and_runs_no_code(node: Any) -> None:
    with pytest.raises(ValueError, match=r".+"):
        restored_objects(SavedObjects(json.dumps(node), np.zeros(16, dtype=np.uint8)))


def test_deep_nesting_is_damage() -> None:
    text = '["list",' * 5000 + "1" + "]" * 5000
    with pytest.raises(ValueError, match="RecursionError"):
        restored_objects(SavedObjects(text, np.zeros(0, dtype=np.uint8)))


def test_modules_are_those_of_this_package_and_without_side_effects() -> None:
    assert all(name.startswith("suffice.") for name in MODULES)
    assert not any(part in name for name in MODULES for part in ("cli", "web", "tables", "files", "storage"))
