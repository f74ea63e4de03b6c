"""skorch networks in a monitor."""

import sys
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.errors import InvalidTypeError, InvalidValueError, MissingExtraError
from suffice.integrations.skorch import dropout_predictions
from tests.integrations.snippets import run_snippet

skorch = pytest.importorskip("skorch")
torch: Any = pytest.importorskip("torch")

X = np.random.default_rng(0).normal(size=(120, 4)).astype(np.float32)
Y = (X[:, 0] > 0.0).astype(np.int64)
Z = X[:, :1] * 2.0


def network(*, p: float = 0.5, outputs: int = 2, kind: Any = None, normalised: bool = False) -> Any:
    torch.manual_seed(0)
    first = [torch.nn.BatchNorm1d(4)] if normalised else []
    layers = [*first, torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Dropout(p), torch.nn.Linear(16, outputs)]
    loss = {"criterion": torch.nn.CrossEntropyLoss} if kind is None else {}
    made = kind or skorch.NeuralNetClassifier
    return made(torch.nn.Sequential(*layers), lr=0.1, max_epochs=5, train_split=None, verbose=0, **loss)


@pytest.mark.slow
def test_the_snippet() -> None:
    monitor = run_snippet("with_skorch")["monitor"]
    assert monitor.verdict.stop
    assert monitor.verdict.n_labelled < 1000
    assert monitor.steps[-1].reducible_error is not None


@pytest.mark.parametrize("predict", [None, dropout_predictions(8)], ids=["plain", "dropout"])
def test_a_monitor_takes_a_network(predict: Any) -> None:
    rule = sf.StabilizingPredictions() & (sf.LabelWorth() if predict is None else sf.IntrinsicStopping())
    monitor = sf.StopMonitor(X, rule, predict=predict)
    # The same network is fitted again: the monitor keeps a copy of the one before.
    net = network()
    for n in (20, 40, 60, 80):
        monitor.update(net.fit(X[:n], Y[:n]), range(n), Y[:n])
    assert len(monitor.verdicts) == 3
    assert monitor.check(10).indices.size == 10


def test_passes_are_probabilities_that_repeat_themselves() -> None:
    net, predict = network().fit(X, Y), dropout_predictions(30)
    state = torch.get_rng_state()
    p = predict(net, X)
    assert torch.equal(torch.get_rng_state(), state)
    assert p.shape == (120, 30, 2)
    np.testing.assert_allclose(p.sum(axis=2), 1.0, atol=1e-6)
    np.testing.assert_array_equal(predict(net, X), p)
    assert p.std(axis=1).max() > 0.0
    assert not np.array_equal(dropout_predictions(30, seed=1)(net, X), p)
    # The network predicts as before.
    np.testing.assert_array_equal(net.predict_proba(X), net.predict_proba(X))
    assert np.abs(p.mean(axis=1) - net.predict_proba(X)).max() < 0.2


def test_other_layers_predict_as_usual() -> None:
    net = network(normalised=True).fit(X, Y)
    before = net.module_[0].running_mean.clone()
    alone = dropout_predictions(4)(net, X[:1])
    np.testing.assert_array_equal(net.module_[0].running_mean, before)
    assert np.isfinite(alone).all()


def test_a_regressor() -> None:
    net = network(outputs=1, kind=skorch.NeuralNetRegressor).fit(X, Z)
    mean, deviation = dropout_predictions(10, noise=0.3)(net, X)
    assert mean.shape == deviation.shape == (120,)
    assert (deviation >= 0.3).all()
    monitor = sf.StopMonitor(X, predict=dropout_predictions(10, noise=0.3))
    for n in (40, 80):
        monitor.update(net.fit(X[:n], Z[:n]), range(n), Z[:n, 0])
    assert monitor.verdicts
    with pytest.raises(InvalidValueError, match="give dropout_predictions noise="):
        dropout_predictions(10)(net, X)


def test_bad_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in (1, 2.5, None):
        with pytest.raises(InvalidValueError, match="members"):
            dropout_predictions(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="noise"):
        dropout_predictions(noise=0.0)
    with pytest.raises(InvalidTypeError, match="model must be a skorch network, not int"):
        dropout_predictions()(3, X)
    with pytest.raises(InvalidValueError, match="has no dropout layer"):
        dropout_predictions()(network(p=0.0).fit(X, Y), X)
    monkeypatch.setitem(sys.modules, "skorch", None)
    with pytest.raises(MissingExtraError, match="pip install skorch"):
        dropout_predictions()(3, X)
