"""Verdicts in MLflow."""

from pathlib import Path

import pytest

import suffice as sf
from suffice.integrations.tracking import log_verdict
from tests.integrations.snippets import run_snippet

mlflow = pytest.importorskip("mlflow")


@pytest.fixture(autouse=True)
def _store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store of files: the small package has no database."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file:{tmp_path / 'runs'}")


def test_the_snippet() -> None:
    variables = run_snippet("with_mlflow")
    monitor, client = variables["monitor"], mlflow.MlflowClient()
    run = client.get_run(variables["run"].info.run_id)
    assert run.data.tags["suffice/reason"] == monitor.verdict.reason
    assert run.data.tags["suffice/answer"] == monitor.decision().answer
    assert run.data.metrics["suffice/stop"] == 1.0
    history = client.get_metric_history(run.info.run_id, "suffice/value")
    assert [(each.step, each.value) for each in history] == [
        (said.n_labelled, pytest.approx(said.value)) for said in monitor.verdicts
    ]


def test_a_composed_rule() -> None:
    rule = sf.Budget(10) | sf.PoolFraction(0.5)
    with mlflow.start_run() as run:
        for n in (5, 20):
            log_verdict(rule.observe(sf.Step(n_labelled=n, pool_size=100)), mlflow.log_metrics, prefix="stop.")
    metrics = mlflow.MlflowClient().get_run(run.info.run_id).data.metrics
    assert metrics["stop.Budget/stop"] == 1.0
    assert metrics["stop.PoolFraction/stop"] == 0.0
