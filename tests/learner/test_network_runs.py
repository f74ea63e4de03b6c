"""Runs with networks where something gets in the way: interrupts, unknown classes, nothing left to tell, full disks."""

import resource
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import suffice as sf
from suffice.acquisition import batchbald
from suffice.errors import InvalidValueError, SufficeError
from suffice.learner import network_backend
from suffice.models import DropoutNetwork
from tests.processes import COMMON_MODULES, ForkedProcess

X, Y = load_digits(return_X_y=True)
X = X[:300] / 16.0
Y = Y[:300]


def network(**options: Any) -> DropoutNetwork:
    settings: dict[str, Any] = {"hidden": (16,), "epochs": 3, "samples": 4, "device": "cpu"}
    return DropoutNetwork(**{**settings, **options})


def weights(learner: sf.ActiveLearner) -> Any:
    return torch.cat([tensor.ravel() for tensor in learner.model.module_.state_dict().values()]).numpy()


def interrupt(*_: Any, **__: Any) -> Any:
    raise KeyboardInterrupt


def test_an_interrupted_first_training_leaves_the_learner_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = sf.ActiveLearner(network(), X, initial=10)
    first = learner.ask(10)
    with monkeypatch.context() as patched:
        patched.setattr("suffice.models.deep.trained_module.train", interrupt)
        with pytest.raises(KeyboardInterrupt):
            learner.tell(first, Y[first])
    assert learner.labelled == []
    assert learner.ask(10).tolist() == first.tolist()
    learner.tell(first, Y[first])
    other = sf.ActiveLearner(network(), X, initial=10)
    other.tell(first, Y[first])
    np.testing.assert_array_equal(weights(learner), weights(other))


@pytest.mark.parametrize("name", ["kl", "dropout_contributions"])
def test_an_interrupt_after_the_training_of_a_round_undoes_the_round(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = sf.ActiveLearner(network(), X, initial=10)
    first = learner.ask(10)
    learner.tell(first, Y[first])
    items, before = learner.ask(5), weights(learner)
    with monkeypatch.context() as patched:
        patched.setattr(network_backend, name, interrupt)
        with pytest.raises(KeyboardInterrupt):
            learner.tell(items, Y[items])
    np.testing.assert_array_equal(weights(learner), before)
    assert (learner.model.n_labels_, learner.model.rounds_, len(learner.labelled)) == (10, 1, 10)
    assert learner.ask(5).tolist() == items.tolist()
    learner.tell(items, Y[items])
    again = sf.ActiveLearner(network(), X, initial=10)
    again.tell(first, Y[first])
    again.tell(items, Y[items])
    np.testing.assert_array_equal(weights(learner), weights(again))


def test_rows_of_a_class_that_nobody_met_count_as_wrong() -> None:
    known = np.flatnonzero(Y < 2)
    trace = sf.simulate(
        network(epochs=30), X[known], Y[known], initial=20, steps=2, batch=5, X_test=X[100:], y_test=Y[100:]
    )
    assert 0.5 * np.mean(Y[100:] < 2) < trace.measures["accuracy"][-1] <= np.mean(Y[100:] < 2)
    assert np.isfinite(trace.error).all()


def test_where_no_label_would_tell_anything_the_choice_is_not_the_order_of_the_file() -> None:
    learner = sf.ActiveLearner(network(), X, initial=np.flatnonzero(Y == 0)[:10], seed=1)
    first = learner.ask(10)
    learner.tell(first, Y[first])  # one class: every draw says the same
    items = learner.ask(8)
    assert len(set(items.tolist())) == 8
    assert items.tolist() != sorted(items.tolist())
    assert learner.ask(8).tolist() == items.tolist()
    with pytest.raises(InvalidValueError, match="batchbald compares draws; samples must be 2 or more, not 1"):
        sf.ActiveLearner(network(samples=1), X)


def test_informative_picks_come_first_when_information_runs_out() -> None:
    learner = sf.ActiveLearner(network(), X, acquisition="batchbald", initial=20)
    first = learner.ask(20)
    learner.tell(first, Y[first])
    backend: Any = learner._loop.backend
    rows, rng = np.flatnonzero(backend._chooser.free), np.random.default_rng(0)
    # Every draw is sure, and two labels tell which of the four it is.
    draws = np.repeat(rng.dirichlet(np.ones(10), size=len(rows))[:, None, :], 4, axis=1)
    for row in (30, 70, 90):
        draws[row] = np.eye(10)[rng.permutation(10)[:4]]
    backend._chooser.draws = draws
    items = learner.ask(8)
    assert set(items[:1]) <= set(rows[[30, 70, 90]])
    assert batchbald(draws, 8).gains[1:] == pytest.approx(0.0, abs=1e-12)
    # Then those whose label is least certain.
    certain = -(draws.mean(axis=1) * np.log(np.maximum(draws.mean(axis=1), 1e-300))).sum(axis=1)
    rest = np.setdiff1d(np.arange(len(rows)), np.searchsorted(rows, items[:1]))
    assert set(items[1:]) == set(rows[rest[np.argsort(-certain[rest])[:7]]])


def square(values: Any) -> Any:
    return np.asarray(values) ** 2


def go_on() -> None:
    """Go on with a run that another process began."""
    model = make_pipeline(FunctionTransformer(square), network())
    print(sf.simulate(model, X, Y, initial=20, steps=3, batch=5, checkpoint="run").kl_new_old.sum())


@pytest.mark.slow
def test_a_pipeline_with_a_function_goes_on_in_another_process() -> None:
    model = make_pipeline(FunctionTransformer(square), network())
    sf.simulate(model, X, Y, initial=20, steps=1, batch=5, checkpoint="run")
    pipe, function = subprocess.PIPE, f"{__name__}:{go_on.__name__}"
    with ForkedProcess(function, modules=COMMON_MODULES, stdout=pipe, stderr=pipe) as process:
        said, complaint = process.communicate()
    assert process.returncode == 0, complaint
    assert float(said) == sf.simulate(model, X, Y, initial=20, steps=3, batch=5).kl_new_old.sum()


def test_generators_in_other_states_are_other_runs() -> None:
    def run(steps: int, seed: int) -> sf.Trace:
        rng: Any = np.random.default_rng(seed)
        settings: dict[str, Any] = {"initial": np.arange(20), "batch": 5, "acquisition": "random"}
        return sf.simulate(network(), X, Y, steps=steps, seed=rng, checkpoint="run", **settings)

    run(1, 1)
    with pytest.raises(InvalidValueError, match="is of another run: its seed is Generator"):
        run(2, 2)
    assert len(run(2, 1)) == 2


def test_a_full_disk_ends_in_a_sentence_and_loses_no_round() -> None:
    settings: dict[str, Any] = {"initial": 20, "batch": 5, "checkpoint": "run"}
    sf.simulate(network(), X, Y, steps=1, **settings)
    before, limits = Path("run").read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(SufficeError, match="run cannot be written"):
            sf.simulate(network(), X, Y, steps=2, **settings)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert Path("run").read_bytes() == before
    assert [path.name for path in Path().iterdir()] == ["run"]


def test_a_last_layer_too_large_for_memory_is_refused_before_the_first_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.engines.disk_rows.free_memory", lambda: 10_000)
    with pytest.raises(SufficeError, match=r"posterior of 170 weights of the last layer needs 0\.9 MB"):
        sf.simulate(
            network(approximation="last-layer", classes=range(10)), X, Y, initial=20, steps=1, acquisition="random"
        )
