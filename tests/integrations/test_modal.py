"""A learner of modAL."""

import pytest

from tests.integrations.snippets import run_snippet

pytest.importorskip("modAL")


def test_the_snippet(capsys: pytest.CaptureFixture[str]) -> None:
    variables = run_snippet("with_modal")
    monitor = variables["monitor"]
    assert monitor.verdict.stop
    assert monitor.verdict.n_labelled == len(variables["known"]) < 1000
    assert capsys.readouterr().out == f"{monitor.verdict}\n"
