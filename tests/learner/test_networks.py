"""Runs with a network: rounds of training, what is recorded, and runs that go on after they were cut."""

import copy
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

import suffice as sf
from suffice.acquisition import NAMES
from suffice.errors import InvalidValueError, SufficeError, TrainingDivergedError
from suffice.learner.simulation import save_checkpoint
from suffice.models import BayesianRidge, DropoutNetwork, RadialBasis
from suffice.models.deep import trained_module
from suffice.models.predictive import quality
from suffice.session.error_estimate import class_error
from suffice.trace import Trace
from tests.thoroughness import crossed

DIGITS = load_digits()
X, Y = DIGITS.data[:90] / 16.0, DIGITS.target[:90]
X_TEST, Y_TEST = DIGITS.data[200:240] / 16.0, DIGITS.target[200:240]
WORDS = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
ARRAYS = ("initial", "indices", "n_labelled", "kl_new_old", "kl_old_new", "error")


def network(**options: Any) -> DropoutNetwork:
    settings: dict[str, Any] = {"hidden": (16,), "epochs": 10, "warm_epochs": 2, "samples": 4, "learning_rate": 0.01}
    return DropoutNetwork(**{**settings, "device": "cpu", **options})


def run(model: Any = None, **options: Any) -> Trace:
    settings: dict[str, Any] = {"initial": 20, "steps": 4, "batch": 3, "acquisition": "bald", "seed": 1}
    data: dict[str, Any] = {"X_pool": X, "y_pool": Y, "X_test": X_TEST, "y_test": Y_TEST}
    return sf.simulate(network() if model is None else model, **{**settings, **data, **options})


def same(one: Trace, other: Trace) -> None:
    """Exactly the same run."""
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert set(one.measures) == set(other.measures)
    for name, values in one.measures.items():
        np.testing.assert_array_equal(values, other.measures[name], err_msg=name)
    assert (one.estimated, dict(one.about)) == (other.estimated, dict(other.about))


def begun(model: Any = None, y: Any = Y, **options: Any) -> sf.ActiveLearner:
    learner = sf.ActiveLearner(network() if model is None else model, X, **{"seed": 1, "initial": 20, **options})
    first = learner.ask(20)
    learner.tell(first, y[first])
    return learner


each_approximation = pytest.mark.parametrize("approximation", ["dropout", "last-layer"])


@pytest.mark.parametrize(
    ("approximation", "acquisition"), crossed(["dropout", "last-layer"], ["batchbald", "bald"], every=2)
)
def test_the_loop_is_the_simulation(approximation: str, acquisition: str) -> None:
    model = network(approximation=approximation)
    learner = begun(model, acquisition=acquisition, criterion=sf.ErrorStability(0.2, calibration=1))
    told = []
    for _ in range(3):
        items = learner.ask(3)
        assert learner.ask(3).tolist() == items.tolist()
        assert learner.ask().tolist() == items[:1].tolist()
        assert len({*items.tolist()} - {*learner.labelled}) == 3
        told.append(learner.tell(items, Y[items]))
    trace = run(model, steps=3, acquisition=acquisition)
    for name in ARRAYS[:-1]:
        np.testing.assert_array_equal(getattr(learner.trace(), name), getattr(trace, name))
    assert told == trace.replay(sf.ErrorStability(0.2, calibration=1))
    assert [verdict.ready for verdict in told] == [False, True, True]
    assert told[-1].certificate is not None
    assert told[-1].certificate.statement == f"Nothing is guaranteed: {trace.estimated}."


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", NAMES["network"])
def test_every_acquisition(name: str) -> None:
    trace = run(acquisition=name, steps=3)
    picks = trace.indices.ravel()
    assert len(np.unique([*trace.initial, *picks])) == 29
    if name == "order":
        assert picks.tolist() == [i for i in range(90) if i not in trace.initial][:9]
    with pytest.raises(InvalidValueError, match=rf"acquisition .*is one of .*{name}.*not 'variance'"):
        run(acquisition="variance")
    if name in ("random", "k-centre"):
        assert picks.tolist() == run(network(seed=5), acquisition=name, steps=3).indices.ravel().tolist()


