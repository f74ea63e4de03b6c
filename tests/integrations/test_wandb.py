"""Verdicts in Weights & Biases."""

from typing import Any

import pytest

from tests.integrations.snippets import run_snippet

wandb = pytest.importorskip("wandb")


def test_the_snippet(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    calls: list[tuple[dict[str, Any], int]] = []
    real = wandb.sdk.wandb_run.Run.log

    def log(run: Any, metrics: dict[str, Any], step: int) -> None:
        calls.append((metrics, step))
        real(run, metrics, step=step)

    monkeypatch.setattr(wandb.sdk.wandb_run.Run, "log", log)
    variables = run_snippet("with_wandb")
    verdict, logged = variables["monitor"].verdict, calls[-1][0]
    assert [step for _, step in calls] == list(range(30, verdict.n_labelled + 1, 20))
    assert logged["suffice/stop"] == 1.0
    assert logged["suffice/n_labelled"] == verdict.n_labelled
    assert logged["suffice/value"] == pytest.approx(verdict.value)
    # The framework shows what it has at the end, with long texts shortened.
    shown = " ".join(capfd.readouterr().err.split())
    assert "suffice/stop 1" in shown
    assert f"suffice/reason {verdict.reason[:15]}" in shown
