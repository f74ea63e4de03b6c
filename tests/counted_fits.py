"""How often estimators are fitted again."""

from typing import Any

import pytest

from suffice.learner.refitted import refitted


def count_fits(monkeypatch: pytest.MonkeyPatch, *modules: str) -> list[int]:
    """A list to which each fit of an estimator by one of the modules appends the number of its labels."""
    sizes: list[int] = []

    def counting(model: Any, X: Any, labels: Any, *, classes: bool) -> Any:
        sizes.append(len(labels))
        return refitted(model, X, labels, classes=classes)

    for module in ("suffice.learner.estimator_backend", *modules):
        monkeypatch.setattr(f"{module}.refitted", counting)
    return sizes
