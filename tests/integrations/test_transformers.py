"""A classifier of Hugging Face transformers, made here without a download."""

from typing import Any

import pytest

from tests.integrations.snippets import run_snippet


@pytest.mark.slow
def test_the_snippet(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    pytest.importorskip("torch")
    transformers: Any = pytest.importorskip("transformers")
    variables = run_snippet("with_transformers")
    assert isinstance(variables["model"], transformers.PreTrainedModel)
    monitor = variables["monitor"]
    assert monitor.verdict.stop
    assert monitor.verdict.n_labelled < 280
    assert capsys.readouterr().out == f"{monitor.decision()}\n"
    assert "are predicted wrong" in str(monitor.decision())
