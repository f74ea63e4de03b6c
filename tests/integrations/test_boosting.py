"""Gradient boosting of other libraries: LightGBM, XGBoost, CatBoost."""

import numpy as np
import pytest

import suffice as sf
from tests.integrations.snippets import run_snippet

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")
catboost = pytest.importorskip("catboost")

X = np.random.default_rng(0).normal(size=(200, 3))
Y = (X[:, 0] + X[:, 1] > 0.0).astype(int)


def test_lightgbm(capsys: pytest.CaptureFixture[str]) -> None:
    monitor = run_snippet("with_lightgbm")["monitor"]
    assert monitor.verdict.stop
    assert monitor.verdict.n_labelled < 1000
    assert capsys.readouterr().out == f"{monitor.decision()}\n"
    assert str(monitor.decision()).startswith("You can stop now: about ")


def test_xgboost(capsys: pytest.CaptureFixture[str]) -> None:
    learner = run_snippet("with_xgboost")["learner"]
    assert learner.verdict.stop
    assert len(learner.labelled) < 300
    assert capsys.readouterr().out == f"{learner.decision()}\n"
    assert "are predicted wrong" in str(learner.decision())


def test_catboost(capsys: pytest.CaptureFixture[str]) -> None:
    monitor = run_snippet("with_catboost")["monitor"]
    assert monitor.verdict.stop
    assert monitor.verdict.n_labelled < 500
    assert capsys.readouterr().out == f"{monitor.decision()}\n"
    assert "typically off by about" in str(monitor.decision())


@pytest.mark.parametrize("labels", [Y, np.where(Y == 1, "yes", "no")], ids=["numbers", "text"])
@pytest.mark.parametrize("library", ["lightgbm", "catboost"])
def test_classes_may_be_numbers_or_text(library: str, labels: "np.ndarray[tuple[int], np.dtype[np.generic]]") -> None:
    if library == "lightgbm":
        model = lightgbm.LGBMClassifier(n_estimators=5, num_threads=1, verbose=-1)
    else:
        model = catboost.CatBoostClassifier(iterations=5, thread_count=1, allow_writing_files=False, verbose=False)
    monitor = sf.StopMonitor(X)
    for n in (40, 80):
        monitor.update(model.fit(X[:n], labels[:n]), range(n), labels[:n], random=range(n))
    assert 0.0 < monitor.error_estimate().value < 0.5
