"""Figures of commands are built in every test, and rendered in those that look at them."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.thoroughness import thorough


def _save_unrendered(_: Any, path: str | Path, **__: Any) -> None:
    Path(path).write_bytes(b"not rendered")


@pytest.fixture
def real_figure() -> None:
    """Figures are rendered in this test."""


@pytest.fixture(autouse=True)
def _unrendered_figures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Save figures without rendering them, which takes longer than most runs; not in the slow tests."""
    if thorough() or "real_figure" in request.fixturenames:
        return
    with suppress(ImportError):
        monkeypatch.setattr("matplotlib.figure.Figure.savefig", _save_unrendered)
