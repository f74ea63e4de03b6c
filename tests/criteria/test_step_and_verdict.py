"""What a step may hold: every field is checked by its name, and two steps can be compared."""

import copy
import dataclasses
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice import Step
from suffice.criteria.step_and_verdict import FIELD_KINDS
from suffice.divergence import Divergence
from suffice.errors import InfiniteDivergenceError, InvalidTypeError, InvalidValueError, SufficeError
from suffice.testing import example_steps

#: Fields that were released with their kinds. A field added since is tested by the kind that it declares.
RELEASED = {
    "divergence": ("kl_new_old", "kl_old_new", "kl_prior"),
    "amount": (
        "seconds",
        "cost",
        "pool_max_entropy",
        "pool_margin",
        "pool_confidence_variance",
        "pool_gain",
        "pool_variance",
        "selected_loss",
        "selected_expected_loss",
    ),
    "count": ("pool_size", "pool_changes", "validation_labels"),
    "share": (
        "train_error",
        "selected_agreement",
        "pool_uncertainty",
        "pool_risk",
        "pool_f",
        "stop_confidence",
        "stop_agreement",
    ),
    "number": ("expected_error", "validation_error"),
    "probabilities": ("selected_probabilities", "stop_probabilities"),
    "labels": ("selected_labels",),
}


def of_kind(kind: str) -> tuple[str, ...]:
    return tuple(name for name, found in FIELD_KINDS.items() if found == kind)


DIVERGENCES = of_kind("divergence")
AMOUNTS = of_kind("amount")
COUNTS = of_kind("count")
SHARES = of_kind("share")
NUMBERS = of_kind("number")
TABLES = of_kind("probabilities")


def step(**fields: Any) -> Step:
    return Step(n_labelled=12, **fields)


def test_every_field_has_a_kind_and_released_fields_keep_theirs() -> None:
    fields = {spec.name for spec in dataclasses.fields(Step)}
    assert fields == {*FIELD_KINDS, "n_labelled", "estimated"}
    assert all(FIELD_KINDS[name] == kind for kind, names in RELEASED.items() for name in names)
    assert set(FIELD_KINDS.values()) == set(RELEASED)
    assert all(getattr(Step(n_labelled=0), name) is None for name in FIELD_KINDS)


class TestPrinted:
    def test_only_given_fields_are_shown(self) -> None:
        assert repr(step()) == "Step(n_labelled=12)"
        given = Step(n_labelled=31, kl_new_old=0.021, kl_old_new=0.024, estimated="from draws")
        assert repr(given) == "Step(n_labelled=31, kl_new_old=0.021, kl_old_new=0.024, estimated='from draws')"
        assert str(given) == repr(given)
        assert repr(step(pool_changes=0, pool_risk=0.0)) == "Step(n_labelled=12, pool_risk=0, pool_changes=0)"

    def test_arrays_and_numbers_are_shortened(self) -> None:
        shown = repr(step(stop_probabilities=np.full((500, 2), 0.5, dtype=np.float16), pool_gain=1 / 3))
        assert (
            shown == "Step(n_labelled=12, pool_gain=0.333333, stop_probabilities=array(shape=(500, 2), dtype=float16))"
        )

    def test_steps_of_a_sequence_and_of_a_subclass(self) -> None:
        assert repr(Step.sequence([1], pool_risk=[0.25])[0]) == "Step(n_labelled=1, pool_risk=0.25)"

        @dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
        class Other(Step):
            accuracy: float | None = None

        assert repr(Other(n_labelled=1, accuracy=0.5)) == "Other(n_labelled=1, accuracy=0.5)"


@pytest.mark.parametrize("bad", [-1, 1.5, True, "many", None, math.nan])
@pytest.mark.parametrize("name", [*COUNTS, "n_labelled"])
def test_counts(name: str, bad: Any) -> None:
    if bad is None and name != "n_labelled":
        assert getattr(step(**{name: None}), name) is None
        return
    given: dict[str, Any] = {"n_labelled": 12, name: np.int64(3)}
    with pytest.raises(InvalidValueError, match=f"{name} must be a whole number, 0 or more, not"):
        Step(**{**given, name: bad})
    assert getattr(Step(**given), name) == 3
    assert type(getattr(Step(**given), name)) is int


@pytest.mark.parametrize("bad", [-1e-3, math.nan, math.inf, "much", True, [0.1, 0.2], 1j])
@pytest.mark.parametrize("name", AMOUNTS)
def test_amounts(name: str, bad: Any) -> None:
    with pytest.raises(InvalidValueError, match=f"{name} must be a number of at least 0, not"):
        step(**{name: bad})
    assert getattr(step(**{name: np.float32(0.5)}), name) == 0.5
    assert getattr(step(**{name: 0}), name) == 0.0


