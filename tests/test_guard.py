"""The guard of the speed of public calls: which ratios it refuses. Nothing is timed."""

import importlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def benchmark(name: str) -> Any:
    """A module of the benchmarks, which are no package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        return importlib.import_module(name)


def test_a_ratio_beyond_a_factor_of_2_fails() -> None:
    ratios = benchmark("guard_ratios")
    stored = {"slower": 10.0, "the same": 10.0, "faster": 10.0, "at the limit": 10.0, "not measured": 10.0}
    measured = {"slower": 4.99, "the same": 10.0, "faster": 40.0, "at the limit": 5.0}
    assert ratios.too_slow(measured, stored) == ["slower"]
    assert ratios.too_slow(measured, stored, factor=2.01) == []
    with pytest.raises(KeyError, match="unknown"):
        ratios.too_slow({"unknown": 1.0}, stored)


@given(st.floats(0.01, 1000.0), st.floats(0.1, 10.0))
def test_only_the_quotient_of_the_ratios_counts(stored: float, change: float) -> None:
    slow = benchmark("guard_ratios").too_slow({"call": stored * change}, {"call": stored})
    assert slow == (["call"] if 2.0 * (stored * change) < stored else [])


def test_stored_ratios_are_those_saved(tmp_path: Path) -> None:
    ratios = benchmark("guard_ratios")
    ratios.save({"first": 12.3456, "second": 0.5}, tmp_path / "ratios.json")
    assert ratios.load(tmp_path / "ratios.json") == {"first": 12.3, "second": 0.5}


def test_every_row_has_a_stored_ratio() -> None:
    assert set(benchmark("guard_ratios").load()) == set(benchmark("guard_rows").guard_rows())
