"""What a check keeps as short texts: it comes back as it was, and damage is an error in words."""

import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.project.project_check import (
    packed_order,
    packed_predictions,
    packed_shares,
    rounded_numbers,
    unpacked_order,
    unpacked_predictions,
    unpacked_shares,
)

CLASSES = ("cat", "dog", "eel")
PREDICTIONS = packed_predictions(np.array(["cat", "eel", "eel", "dog"]), CLASSES)


@given(st.lists(st.sampled_from(CLASSES), max_size=40), st.lists(st.floats(-1e300, 1e300), max_size=40))
def test_predictions_come_back(names: list[str], numbers: list[float]) -> None:
    again = unpacked_predictions(packed_predictions(np.array(names, dtype=object), CLASSES), CLASSES, len(names))
    assert again.tolist() == names
    values = rounded_numbers(np.array(numbers))
    assert values == pytest.approx(numbers, rel=1e-8)
    assert unpacked_predictions(packed_predictions(values, ()), (), len(numbers)).tolist() == values.tolist()


@given(st.lists(st.floats(0.0, 1.0), max_size=40))
def test_shares_come_back_to_four_digits(shares: list[float]) -> None:
    assert unpacked_shares(packed_shares(np.array(shares)), len(shares)) == pytest.approx(shares, abs=1e-4)


@given(st.lists(st.integers(0, 2**40), max_size=40))
def test_an_order_comes_back(items: list[int]) -> None:
    assert unpacked_order(packed_order(items)) == tuple(items)


def cut(text: str) -> str:
    """The text without its last bytes."""
    return b64encode(b64decode(text)[:-3]).decode("ascii")


def longer(text: str) -> str:
    """The text of a content with one byte more."""
    return b64encode(zlib.compress(zlib.decompress(b64decode(text)) + b"\0")).decode("ascii")


@pytest.mark.parametrize(
    ("unpacked", "text", "about"),
    [
        (lambda text: unpacked_predictions(text, CLASSES, 4), PREDICTIONS, "predictions"),
        (lambda text: unpacked_shares(text, 4), packed_shares(np.array([0.1, 0.5, 0.25, 1.0])), "probabilities"),
        (unpacked_order, packed_order([4, 1, 3, 2]), "random order"),
    ],
    ids=["predictions", "shares", "order"],
)
def test_damage_is_an_error(unpacked: Callable[[str], Any], text: str, about: str) -> None:
    assert len(unpacked(text)) == 4
    with pytest.raises(ValueError, match=f"the {about} of a check cannot be read"):
        unpacked(cut(text))
    with pytest.raises(ValueError, match=f"the {about} of a check (are not those of 4 items|is damaged)"):
        unpacked(longer(text))
    with pytest.raises(ValueError, match=r"."):
        unpacked(f"?{text}")


def test_a_class_that_the_project_does_not_have_is_an_error() -> None:
    with pytest.raises(ValueError, match="the predictions of a check are of more than 2 classes"):
        unpacked_predictions(PREDICTIONS, CLASSES[:2], 4)
