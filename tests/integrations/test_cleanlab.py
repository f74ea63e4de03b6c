"""A classifier of cleanlab, which finds labels that are likely wrong."""

import pytest

from tests.integrations.snippets import run_snippet

pytest.importorskip("cleanlab")


def test_the_snippet(capsys: pytest.CaptureFixture[str]) -> None:
    variables = run_snippet("with_cleanlab")
    monitor, suspicious = variables["monitor"], variables["suspicious"]
    assert monitor.verdict.stop
    said, listed = capsys.readouterr().out.splitlines()
    assert said == str(monitor.decision())
    assert listed == f"labels to check again: {suspicious.tolist()}"
    # Most of them are the wrong labels of the example.
    wrong = variables["given"] != variables["y"]
    assert 2 * wrong[suspicious].sum() > len(suspicious) > 0