@pytest.mark.parametrize("bad", [-0.01, 1.01, math.nan, math.inf, -math.inf, "half", False, [0.5]])
@pytest.mark.parametrize("name", SHARES)
def test_shares(name: str, bad: Any) -> None:
    if bad == [0.5]:
        with pytest.raises(InvalidValueError, match=f"{name} must be a number from 0 to 1"):
            step(**{name: [0.5, 0.5]})
        return
    with pytest.raises(InvalidValueError, match=f"{name} must be a number from 0 to 1, not"):
        step(**{name: bad})
    # A mean of probabilities may be off by a rounding.
    assert getattr(step(**{name: 1.0 + 1e-12}), name) == 1.0
    assert getattr(step(**{name: -1e-12}), name) == 0.0


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, "low", True, [0.1, 0.2]])
@pytest.mark.parametrize("name", NUMBERS)
def test_errors(name: str, bad: Any) -> None:
    with pytest.raises(InvalidValueError, match=f"{name} must be a finite number, not"):
        step(**{name: bad})
    # The log of a density may be either side of 0.
    assert getattr(step(**{name: -2.5}), name) == -2.5


@pytest.mark.parametrize("name", DIVERGENCES)
def test_divergences(name: str) -> None:
    for bad, wrong in ((-0.1, "negative"), (math.nan, "NaN")):
        with pytest.raises(InvalidValueError, match=f"{name} is {wrong}"):
            step(**{name: bad})
    with pytest.raises(InfiniteDivergenceError, match=f"{name} is infinite"):
        step(**{name: math.inf})
    with pytest.raises(InvalidTypeError, match=f"{name} must be a real number"):
        step(**{name: "small"})
    with pytest.raises(InvalidTypeError, match=f"{name} must be one number, not an array of shape"):
        step(**{name: [0.1, 0.2]})
    assert getattr(step(**{name: -1e-12}), name) == 0.0


@pytest.mark.parametrize("name", TABLES)
class TestTables:
    @pytest.mark.parametrize(
        "bad", [[0.5, 0.5], 0.5, [[[0.5, 0.5]]], np.zeros((3, 0))], ids=["row", "number", "cube", "no class"]
    )
    def test_of_another_shape(self, name: str, bad: Any) -> None:
        wanted = rf"{name} must be a table of probabilities with one row per item .* per class, but its shape is \("
        with pytest.raises(InvalidValueError, match=wanted):
            step(**{name: bad})

    @pytest.mark.parametrize(
        "bad",
        [
            [[0.5, 0.6]],
            [[0.5, 0.4]],
            [[1.1, -0.1]],
            [[math.nan, 0.5]],
            [[math.inf, 0.5]],
            [[0.0, 0.0]],
            [[0.5, 0.5], [0.9, 0.2]],
            np.array([[0.7, 0.5]], dtype=np.float16),
        ],
        ids=str,
    )
    def test_that_are_no_probabilities(self, name: str, bad: Any) -> None:
        with pytest.raises(InvalidValueError, match=f"{name} must be .*: no value below 0, and each row adds up to 1"):
            step(**{name: bad})

    def test_that_are_no_numbers(self, name: str) -> None:
        for bad in ([["a", "b"]], [[0.5 + 1j, 0.5]]):
            with pytest.raises(InvalidTypeError, match=f"{name} must be a real number or an array of them"):
                step(**{name: bad})

    def test_with_rows_of_two_lengths(self, name: str) -> None:
        with pytest.raises(SufficeError, match=name):
            step(**{name: [[0.5, 0.5], [1.0]]})

    def test_of_any_precision(self, name: str) -> None:
        p = np.random.default_rng(0).dirichlet(np.ones(26), size=40)
        for kind in (np.float16, np.float32, np.float64):
            held = getattr(step(**{name: p.astype(kind)}), name)
            assert held.dtype == kind
            assert (held == p.astype(kind)).all()
        assert getattr(step(**{name: [[1, 0], [0, 1]]}), name).dtype == np.float64

    def test_without_items_or_with_one_class(self, name: str) -> None:
        assert getattr(step(**{name: np.zeros((0, 2))}), name).shape == (0, 2)
        assert getattr(step(**{name: [[1.0], [1.0]]}), name).shape == (2, 1)

    def test_that_a_network_gave(self, name: str) -> None:
        torch = pytest.importorskip("torch", reason="torch is not installed")
        assert getattr(step(**{name: torch.tensor([[0.25, 0.75]])}), name).tolist() == [[0.25, 0.75]]

    def test_that_a_network_gave_in_training(self, name: str) -> None:
        torch = pytest.importorskip("torch", reason="torch is not installed")
        found = torch.softmax(torch.zeros((1, 2), requires_grad=True), dim=1)
        assert getattr(step(**{name: found}), name).tolist() == [[0.5, 0.5]]


