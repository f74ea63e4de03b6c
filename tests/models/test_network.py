"""The network as an estimator: scikit-learn's contract, training, classes that turn up late, what is refused."""

import copy
import pickle
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator
from torch import nn

from suffice import kl
from suffice.errors import InvalidValueError, MissingExtraError, TrainingDivergedError
from suffice.models import DropoutNetwork
from suffice.models.deep import trained_module
from suffice.models.deep.dropout_layers import Masks
from suffice.models.deep.trained_module import batches, log_draws, train
from suffice.numerics import Floats
from suffice.testing import MODEL_CHECKS

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4)).astype(np.float32)
Y = X[:, :3].argmax(axis=1)
NAMES = np.array(["crow", "dove", "finch"])
IMAGES = RNG.random((8, 28, 28)).astype(np.float32)


def network(**options: Any) -> DropoutNetwork:
    return DropoutNetwork(**{"hidden": (8,), "epochs": 5, "warm_epochs": 2, "device": "cpu", **options})


def module(outputs: int = 3) -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, outputs))


def weights(model: DropoutNetwork) -> Floats:
    return np.concatenate([part.detach().numpy().ravel() for part in model.module_.parameters()])


@pytest.mark.slow
def test_scikit_learn_contract() -> None:
    check_estimator(DropoutNetwork(epochs=60, device="cpu"), on_skip=None)


KEPT = ("the_first_label_may_be_observed", "a_posterior_is_a_value", "learning_leaves_parameters_and_data_alone")


@pytest.mark.parametrize("check", [c for c in MODEL_CHECKS if c.__name__ in KEPT], ids=lambda check: check.__name__)
@pytest.mark.parametrize("approximation", ["dropout", "last-layer"])
def test_conformance(check: Any, approximation: str) -> None:
    assert len([c for c in MODEL_CHECKS if c.__name__ in KEPT]) == 3
    for given_module in ("mlp", module()):
        check(lambda given_module=given_module: network(network=given_module, approximation=approximation), X, Y)


@pytest.mark.parametrize("approximation", ["dropout", "last-layer"])
def test_a_copy_goes_on_alone(approximation: str) -> None:
    model = network(approximation=approximation, keep_optimizer=False).fit(X[:30], Y[:30])
    before = model.sample_proba(X, 3)
    twins = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    for twin in twins:
        np.testing.assert_array_equal(twin.sample_proba(X, 3), before)
        twin.observe(X[30:], Y[30:])
        np.testing.assert_array_equal(model.sample_proba(X, 3), before)
    model.observe(X[30:], Y[30:])
    for twin in twins:
        np.testing.assert_array_equal(twin.sample_proba(X, 3), model.sample_proba(X, 3))
        assert float(kl(twin.posterior, model.posterior)) == 0.0


def test_a_copy_of_one_that_keeps_its_optimizer_is_the_same_network() -> None:
    model = network(keep_optimizer=True).fit(X, Y)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(weights(twin), weights(model))
        np.testing.assert_array_equal(twin.predict_proba(X), model.predict_proba(X))
        assert twin.observe(X[:2], Y[:2]).n_labels_ == 42
    assert model.n_labels_ == 40


def test_a_module_given_is_copied_and_training_starts_from_its_weights() -> None:
    own = module()
    kept = copy.deepcopy(own.state_dict())
    model = network(network=own, learning_rate=1e-12, epochs=1).fit(X, Y)
    assert all(torch.equal(own.state_dict()[name], value) for name, value in kept.items())
    np.testing.assert_allclose(weights(model), np.concatenate([p.numpy().ravel() for p in kept.values()]), atol=1e-9)
    network(network=own, learning_rate=0.1).fit(X, Y)
    assert all(torch.equal(own.state_dict()[name], value) for name, value in kept.items())
    assert clone(model).get_params()["network"] is not None


def test_a_state_is_a_value_to_go_back_to() -> None:
    model = network().fit(X[:30], Y[:30])
    state, before = model.state(), model.sample_proba(X, 3)
    model.observe(X[30:], Y[30:])
    after = weights(model)
    # Twice, for going on from a state must not change it.
    for _ in range(2):
        again = network().restore(X[:30], Y[:30], state)
        np.testing.assert_array_equal(again.sample_proba(X, 3), before)
        assert (again.rounds_, again.n_labels_) == (1, 30)
        np.testing.assert_array_equal(weights(again.observe(X[30:], Y[30:])), after)


@given(st.integers(1, 200), st.one_of(st.none(), st.integers(2, 50)))
def test_batches_hold_every_row_once_and_never_one_alone(size: int, batch_size: int | None) -> None:
    with torch.random.fork_rng():
        found = list(batches(size, batch_size))
    assert sorted(torch.cat(found).tolist()) == list(range(size))
    assert size == 1 or min(len(rows) for rows in found) >= 2
    assert max(len(rows) for rows in found) <= (size if batch_size is None else batch_size + 1)


