"""Networks of Keras 3, with the torch backend."""

import pytest

from tests.integrations.snippets import run_snippet


def test_the_snippet(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    keras = pytest.importorskip("keras")
    assert keras.backend.backend() == "torch"
    monitor = run_snippet("with_keras")["monitor"]
    assert monitor.verdict.stop
    assert monitor.verdict.n_labelled < 1700
    assert capsys.readouterr().out == f"{monitor.decision()}\n"
    assert "are predicted wrong" in str(monitor.decision())