class TestSelectedLabels:
    @pytest.mark.parametrize("bad", [[[0]], 0, [0.0], ["ham"], [-2], [True]], ids=str)
    def test_that_are_no_columns(self, bad: Any) -> None:
        with pytest.raises(
            InvalidValueError, match="selected_labels must hold the column of each label, whole numbers"
        ):
            step(selected_labels=bad)

    def test_that_are_columns(self) -> None:
        for good in ([0, 1, -1], np.array([2], dtype=np.uint8), np.zeros(0, dtype=int)):
            held = step(selected_labels=good).selected_labels
            assert held is not None
            assert held.tolist() == list(good)

    @pytest.mark.parametrize(("rows", "labels"), [(2, 1), (1, 2), (0, 1), (3, 0)])
    def test_one_for_each_row(self, rows: int, labels: int) -> None:
        with pytest.raises(InvalidValueError, match=f"has {rows} rows and selected_labels {labels} labels; one label"):
            step(selected_probabilities=np.full((rows, 2), 0.5), selected_labels=np.zeros(labels, dtype=int))

    @pytest.mark.parametrize("label", [2, 7])
    def test_beyond_the_last_column(self, label: int) -> None:
        said = f"selected_labels holds {label}; selected_probabilities has columns 0 to 1"
        with pytest.raises(InvalidValueError, match=said):
            step(selected_probabilities=[[0.5, 0.5]], selected_labels=[label])
        with pytest.raises(InvalidValueError, match=said):
            step(selected_probabilities=[[0.5, 0.5]] * 3, selected_labels=[1, label, -1])
        # A class that was not known has no column.
        for good in ([0], [1], [-1]):
            assert step(selected_probabilities=[[0.5, 0.5]], selected_labels=good).selected_labels is not None

    def test_without_items(self) -> None:
        held = step(selected_probabilities=np.zeros((0, 2)), selected_labels=np.zeros(0, dtype=int))
        assert held.selected_labels is not None
        assert held.selected_labels.shape == (0,)

    def test_that_a_network_gave(self) -> None:
        torch = pytest.importorskip("torch", reason="torch is not installed")
        held = step(selected_probabilities=[[0.5, 0.5]] * 2, selected_labels=torch.tensor([1, -1])).selected_labels
        assert held is not None
        assert held.tolist() == [1, -1]

    def test_rows_of_two_lengths(self) -> None:
        with pytest.raises(InvalidValueError, match="selected_labels must hold the column of each label"):
            step(selected_labels=[[0, 1], [1]])


class TestEquality:
    def test_steps_with_arrays(self) -> None:
        one, other = example_steps(2, seed=1), example_steps(2, seed=1)
        assert one == other
        assert one[0] != one[1]

    @pytest.mark.parametrize("name", [spec.name for spec in dataclasses.fields(Step)])
    def test_every_field_counts(self, name: str) -> None:
        whole = example_steps(1)[0]
        changed: Any = {"n_labelled": 99, "estimated": "somehow", "pool_size": 7, "pool_changes": 59}.get(name)
        present = getattr(whole, name)
        if isinstance(present, np.ndarray):
            changed = present[:, ::-1] if present.ndim == 2 else 1 - present
        elif isinstance(present, float):
            changed = present / 2
        other = dataclasses.replace(whole, **{name: changed})
        assert whole != other
        assert other != whole
        if name not in ("n_labelled", "estimated"):
            without: dict[str, Any] = {name: None}
            assert whole != dataclasses.replace(whole, **without)

    def test_arrays_of_another_shape_or_order(self) -> None:
        p = np.array([[0.5, 0.5], [0.2, 0.8]])
        assert step(stop_probabilities=p) != step(stop_probabilities=p[::-1])
        assert step(stop_probabilities=p) != step(stop_probabilities=p[:1])
        assert step(stop_probabilities=p) == step(stop_probabilities=p.tolist())
        half = [[0.5, 0.5]]
        assert step(stop_probabilities=half) == step(stop_probabilities=np.array(half, dtype=np.float16))

    def test_other_things_are_not_equal(self) -> None:
        assert step() != 12
        assert step() != object()

        @dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
        class Other(Step):
            accuracy: float | None = None

        assert step() != Other(n_labelled=12)
        assert Other(n_labelled=12, accuracy=0.5) != Other(n_labelled=12, accuracy=0.6)
        assert Other(n_labelled=12, accuracy=0.5) == Other(n_labelled=12, accuracy=0.5)

    def test_a_step_of_ones_own_can_be_compared_too(self) -> None:
        """Decorated as the documentation says."""
        assert "@dataclass(frozen=True, kw_only=True, eq=False, repr=False)" in (Step.__doc__ or "")

        @dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
        class Other(Step):
            scores: Any = None

        p, scores = np.array([[0.5, 0.5], [0.2, 0.8]]), np.array([1.0, 2.0])
        whole = Other(n_labelled=1, stop_probabilities=p, scores=scores)
        assert whole == Other(n_labelled=1, stop_probabilities=p.copy(), scores=scores.copy())
        assert whole != Other(n_labelled=1, stop_probabilities=p[::-1], scores=scores)
        assert whole != Other(n_labelled=1, stop_probabilities=p, scores=scores[::-1])
        assert whole != Other(n_labelled=1, stop_probabilities=p)
        # What is its own is kept as it is, and what is of a step is checked.
        assert whole.scores is scores
        with pytest.raises(InvalidValueError, match="each row adds up to 1"):
            Other(n_labelled=1, stop_probabilities=2.0 * p)
        with pytest.raises(dataclasses.FrozenInstanceError):
            whole.scores = None  # type: ignore[misc]
        with pytest.raises(TypeError, match="unhashable"):
            hash(whole)

    def test_a_step_is_no_key(self) -> None:
        with pytest.raises(TypeError, match="unhashable"):
            hash(step())

    def test_copies_are_equal(self) -> None:
        whole = example_steps(1)[0]
        assert copy.deepcopy(whole) == pickle.loads(pickle.dumps(whole)) == whole

    def test_a_step_does_not_change(self) -> None:
        with pytest.raises(dataclasses.FrozenInstanceError):
            step().pool_risk = 0.5  # type: ignore[misc]