def test_one_row_left_over_trains_with_normalisation() -> None:
    normed = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Dropout(0.5), nn.Linear(6, 3))
    assert network(network=normed, batch_size=8).fit(X[:33], Y[:33]).n_labels_ == 33


@pytest.mark.parametrize("options", [{}, {"train_samples": 3}, {"keep_optimizer": False, "batch_size": None}], ids=str)
def test_a_seed_repeats_a_run_bit_for_bit(options: dict[str, Any]) -> None:
    runs = [network(seed=seed, **options).fit(X[:30], Y[:30]).observe(X[30:], Y[30:]) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(weights(runs[0]), weights(runs[1]))
    np.testing.assert_array_equal(runs[0].sample_proba(X), runs[1].sample_proba(X))
    assert runs[0].losses_ == runs[1].losses_
    assert np.abs(weights(runs[0]) - weights(runs[2])).max() > 1e-2
    own = [network(network=module(), seed=seed, **options).fit(X, Y) for seed in (1, 2)]
    assert np.abs(weights(own[0]) - weights(own[1])).max() > 1e-4


def test_observing_trains_on_all_labels_from_the_weights_it_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    model, seen = network().fit(X[:30], Y[:30]), []
    before = weights(model)

    def spy(net: Any, inputs: Any, codes: Any, **rest: Any) -> list[float]:
        start = np.concatenate([part.detach().numpy().ravel().copy() for part in net.parameters()])
        seen.append((inputs.numpy().copy(), codes.tolist(), start, rest["recipe"].epochs))
        return train(net, inputs, codes, **rest)

    monkeypatch.setattr("suffice.models.deep.trained_module.train", spy)
    model.observe(X[30:], Y[30:])
    ((rows, codes, start, epochs),) = seen
    np.testing.assert_array_equal(rows, X)
    assert (codes, epochs) == (Y.tolist(), 2)
    np.testing.assert_array_equal(start, before)
    assert (model.rounds_, model.n_labels_, len(model.losses_)) == (2, 40, 2)
    assert np.abs(weights(model) - before).max() > 0.0
    assert model.fit(X[:10], Y[:10]).n_labels_ == 10
    assert model.rounds_ == 1


def test_it_learns() -> None:
    model = network(hidden=(32,), epochs=200, learning_rate=0.01).fit(X, Y)
    assert model.score(X, Y) > 0.9
    assert model.losses_[-1] < 0.5 * model.losses_[0]


def test_a_training_that_diverges_is_an_error_and_leaves_nothing_behind() -> None:
    fresh = network(learning_rate=1e20)
    with pytest.raises(TrainingDivergedError, match=r"the loss became (nan|inf) in epoch \d of 5"):
        fresh.fit(X, Y)
    assert not hasattr(fresh, "machine_")
    model = network().fit(X[:30], Y[:30])
    before, losses, proba = weights(model), model.losses_, model.predict_proba(X)
    with pytest.raises(TrainingDivergedError):
        model.set_params(learning_rate=1e20).fit(X, Y)
    assert (model.n_labels_, model.rounds_, model.losses_) == (30, 1, losses)
    np.testing.assert_array_equal(weights(model), before)
    np.testing.assert_array_equal(model.predict_proba(X), proba)
    with pytest.raises(InvalidValueError, match="X contains an infinity"):
        model.fit(np.full((2, 4), np.inf), [0, 1])


def fail(model: DropoutNetwork, failure: Any, label: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the model observe a label, and fail after five steps of the training."""
    real, calls = trained_module.averaged_loss, []

    def failing(*args: Any) -> torch.Tensor:
        calls.append(1)
        if len(calls) == 6:
            raise failure("enough")
        return real(*args)

    with monkeypatch.context() as patched:
        patched.setattr(trained_module, "averaged_loss", failing)
        with pytest.raises(failure, match="enough"):
            model.observe(X[30:31], [label])
    assert len(calls) == 6


@pytest.mark.parametrize("failure", [KeyboardInterrupt, TrainingDivergedError])
@pytest.mark.parametrize("label", [1, 9], ids=["known class", "new class"])
def test_half_a_training_leaves_the_model_as_it_was(failure: Any, label: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = network(batch_size=8).fit(X[:30], Y[:30])
    before, proba, classes = weights(model), model.predict_proba(X), model.classes_.tolist()
    fail(model, failure, label, monkeypatch)
    assert (model.n_labels_, model.rounds_, model.classes_.tolist()) == (30, 1, classes)
    np.testing.assert_array_equal(weights(model), before)
    np.testing.assert_array_equal(model.predict_proba(X), proba)
    assert not model.module_.training


@pytest.mark.parametrize("label", [1, 9], ids=["known class", "new class"])
def test_after_half_a_training_it_goes_on_as_one_that_never_failed(label: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model, twin = (network(batch_size=8).fit(X[:30], Y[:30]) for _ in range(2))
    fail(model, KeyboardInterrupt, label, monkeypatch)
    # Adam's averages are those of before, too.
    np.testing.assert_array_equal(weights(model.observe(X[30:], Y[30:])), weights(twin.observe(X[30:], Y[30:])))


@pytest.mark.parametrize("keep", [True, False])
def test_a_new_optimizer_moves_every_weight_by_its_step_and_one_kept_does_not(keep: bool) -> None:
    options: dict[str, Any] = {"warm_epochs": 1, "batch_size": None, "learning_rate": 0.003, "keep_optimizer": keep}
    model = network(epochs=50, **options).fit(X[:30], Y[:30])
    before = weights(model)
    moved = np.abs(weights(model.observe(X[30:], Y[30:])) - before)
    share = np.isclose(moved[moved > 0.0], 0.003, rtol=0.01).mean()
    assert share < 0.2 if keep else share > 0.9


@pytest.mark.parametrize("kind", ["words", "objects", "numbers", "booleans", "floats"])
def test_classes_of_any_kind(kind: str) -> None:
    kinds: dict[str, Any] = {
        "words": NAMES[Y],
        "objects": NAMES[Y].astype(object),
        "numbers": Y * 7 - 3,
        "booleans": Y > 0,
        "floats": Y.astype(float),
    }
    y = kinds[kind]
    model = network(epochs=60, learning_rate=0.01).fit(X, y)
    np.testing.assert_array_equal(model.classes_, np.unique(y))
    predicted = model.predict(X)
    assert set(predicted.tolist()) <= set(y.tolist())
    assert float((predicted == y).mean()) > 0.6
    proba = model.predict_proba(X)
    assert proba.shape == (40, len(model.classes_))
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-9)


@pytest.mark.parametrize("approximation", ["dropout", "last-layer"])
def test_a_class_met_late_grows_the_head_and_keeps_what_is_learned(approximation: str) -> None:
    few = np.flatnonzero(Y != 1)
    model = network(approximation=approximation).fit(X[few], NAMES[Y[few]])
    before, head = weights(model)[: 4 * 8 + 8], copy.deepcopy(model.module_[-1])
    model.prepare(["dove"])
    np.testing.assert_array_equal(model.classes_, NAMES)
    grown = model.module_[-1]
    assert torch.equal(grown.weight[[0, 2]], head.weight)
    assert torch.equal(grown.bias[[0, 2]], head.bias)
    np.testing.assert_array_equal(weights(model)[: 4 * 8 + 8], before)
    model.observe(X[Y == 1], NAMES[Y[Y == 1]])
    assert model.predict_proba(X).shape == (40, 3)
    assert model.n_labels_ == 40
    if approximation == "dropout":
        assert [layer.weight.shape for layer in model.posterior.layers] == [(8, 4), (3, 8)]
    model.prepare(["crow"])
    assert model.module_[-1] is grown


def test_a_single_class_so_far() -> None:
    model = network().fit(X, np.full(40, "dove"))
    np.testing.assert_array_equal(model.predict_proba(X), np.ones((40, 1)))
    assert set(model.predict(X)) == {"dove"}
    model.observe(X[:1], ["crow"])
    np.testing.assert_array_equal(model.classes_, ["crow", "dove"])
    assert model.predict_proba(X).shape == (40, 2)
    known = network(classes=NAMES).fit(X, np.full(40, "dove"))
    assert known.predict_proba(X).shape == (40, 3)
    with pytest.raises(InvalidValueError, match=r"'owl'.*not in classes="):
        known.observe(X[:1], ["owl"])
    assert known.n_labels_ == 40


def test_missing_values_and_wrong_shapes_are_named() -> None:
    model, hole = network().fit(X, Y), X.copy()
    hole[4, 2] = np.nan
    for method in ("fit", "observe", "predict", "sample_proba"):
        with pytest.raises(InvalidValueError, match="X contains NaN at row 4, column 2"):
            getattr(model, method)(*((hole, Y) if method in ("fit", "observe") else (hole,)))
    with pytest.raises(InvalidValueError, match="infinity"):
        model.predict(np.full((1, 4), 1e300))
    with pytest.raises(InvalidValueError, match="NaN at row 1"):
        network().fit(X[:2], [0.0, np.nan])
    with pytest.raises(ValueError, match="expecting 4 features"):
        model.predict(X[:, :3])
    with pytest.raises(InvalidValueError, match="k must be"):
        model.sample_proba(X, 0)


def test_rows_of_another_shape_than_those_learned_from_are_named() -> None:
    table = network().fit(IMAGES, np.arange(8) % 2)
    assert table.predict(IMAGES).shape == (8,)
    with pytest.raises(ValueError, match="28"):
        table.predict(IMAGES[:, :, :27])


def test_images_as_they_come() -> None:
    options: dict[str, Any] = {"network": "mnist", "epochs": 1, "samples": 3}
    shapes = [IMAGES, IMAGES[:, None], IMAGES.reshape(8, 784)]
    models = [network(**options).fit(images, np.arange(8) % 2) for images in shapes]
    found = [model.sample_proba(images) for model, images in zip(models, shapes, strict=True)]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    with pytest.raises(InvalidValueError, match="each row must hold 784 numbers, 1x28x28, not 729"):
        network(**options).fit(IMAGES[:, :27, :27], np.arange(8) % 2)


def test_the_shape_of_a_row_for_a_module_given() -> None:
    convolution = nn.Sequential(nn.Conv2d(1, 4, 2), nn.Dropout2d(0.5), nn.ReLU(), nn.Flatten(), nn.Linear(4, 3))
    model = network(network=convolution, input_shape=(1, 2, 2)).fit(X, Y)
    assert model.predict_proba(X).shape == (40, 3)
    with pytest.raises(InvalidValueError, match="each row must hold 6 numbers, 1x2x3, not 4"):
        network(network=convolution, input_shape=(1, 2, 3)).fit(X, Y)


def test_mixed_precision_is_near_single_precision() -> None:
    model = network(precision="bfloat16", hidden=(16,), epochs=20).fit(X, Y)
    found = model.sample_proba(X, 4)
    single = log_draws(model.module_, torch.tensor(X), Masks(4, 0)).exp().numpy()
    assert found.dtype == single.dtype == np.float32
    assert 0.0 < np.abs(found - single).max() < 0.05


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"network": "cnn"}, "network must be one of mlp, mnist, or a torch.nn.Module, not 'cnn'"),
        ({"network": None}, "network must be one of"),
        ({"precision": "half"}, "precision must be one of auto, float32, bfloat16, not 'half'"),
        ({"approximation": "exact"}, "approximation must be one of dropout, last-layer, not 'exact'"),
        ({"device": "gpu"}, "device must be a name that torch knows, such as cpu or cuda"),
        ({"device": 3.5}, "device must be a name"),
        ({"epochs": 0}, "epochs must be a whole number"),
        ({"warm_epochs": 0}, "warm_epochs must be"),
        ({"batch_size": 0}, "batch_size must be"),
        ({"samples": 1.5}, "samples must be"),
        ({"train_samples": 0}, "train_samples must be"),
        ({"learning_rate": 0.0}, "learning_rate must be a number above 0"),
        ({"weight_decay": -1.0}, "weight_decay must be a number 0 or above"),
        ({"dropout": 1.0}, "dropout must be a number above 0 and below 1"),
        ({"sigma": 0.0}, "sigma must be"),
        ({"alpha": -1.0}, "alpha must be a number above 0, or None"),
        ({"hidden": (8, 0)}, "hidden must be"),
        ({"hidden": 8}, "hidden must be"),
        ({"input_shape": 4}, "input_shape must be"),
        ({"seed": -1}, "seed must be"),
    ],
    ids=lambda part: str(part) if isinstance(part, dict) else "",
)
def test_bad_settings_are_named(options: dict[str, Any], message: str) -> None:
    model = network(**options)
    with pytest.raises(InvalidValueError, match=message):
        model.fit(X, Y)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
@pytest.mark.parametrize("device", ["cuda", "cuda:3", "mps"])
def test_a_device_that_is_not_there_is_named(device: str) -> None:
    with pytest.raises(InvalidValueError, match=rf"device .*{device}"):
        network(device=device).fit(X, Y)


WITHOUT_TORCH = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
sys.meta_path.insert(0, Missing())
import suffice.models
model = suffice.models.DropoutNetwork()
assert "torch" not in sys.modules
print(suffice.models.BayesianRidge(1.0, 1.0).fit([[0.0], [1.0]], [0.0, 1.0]).n_labels_)
try:
    model.fit([[0.0], [1.0]], [0, 1])
except suffice.errors.SufficeError as error:
    print(type(error).__name__, isinstance(error, ImportError), error)
"""


def test_without_torch_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"A dropout network needs torch.* -m pip install 'torch>=[0-9.]+'$"):
        DropoutNetwork().fit([[0.0], [1.0]], [0, 1])


@pytest.mark.slow
def test_without_torch_the_others_work_and_this_one_says_how_to_get_it() -> None:
    found = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    first, second = found.stdout.splitlines()
    assert first == "2"
    assert second.startswith("MissingExtraError True A dropout network needs torch")
    assert re.search(r"Run: .* -m pip install 'torch>=[0-9.]+'$", second)