@pytest.mark.parametrize("name", ["bald", "entropy", "margin"])
def test_what_is_asked_for_is_what_the_network_is_unsure_of(name: str) -> None:
    learner = begun(network(samples=400, epochs=60), acquisition=name)
    chosen, left = learner.ask(5), np.setdiff1d(np.arange(90), learner.labelled)
    draws = learner.model.sample_proba(X, 400, seed=99)
    mean = draws.mean(axis=1)
    top, entropies = np.sort(mean, axis=1), -np.sum(mean * np.log(mean), axis=1)
    expected = -np.sum(draws * np.log(draws), axis=2).mean(axis=1)
    scores = {"entropy": entropies, "bald": entropies - expected, "margin": top[:, -2] - top[:, -1]}
    # Other masks than those of the choice: the ranks agree, not the numbers.
    ranks = np.argsort(np.argsort(-scores[name][left]))
    assert ranks[np.searchsorted(left, chosen)].max() < 15


def test_words_as_labels_and_a_class_that_turns_up_late() -> None:
    y = WORDS[Y]
    late = np.flatnonzero(y == "six")
    learner = sf.ActiveLearner(network(), X, initial=np.flatnonzero(y != "six")[:20], acquisition="entropy")
    first = learner.ask(20)
    learner.tell(first, y[first])
    assert "six" not in learner.model.classes_
    learner.tell(late[:2], y[late[:2]])
    assert "six" in learner.model.classes_
    item = learner.ask()
    learner.tell(item, y[item])
    assert (learner.trace().kl_new_old > 0.0).all()
    assert learner.model.predict_proba(X).shape == (90, len(set(y[learner.labelled])))


def test_items_skipped_are_not_asked_for() -> None:
    learner = begun(acquisition="bald")
    skipped = learner.ask(4)
    learner.skip(skipped)
    assert not set(learner.ask(4)) & set(skipped)
    left = np.setdiff1d(np.arange(90), [*learner.labelled, *skipped])
    learner.skip(left[2:])
    assert sorted(learner.ask(9)) == left[:2].tolist()
    assert learner.skip(left[:2]).stop


def test_a_corrected_label_is_trained_on_and_the_past_stays() -> None:
    learner = begun()
    items = learner.ask(2)
    learner.tell(items, (Y[items] + 1) % 10)
    before = learner.trace()
    for item in items:
        learner.correct(item, Y[item])
    np.testing.assert_array_equal(learner.trace().kl_new_old, before.kl_new_old)
    assert learner.model.y_.tolist() == Y[learner.labelled].tolist()
    assert learner.model.rounds_ == 4


@pytest.mark.parametrize("correction", [0, 7], ids=["to a known class", "to a new one"])
def test_a_class_that_a_correction_takes_back(correction: int) -> None:
    learner = sf.ActiveLearner(network(), X, initial=np.flatnonzero(Y < 3)[:15], acquisition="bald")
    first, wrong = learner.ask(15), int(np.flatnonzero(Y == 0)[-1])
    learner.tell(first, Y[first])
    learner.tell(wrong, 9)
    learner.correct(wrong, correction)
    learner.tell(learner.ask(), Y[learner.ask()])
    assert len(learner.labelled) == 17
    np.testing.assert_allclose(learner.model.predict_proba(X).sum(axis=1), 1.0)


def test_a_start_with_one_class() -> None:
    learner = sf.ActiveLearner(network(), X, initial=1)
    for _ in range(4):
        item = learner.ask()
        learner.tell(item, Y[item])
    assert (len(learner.labelled), learner.trace().about["acquisition"]) == (4, "batchbald")


def test_a_copy_of_a_learner_goes_on_alike() -> None:
    learner, found = begun(network(keep_optimizer=False)), []
    for twin in (copy.deepcopy(learner), pickle.loads(pickle.dumps(learner)), learner):
        for _ in range(2):
            items = twin.ask(2)
            twin.tell(items, Y[items])
        found.append((twin.labelled, twin.trace().kl_new_old.tolist()))
    assert found[0] == found[1] == found[2]


