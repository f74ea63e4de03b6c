"""Mistakes found in other implementations with stop sets and pools, tested on ours."""

from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.criteria import cohen_kappa
from suffice.errors import InvalidValueError
from suffice.models import BayesianLogistic, GaussianProcess
from suffice.numerics import Floats


def pool(m: int = 90, seed: int = 0) -> tuple[Floats, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 2))
    return X, (X[:, 0] + 0.5 * rng.normal(size=m) > 0.0).astype(int)


def models_of(X: Floats, y: Any, **options: Any) -> tuple[sf.Trace, list[Any]]:
    models: list[Any] = []

    def look(fitted: Any) -> dict[str, Any]:
        models.append(fitted)
        return {}

    model = BayesianLogistic(alpha=1.0, classes=[0, 1])
    return sf.simulate(model, X, y, watch=look, **{"initial": 8, "steps": 25, **options}), models


class TestItemsOfASubsampleAreItemsOfThePool:
    """A place in a shuffled sample was taken for a place in the pool: other items were watched than were meant."""

    @pytest.mark.parametrize("seed", range(3))
    def test_the_items_watched_are_those_drawn(self, seed: int) -> None:
        X, y = pool()
        drawn = sf.StopSet.draw(len(X), 20, seed=seed)
        trace, models = models_of(X, y, record="stop_probabilities", stop_set=20, seed=seed)
        for told, model in zip(trace.measures["stop_probabilities"], models, strict=True):
            assert told == pytest.approx(model.predict_proba(X[drawn.indices]), abs=1e-3)
        # The mistake: places in the sample used as places in the pool.
        wrong = models[-1].predict_proba(X[: len(drawn)])
        assert np.abs(trace.measures["stop_probabilities"][-1] - wrong).max() > 0.1

    def test_whatever_the_order_in_which_they_are_named(self) -> None:
        X, y = pool()
        shuffled = np.random.default_rng(7).permutation(len(X))[:20]
        trace, models = models_of(X, y, record="stop_probabilities", stop_set=sf.StopSet(shuffled, len(X)))
        told = trace.measures["stop_probabilities"][-1]
        assert told == pytest.approx(models[-1].predict_proba(X[np.sort(shuffled)]), abs=1e-3)

    def test_the_items_picked_are_those_of_the_pool(self) -> None:
        """What is said of the items just labelled is said of those that ``indices`` names."""
        X, y = pool()
        trace, models = models_of(X, y, record="selected_probabilities", batch=2, steps=10)
        for step in range(1, 10):
            p = models[step - 1].predict_proba(X[trace.indices[step]])
            assert trace.measures["selected_probabilities"][step] == pytest.approx(p, abs=1e-6)

    def test_the_pool_without_some_items_is_still_that_pool(self) -> None:
        """Once items are labelled or skipped, the place in what is left is not the place in the pool."""
        X, y = pool()
        learner = sf.ActiveLearner(BayesianLogistic(alpha=1.0), X, criterion=sf.ClassificationChange(), initial=8)
        learner.tell(np.arange(8), y[:8])
        learner.skip(np.arange(20, 50))
        before = learner.model
        for _ in range(10):
            item = learner.ask()
            learner.tell(item, y[item])
            left = np.setdiff1d(np.arange(len(X)), [*learner.labelled, *learner.skipped])
            after = learner.model
            changed = int((before.predict(X[left]) != after.predict(X[left])).sum())
            assert learner.trace().measures["pool_changes"][-1] == changed
            before = after


