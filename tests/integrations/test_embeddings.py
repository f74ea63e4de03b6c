"""Embeddings that were computed before, read from a file."""

import tempfile
from pathlib import Path

import pytest

from tests.integrations.snippets import run_snippet


def test_the_snippet(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    learner = run_snippet("with_embeddings")["learner"]
    assert learner.verdict.stop
    assert len(learner.labelled) < 300
    assert capsys.readouterr().out == f"{learner.decision()}\n"
    assert str(learner.decision()).startswith("You can stop now: about ")
