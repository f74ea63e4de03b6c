"""A monitor beside a loop of scikit-activeml."""

import pytest

from tests.integrations.snippets import run_snippet

pytest.importorskip("skactiveml")


def test_the_snippet() -> None:
    monitor = run_snippet("with_scikit_activeml")["monitor"]
    assert monitor.verdict.stop
    assert monitor.verdict.n_labelled < 200