class TestTheStopSetIsDrawnOnce:
    """A set drawn anew each round compares different items; one drawn from what is left loses the items labelled."""

    def test_labelled_items_stay(self) -> None:
        X, y = pool()
        stop = sf.StopSet(np.arange(0, 90, 3), 90)
        trace, models = models_of(X, y, record="stop_probabilities", stop_set=stop, steps=82)
        assert set(trace.indices.tolist()) | set(trace.initial.tolist()) == set(range(90))
        assert trace.measures["stop_probabilities"].shape == (82, 30, 2)
        assert trace.measures["stop_probabilities"][-1] == pytest.approx(
            models[-1].predict_proba(X[stop.indices]), abs=1e-3
        )

    def test_it_is_the_same_at_every_step(self) -> None:
        """The kappa of two steps is that of two models on the very same items."""
        X, y = pool()
        trace, models = models_of(X, y, record=sf.StabilizingPredictions(), stop_set=40, seed=5)
        items = sf.StopSet.draw(90, 40, seed=5).indices
        kappas = [
            cohen_kappa(models[t - 1].predict(X[items]), models[t].predict(X[items])) for t in range(1, len(models))
        ]
        verdicts = trace.replay(sf.StabilizingPredictions(threshold=0.99, window=1))
        assert [v.value for v in verdicts[1:]] == pytest.approx(kappas, abs=1e-12)
        assert min(kappas) < 1.0

    def test_it_is_drawn_a_single_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        drawn, plain = [], sf.StopSet.draw

        def counting(*args: Any, **options: Any) -> sf.StopSet:
            drawn.append(plain(*args, **options))
            return drawn[-1]

        monkeypatch.setattr(sf.StopSet, "draw", counting)
        X, y = pool()
        models_of(X, y, record="all", stop_set=30)
        assert len(drawn) == 1
        learner = sf.ActiveLearner(BayesianLogistic(), X, criterion=sf.PredictedFChange(), stop_set=30)
        for item in range(30):
            learner.tell(item, y[item])
        learner.correct(3, 1 - y[3])
        assert len(drawn) == 2

    def test_a_long_run_and_a_short_one_watch_the_same(self) -> None:
        """Drawn before labelling starts, so it depends neither on what is labelled nor on how long the run is."""
        X, y = pool()
        told = [
            models_of(X, y, record="stop_probabilities", stop_set=25, seed=2, **options)[0]
            for options in ({"steps": 5}, {"steps": 20}, {"steps": 5, "acquisition": "random"})
        ]
        short, long = (trace.measures["stop_probabilities"] for trace in told[:2])
        np.testing.assert_array_equal(short, long[:5])
        items = sf.StopSet.draw(90, 25, seed=2).indices
        refit = BayesianLogistic(alpha=1.0, classes=[0, 1]).fit(
            X[[*told[2].initial, *told[2].indices]], y[[*told[2].initial, *told[2].indices]]
        )
        assert told[2].measures["stop_probabilities"][-1] == pytest.approx(refit.predict_proba(X[items]), abs=1e-3)

    def test_a_set_that_shrinks_is_refused_by_name(self) -> None:
        rule = sf.StabilizingPredictions()
        rule.observe(sf.Step(n_labelled=10, stop_probabilities=np.full((8, 2), 0.5)))
        with pytest.raises(InvalidValueError, match="draw the stop set once, before labelling starts"):
            rule.observe(sf.Step(n_labelled=11, stop_probabilities=np.full((7, 2), 0.5)))


class TestMeansAreOverWhatWasScored:
    """A sum over a subsample was divided by the size of the pool: the larger the pool, the better it looked."""

    @pytest.mark.parametrize("size", [1, 7, 90])
    def test_means_over_the_stop_set(self, size: int) -> None:
        """All items are alike, so a mean over any number of them is the same."""
        X, y = np.ones((90, 2)), np.arange(90) % 2
        trace, models = models_of(X, y, record=["stop_confidence", "expected_error"], stop_set=size)
        p = models[-1].predict_proba(X[:1])[0]
        assert trace.measures["stop_confidence"][-1] == pytest.approx(p.max(), rel=1e-6)
        whole, _ = models_of(X, y, record="expected_error", stop_set=90)
        assert trace.measures["expected_error"] == pytest.approx(whole.measures["expected_error"], rel=1e-9)

    @pytest.mark.parametrize("size", [1, 7, 90])
    def test_the_mean_variance(self, size: int) -> None:
        X, y = np.ones((90, 2)), np.random.default_rng(0).normal(size=90)
        trace = sf.simulate(GaussianProcess(1.0, 0.5), X, y, steps=9, record="expected_error", stop_set=size)
        # One latent value, seen n times with noise: its variance is 1 / (1 + n / .5).
        expected = 1.0 / (1.0 + trace.n_labelled / 0.5) + 0.5
        assert trace.measures["expected_error"] == pytest.approx(expected, rel=1e-9)

    def test_means_over_the_pool(self) -> None:
        """Of what is left: neither of what there was at first, nor of the stop set."""
        X, y = pool()
        trace, models = models_of(X, y, record="pool_risk", stop_set=10, steps=60)
        for step in (0, 30, 59):
            left = np.setdiff1d(np.arange(90), [*trace.initial, *trace.indices[: step + 1]])
            risk = 1.0 - models[step].predict_proba(X[left]).max(axis=1)
            assert trace.measures["pool_risk"][step] == pytest.approx(risk.mean(), rel=1e-6)
            assert risk.sum() / 90 != pytest.approx(risk.mean(), rel=0.05)

    def test_a_kappa_on_a_sample_of_a_large_pool(self) -> None:
        """Half of the items watched changed: kappa 0, however many items were not watched."""
        rng = np.random.default_rng(0)
        before = np.eye(2)[rng.integers(2, size=2000)]
        after = before.copy()
        after[::2] = after[::2, ::-1]
        rule = sf.StabilizingPredictions(window=1)
        rule.observe(sf.Step(n_labelled=10, pool_size=10**6, stop_probabilities=before))
        verdict = rule.observe(sf.Step(n_labelled=11, pool_size=10**6, stop_probabilities=after))
        assert verdict.value == pytest.approx(0.0, abs=0.05)
