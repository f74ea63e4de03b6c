"""How many cases a property is tried on: some in the fast tests, all of them in the slow ones."""

import os
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import settings

#: Whether this is continuous integration, whose time is limited: its slow tests have half of the examples and cases.
IN_CI = bool(os.environ.get("SUFFICE_CI"))
#: Examples of a property that sets no number of its own, in ``make test-slow`` and in ``make test``.
THOROUGH, FAST = 10 if IN_CI else 20, 8
# The number that the numbers of single properties are compared with.
_USUAL = 100


def thorough() -> bool:
    """Whether these are the slow tests, with all examples of every property."""
    profile = settings.default
    assert profile is not None
    return profile.max_examples >= THOROUGH


def examples(number: int) -> settings:
    """Try as many examples as of other properties, in proportion to a number that is compared with 100."""
    profile = settings.default
    assert profile is not None
    return settings(max_examples=max(1, number * profile.max_examples // _USUAL))


def crossed(*values: Iterable[Any], every: int) -> list[Any]:
    """Return all combinations of values for ``pytest.mark.parametrize``: one of so many in the fast tests.

    Each value is in some combination of the fast tests. The slow tests have a third of the other combinations, and a
    sixth in continuous integration.
    """
    numbered = product(*(list(enumerate(each)) for each in values))
    cases = [([value for _, value in case], sum(k for k, _ in case) % every) for case in numbered]
    fast = [pytest.param(*case) for case, rest in cases if rest == 0]
    slow = [pytest.param(*case, marks=pytest.mark.slow) for case, rest in cases if rest]
    return [*fast, *slow[:: 6 if IN_CI else 3]]


def some(cases: Sequence[Any], *, every: int) -> list[Any]:
    """Return cases for ``pytest.mark.parametrize``: one of so many in the fast tests, the others in the slow ones."""
    return [case if k % every == 0 else pytest.param(case, marks=pytest.mark.slow) for k, case in enumerate(cases)]
