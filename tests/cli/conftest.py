"""Figures of commands are built in every test, and rendered in those that look at them."""

import pytest


@pytest.fixture(autouse=True)
def _figures(unrendered_figures: None) -> None: ...