def exploding(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on every loss is NaN."""
    real = trained_module.averaged_loss
    monkeypatch.setattr(trained_module, "averaged_loss", lambda *args: real(*args) * float("nan"))


def test_a_training_that_diverges_leaves_the_learner_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = begun(y=Y % 3)
    verdict, before = learner.verdict, learner.model.predict_proba(X)
    with monkeypatch.context() as patched:
        exploding(patched)
        for label in (1, 8):
            with pytest.raises(TrainingDivergedError, match=r"round 1: the loss became nan.*as it was before"):
                learner.tell(learner.ask(), [label])
    assert (learner.verdict, len(learner.labelled)) == (verdict, 20)
    assert learner.model.classes_.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(learner.model.predict_proba(X), before)
    assert learner.tell(learner.ask(), [1]).n_labelled == 21


@pytest.mark.one_in(2)
@each_approximation
def test_what_is_recorded(approximation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    real, found, divergences = DropoutNetwork.log_draws, [], []

    def spy(self: DropoutNetwork, inputs: Any, draws: int, seed: int) -> Any:
        asked.append((len(inputs), seed))
        return real(self, inputs, draws, seed)

    def watch(model: DropoutNetwork) -> dict[str, Any]:
        seed = [seed for rows, seed in asked if rows == 40][-1]
        draws = real(model, model.machine_.tensor(X_TEST), model.samples, seed)
        found.append(quality(draws, Y_TEST))
        if approximation == "last-layer":
            before = model.last_layer_at(model.n_labels_ - 3).posterior()
            divergences.append((float(sf.kl(model.posterior, before)), float(sf.kl(before, model.posterior))))
        return {"labels": model.n_labels_, "pair": np.arange(2.0)}

    monkeypatch.setattr(DropoutNetwork, "log_draws", spy)
    model = network(approximation=approximation, classes=range(10))
    trace = run(model, watch=watch, record=())
    layers = {"contributions": (4, 2)} if approximation == "dropout" else {}
    each = dict.fromkeys(("loss", "accuracy", "calibration_error", "labels"), (4,))
    assert {name: values.shape for name, values in trace.measures.items()} == {**each, **layers, "pair": (4, 2)}
    for name in ("error", "accuracy", "calibration_error"):
        values = trace.error if name == "error" else trace.measures[name]
        np.testing.assert_array_equal(values, [getattr(each, name) for each in found])
    assert trace.measures["labels"].tolist() == trace.n_labelled.tolist() == [23, 26, 29, 32]
    if layers:
        np.testing.assert_allclose(trace.measures["contributions"].sum(axis=1), trace.kl_new_old, rtol=1e-12)
        np.testing.assert_array_equal(trace.kl_new_old, trace.kl_old_new)
    else:
        np.testing.assert_allclose(np.column_stack([trace.kl_new_old, trace.kl_old_new]), divergences, rtol=1e-9)
    # The test error is measured by the same masks every round, the choice made by new ones.
    tested, chosen = ([seed for rows, seed in asked if (rows == 40) is judged] for judged in (True, False))
    assert (len(set(tested)), len(set(chosen)), len(chosen)) == (1, 4, 4)
    assert not set(tested) & set(chosen)
    trace.save(tmp_path / "run.npz")
    same(Trace.load(tmp_path / "run.npz"), trace)
    np.testing.assert_array_equal(run(model).error, trace.error)


@pytest.mark.parametrize("model", [BayesianRidge(), BayesianRidge(1.0, 5.0)], ids=["learned", "fixed"])
def test_another_model_is_watched_too(model: BayesianRidge) -> None:
    options: dict[str, Any] = {"steps": 25, "initial": 10, "batch": 1, "acquisition": "variance"}
    plain = run(model, **options)
    watched = run(model, watch=lambda fitted: {"mean": fitted.predict(X_TEST[:2])}, **options)
    assert watched.indices.tolist() == plain.indices.tolist()
    np.testing.assert_allclose(watched.kl_new_old, plain.kl_new_old, rtol=1e-6)
    assert watched.measures["mean"].shape == (25, 2)
    rows = [*plain.initial, *plain.indices]
    if model.alpha is not None:
        np.testing.assert_allclose(watched.measures["mean"][-1], model.fit(X[rows], Y[rows]).predict(X_TEST[:2]))


def test_what_is_watched_predicts_for_inputs_as_the_caller_has_them() -> None:
    ridge = make_pipeline(RadialBasis(3), BayesianRidge(1.0, 5.0))
    trace = run(ridge, acquisition="variance", watch=lambda model: {"mean": model.predict(X_TEST[:2])})
    assert trace.measures["mean"].shape == (4, 2)


def test_a_scaler_before_the_network() -> None:
    scaler = StandardScaler().fit(X)
    trace = run(make_pipeline(StandardScaler(), network()))
    plain = run(X_pool=scaler.transform(X), X_test=scaler.transform(X_TEST))
    np.testing.assert_array_equal(trace.kl_new_old, plain.kl_new_old)
    np.testing.assert_array_equal(trace.error, plain.error)
    learner = begun(make_pipeline(StandardScaler(), network(epochs=60)))
    assert learner.model.score(X, Y) > 0.4


@pytest.mark.parametrize("acquisition", ["batchbald", "k-centre"])
def test_images_and_a_module_of_ones_own(acquisition: str) -> None:
    convolution = [nn.Unflatten(1, (1, 8)), nn.Conv2d(1, 4, 3), nn.Dropout2d(0.5), nn.ReLU(), nn.MaxPool2d(2)]
    module = nn.Sequential(*convolution, nn.Flatten(), nn.Linear(36, 10))
    squares: dict[str, Any] = {"X_pool": X.reshape(-1, 8, 8), "X_test": X_TEST.reshape(-1, 8, 8)}
    trace = run(network(network=module), acquisition=acquisition, **squares)
    assert trace.measures["contributions"].shape == (4, 2)
    assert np.isfinite(trace.error).all()


def test_looking_back() -> None:
    trace = sf.audit(network(), X, Y, initial=60, batch=10, X_test=X_TEST, y_test=Y_TEST)
    assert trace.indices.tolist() == np.arange(60, 90).reshape(3, 10).tolist()
    assert trace.ratio(calibration=1)[0] == 1.0
    again = run(initial=np.arange(60), batch=10, steps=3, acquisition="order")
    np.testing.assert_array_equal(trace.kl_new_old, again.kl_new_old)


def cut_after(saves: int, monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
    """Start a run and end it once it has been saved so often; the first time is before its first round."""
    done: list[int] = []

    def save(*args: Any) -> None:
        save_checkpoint(*args)
        done.append(1)
        if len(done) == saves:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("suffice.learner.simulation.save_checkpoint", save)
        with pytest.raises(KeyboardInterrupt):
            run(**options)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("saves", "kind"),
    crossed([1, 2, 4], [("batchbald", "dropout"), ("random", "last-layer"), ("k-centre", "dropout")], every=3),
)
def test_a_run_cut_anywhere_goes_on_as_if_it_never_was(
    saves: int, kind: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acquisition, approximation = kind
    options: dict[str, Any] = {"acquisition": acquisition, "watch": lambda model: {"n": model.n_labels_}}
    options["model"], path = network(approximation=approximation), tmp_path / "run"
    cut_after(saves, monkeypatch, checkpoint=path, **options)
    # What a run that was killed while it wrote leaves behind does no harm, and is gone afterwards.
    path.with_name("run.part").write_bytes(b"half a file")
    whole = run(**options)
    same(run(checkpoint=str(path), **options), whole)
    assert [file.name for file in tmp_path.iterdir()] == ["run"]
    # Once more, and it is only read.
    same(run(checkpoint=path, **options), whole)


def test_more_steps_later_and_fewer(tmp_path: Path) -> None:
    options: dict[str, Any] = {"watch": lambda model: {"n": model.n_labels_}}
    for steps in (2, 4, 3):
        same(run(checkpoint=tmp_path / "run", steps=steps, **options), run(steps=steps, **options))


def test_a_class_met_late_is_there_when_the_run_goes_on(tmp_path: Path) -> None:
    options: dict[str, Any] = {"initial": np.flatnonzero(Y < 4)[:8], "acquisition": "random", "batch": 4}
    run(steps=2, checkpoint=tmp_path / "run", **options)
    same(run(checkpoint=tmp_path / "run", **options), run(**options))


def test_a_whole_number_of_numpy_as_a_seed(tmp_path: Path) -> None:
    run(checkpoint=tmp_path / "run", steps=1, seed=np.int64(3))
    trace = run(checkpoint=tmp_path / "run", seed=np.int64(3))
    np.testing.assert_array_equal(trace.kl_new_old, run(seed=3).kl_new_old)


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run"
    run(checkpoint=path, steps=1)
    kept = path.read_bytes()
    of_settings = [{"seed": 2}, {"acquisition": "entropy"}, {"batch": 2}, {"model": network(warm_epochs=3)}]
    of_data: list[Any] = [{"initial": np.arange(20)}, {"y_test": Y_TEST[::-1]}, {"X_test": X_TEST + 1.0}]
    for options in (*of_settings, *of_data):
        name = next(iter(options))
        with pytest.raises(InvalidValueError, match=rf"checkpoint .*run is of another run: its {name}.* is .*Remove"):
            run(checkpoint=path, **options)
    with pytest.raises(InvalidValueError, match="without watch"):
        run(checkpoint=path, watch=lambda _: {})
    assert path.read_bytes() == kept


def test_modules_that_differ_where_a_long_description_is_cut_tell_runs_apart(tmp_path: Path) -> None:
    layers = [nn.Identity() for _ in range(40)]
    one, other = (nn.Sequential(*layers, nn.Dropout(rate), *layers, nn.Linear(64, 10)) for rate in (0.5, 0.1))
    run(network(network=one), checkpoint=tmp_path / "run", steps=1)
    with pytest.raises(InvalidValueError, match="of another run"):
        run(network(network=other), checkpoint=tmp_path / "run")


def test_measures_of_a_run_that_was_watched_at_first(tmp_path: Path) -> None:
    run(checkpoint=tmp_path / "run", steps=2, watch=lambda model: {"n": model.n_labels_})
    try:
        rows = {len(values) for values in run(checkpoint=tmp_path / "run", steps=4).measures.values()}
    except InvalidValueError as error:
        rows = {4 if "watch" in str(error) else 0}
    assert rows == {4}


def test_places_that_hold_no_run_or_cannot(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    (tmp_path / "empty").touch()
    torch.save({"weights": torch.zeros(3)}, tmp_path / "other")
    (tmp_path / "folder").mkdir()
    for name in ("text", "empty", "other"):
        with pytest.raises(InvalidValueError, match=rf"checkpoint .*{name} is not a run that suffice saved"):
            run(checkpoint=tmp_path / name)
    for place in (tmp_path / "no" / "run", tmp_path / "text" / "run", tmp_path / "folder", Path("/proc/run")):
        with pytest.raises(SufficeError, match=rf"cannot be saved to {place}: |{place} cannot be written"):
            run(checkpoint=place)
    with pytest.raises(InvalidValueError, match="checkpoint is for networks"):
        sf.simulate(LinearRegression(), X, Y, steps=2, checkpoint=tmp_path / "linear")


def test_a_loss_that_is_no_number_names_round_and_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run"
    with monkeypatch.context() as patched:
        failing: dict[str, Any] = {"progress": lambda done, _: exploding(patched) if done == 2 else None}
        with pytest.raises(TrainingDivergedError, match=r"^round 3: the loss became nan .* saved in /.*run$"):
            run(checkpoint=path, **failing)
    same(run(checkpoint=path, steps=2), run(steps=2))
    same(run(checkpoint=path), run())
    with pytest.raises(TrainingDivergedError, match=r"^round 0: .*Lower learning_rate"):
        run(network(learning_rate=1e20), checkpoint=tmp_path / "other")


# The default rule


@pytest.mark.slow
@pytest.mark.parametrize("approximation", ["dropout", "last-layer"])
def test_what_the_default_rule_is_told(approximation: str) -> None:
    """Against draws of the network itself, and predictions of random items before their labels were learned."""
    model = network(approximation=approximation, samples=6, classes=range(10))
    pool, labels = DIGITS.data[:150] / 16.0, DIGITS.target[:150]
    learner = sf.ActiveLearner(model, pool, initial=20, seed=2)
    first = learner.ask(20)
    learner.tell(first, labels[first])
    masks = int(np.random.SeedSequence((0, 2, 0)).generate_state(1)[0])
    earlier: dict[int, Any] = {20: learner.current_model.sample_proba(pool, seed=masks).mean(axis=1)}
    # Of random labels: whether each was predicted wrong, how likely that was, and the number of labels then.
    losses: list[tuple[bool, float, int]] = []
    for n in (30, 40, 50, 60):
        items = learner.ask(10)
        p = learner.current_model.predict_proba(pool)
        learner.tell(items, labels[items])
        random = [item for item in learner.random_items if item in items.tolist()]
        assert len(random) == 2
        losses += [(p[item].argmax() != labels[item], 1.0 - p[item].max(), n - 10) for item in random]
        wrong, expected, then = np.array(losses, dtype=float).T
        left = np.setdiff1d(np.arange(150), learner.labelled)
        own = 1.0 - learner.current_model.predict_proba(pool[left]).astype(np.float64).max(axis=1)
        chosen = 1.0 - len(learner.random_items) / n
        fallen = (then / n) ** (1.0 / 5.0 + chosen / 6.0)
        by_hand = class_error(own, expected, wrong * fallen, (then / n) ** 2)
        found = {name: values[-1] for name, values in learner.trace().measures.items()}
        assert found["calibration"] == pytest.approx(by_hand.value / by_hand.model_alone, rel=1e-5)
        draws = learner.current_model.sample_proba(pool, seed=masks).astype(np.float64)
        rest, mean = np.setdiff1d(np.arange(150), learner.labelled), draws.mean(axis=1)
        known = draws.max(axis=2).mean(axis=1)
        assert found["unlabelled_error"] == pytest.approx(1.0 - mean.max(axis=1)[rest].mean(), rel=1e-4)
        assert found["reducible_error"] == pytest.approx((known - mean.max(axis=1))[rest].mean(), rel=1e-4, abs=1e-6)
        past = max(k for k in earlier if k <= max(n / 2, 20))
        gain = mean.max(axis=1) - mean[np.arange(150), earlier[past].argmax(axis=1)]
        assert found["recent_gain"] == pytest.approx(max(1.0, n / 2 / (n - past)) * gain.mean(), rel=1e-4, abs=1e-6)
        assert (found["error_scale"], found["pool_size"]) == (1.0, 150)
        earlier[n] = mean
    assert learner.random_labels == 8
    assert learner.verdict.rule == "LabelWorth"
    estimate = learner.error_estimate()
    assert estimate.value == pytest.approx(by_hand.value, rel=1e-5)


@pytest.mark.slow
def test_the_default_rule_stops_a_network_and_says_the_same_when_replayed() -> None:
    pool, labels = DIGITS.data[:400] / 16.0, DIGITS.target[:400]
    learner = sf.ActiveLearner(network(samples=6, warm_epochs=10), pool, initial=20, seed=2)
    while not learner.verdict.stop:
        items = learner.ask(5)
        learner.tell(items, labels[items])
    assert learner.verdict.rule == "LabelWorth"
    assert 35 <= len(learner.labelled) < 300
    decision = learner.decision(compare=False)
    assert (decision.rule, decision.n_labelled) == ("LabelWorth", len(learner.labelled))
    assert decision.error is not None
    assert decision.error.random_labels == learner.random_labels == (len(learner.labelled) - 20) // 5
    steps = len(learner.verdicts)
    trace = sf.simulate(network(samples=6, warm_epochs=10), pool, labels, initial=20, steps=steps, batch=5, seed=2)
    assert trace.about["random_share"] == 0.2
    assert trace.indices.tolist() == learner.trace().indices.tolist()
    assert trace.replay(sf.LabelWorth()) == learner.verdicts
    assert len(set(trace.measures["calibration"])) > 2


def test_random_labels_go_on_when_a_cut_run_does(tmp_path: Path) -> None:
    options: dict[str, Any] = {"acquisition": None, "batch": 5}
    run(steps=2, checkpoint=tmp_path / "run", **options)
    resumed, whole = run(checkpoint=tmp_path / "run", **options), run(**options)
    same(resumed, whole)
    assert resumed.random_items.tolist() == whole.random_items.tolist()
    assert len(set(whole.measures["calibration"])) > 1


def test_the_calibration_error_is_not_the_calibration_by_random_labels() -> None:
    trace = run(acquisition=None, batch=5)
    assert not np.array_equal(trace.measures["calibration_error"], trace.measures["calibration"])
    plain = run(acquisition=None, batch=5, record=())
    np.testing.assert_array_equal(trace.measures["calibration_error"], plain.measures["calibration_error"])
    assert "calibration" not in plain.measures


@pytest.mark.parametrize("record", [(), sf.LabelWorth(), "all"], ids=["nothing", "LabelWorth", "all"])
def test_records_of_version_0_10_called_the_calibration_error_calibration(record: Any, tmp_path: Path) -> None:
    trace = run(record=record)
    measures = dict(trace.measures)
    # Where the field of a step was recorded, it replaced the calibration error.
    error = measures.pop("calibration_error")
    measures = {"calibration": error, **measures}
    replace(trace, measures=measures).save(tmp_path / "run.npz")
    again = Trace.load(tmp_path / "run.npz")
    if record == ():
        np.testing.assert_array_equal(again.measures["calibration_error"], error)
        assert "calibration" not in again.recorded
    else:
        assert "calibration_error" not in again.measures
        np.testing.assert_array_equal(again.measures["calibration"], trace.measures["calibration"])


def test_a_checkpoint_of_version_0_10_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "run"
    run(checkpoint=path, steps=2)
    saved = torch.load(path, weights_only=True)
    for part in saved["state"]["course"]["past"]:
        for of in (part["measures"], part["types"]):
            of["calibration"] = of.pop("calibration_error")
    torch.save(saved, path)
    same(run(checkpoint=path), run())