class TestEstimated:
    def test_it_comes_from_the_divergences(self) -> None:
        guess = Divergence(0.25, kind="estimate", how="guessed")
        sure = Divergence(0.25, kind="exact", how="by a formula")
        assert step(kl_new_old=guess, kl_old_new=sure).estimated == "guessed"
        assert step(kl_new_old=sure, kl_old_new=sure).estimated == ""
        assert step(kl_new_old=guess, estimated="as told").estimated == "as told"
        assert type(step(kl_new_old=guess).kl_new_old) is float


class TestSequence:
    def test_it_is_the_steps_one_by_one(self) -> None:
        made = example_steps(5, seed=2)
        names = [spec.name for spec in dataclasses.fields(Step) if spec.name not in ("n_labelled", "estimated")]
        columns: dict[str, Any] = {name: np.array([getattr(each, name) for each in made]) for name in names}
        counts = [each.n_labelled for each in made]
        assert Step.sequence(counts, columns.pop("kl_new_old"), columns.pop("kl_old_new"), **columns) == made
        for each in Step.sequence(counts, **columns):
            assert each.kl_new_old is None
            assert type(each.pool_risk) is float
            assert type(each.pool_changes) is int

    def test_one_entry_a_step(self) -> None:
        with pytest.raises(InvalidValueError, match="pool_risk must be a field of Step with one entry for each step"):
            Step.sequence([1, 2], pool_risk=[0.5])
        with pytest.raises(InvalidValueError, match="guess must be a field of Step with one entry for each step"):
            Step.sequence([1, 2], guess=[0.5, 0.5])
        with pytest.raises(InvalidValueError, match="one entry per step is needed"):
            Step.sequence([1, 2], [0.5], [0.5, 0.4])
        with pytest.raises(InvalidValueError, match="n_labelled must hold whole numbers, 0 or more"):
            Step.sequence([1.0, 2.0])
        with pytest.raises(InvalidValueError, match="n_labelled must hold whole numbers, 0 or more"):
            Step.sequence([3, -1])
        with pytest.raises(InvalidValueError, match="kl_new_old is negative"):
            Step.sequence([1, 2], [0.5, -0.5], [0.5, 0.4])
        assert Step.sequence(np.zeros(0, dtype=int)) == []


@given(st.lists(st.floats(0, 1), min_size=2, max_size=6), st.sampled_from([np.float16, np.float32, np.float64]))
def test_what_softmax_gives_is_taken(weights: list[float], kind: Any) -> None:
    p = np.exp(weights) / np.exp(weights).sum()
    held = step(stop_probabilities=p[None].astype(kind)).stop_probabilities
    assert held is not None
    assert held[0] == pytest.approx(p, abs=1e-3)


@given(st.sampled_from([*AMOUNTS, *SHARES, *NUMBERS]), st.floats(0, 1))
def test_numbers_in_range_are_kept_as_they_are(name: str, value: float) -> None:
    assert getattr(step(**{name: value}), name) == value
