"""The registry of backends: built-in model families, one from outside, and what cannot be registered."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import suffice as sf
from suffice.divergence import KLPair
from suffice.errors import InvalidTypeError, InvalidValueError, MissingInputError
from suffice.learner import Backend, RunSettings, StepResults, register_backend
from suffice.learner import backend as backend_module
from suffice.learner.backend import backend_type
from suffice.learner.class_backend import ClassBackend
from suffice.learner.gaussian_backend import ProcessBackend, RidgeBackend
from suffice.learner.network_backend import NetworkBackend
from suffice.learner.prepare import final_estimator, provided_fields, require_provided
from suffice.models import BayesianLogistic, BayesianRidge, DropoutNetwork, GaussianProcess, RadialBasis
from suffice.numerics import Floats
from suffice.posteriors import Gaussian


@pytest.fixture(autouse=True)
def registry() -> Iterator[None]:
    """Forget what a test registers."""
    # Those of the package are registered once, at the first use.
    backend_module._register_own()
    kept = dict(backend_module._BACKENDS)
    yield
    backend_module._BACKENDS.clear()
    backend_module._BACKENDS.update(kept)


class ConstantMean(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor that predicts one unknown number, with prior N(0, 1) and noise variance 1."""

    def fit(self, X: Any, y: Any) -> "ConstantMean":
        del X
        self.posterior_ = Gaussian(np.sum(y) / (len(y) + 1.0), 1.0 / (len(y) + 1.0))
        return self

    def predict(self, X: Any) -> Floats:
        return np.full(len(X), float(np.ravel(self.posterior_.mean)[0]))


class ConstantBackend(Backend):
    """Picks items in order; the posterior is computed from all labels."""

    task = "regression"
    step_fields = frozenset({"pool_variance"})
    default_acquisition = "order"

    def __init__(self, model: ConstantMean, settings: RunSettings) -> None:
        self.model, self.settings = model, settings
        self.free = list(range(len(settings.X)))
        self.labels: dict[int, float] = {}
        self.sizes: list[int] = []

    def batch(self, size: int) -> Any:
        return np.array(self.free[:size], dtype=np.intp)

    def skip(self, indices: Any) -> None:
        self.free = [item for item in self.free if item not in set(np.asarray(indices).tolist())]

    def check(self, y: Any) -> None:
        if not np.isfinite(np.asarray(y, dtype=float)).all():
            raise InvalidValueError("labels must be numbers")

    def begin(self, indices: Any, y: Any) -> None:
        self.sizes.append(len(indices))
        self.labels.update(zip(indices.tolist(), y, strict=True))
        self.skip(indices)

    def learn(self, indices: Any, y: Any, *, together: bool) -> StepResults:
        assert together or len(indices) == 1
        self.check(y)
        self.begin(indices, y)
        past = self.relearn()
        measures = {name: values[-1:] for name, values in past.measures.items()}
        return StepResults(KLPair(past.kl_new_old[-1:], past.kl_old_new[-1:]), np.zeros(0), measures=measures)

    def relearn(self) -> StepResults:
        labels, ends = np.array(list(self.labels.values()), dtype=float), np.cumsum(self.sizes)
        posteriors = [ConstantMean().fit(None, labels[:end]).posterior_ for end in ends]
        pairs = list(zip(posteriors[1:], posteriors[:-1], strict=True))
        new_old, old_new = (np.array([float(sf.kl(*pair[::turn])) for pair in pairs]) for turn in (1, -1))
        wanted = (
            {"pool_variance": 1.0 / (ends[1:].astype(np.float64) + 1.0)}
            if "pool_variance" in self.settings.step_inputs.names
            else {}
        )
        return StepResults(KLPair(new_old, old_new), np.zeros(0), measures=wanted)

    def correct(self, index: int, y: Any) -> StepResults:
        self.labels[index] = y
        return self.relearn()

    def fitted(self) -> ConstantMean:
        return ConstantMean().fit(None, np.array(list(self.labels.values()), dtype=float))


@pytest.mark.parametrize(
    ("model", "backend", "task", "acquisition"),
    [
        (GaussianProcess(), ProcessBackend, "regression", ("variance-reduction", 0.5)),
        (BayesianRidge(), RidgeBackend, "regression", ("random", 0.0)),
        (BayesianLogistic(), ClassBackend, "classification", ("margin", 0.35)),
        (DropoutNetwork(), NetworkBackend, "classification", ("batchbald", 0.2)),
    ],
)
def test_backends_of_the_models(model: Any, backend: type[Backend], task: str, acquisition: tuple[str, float]) -> None:
    found = backend_type(model)
    assert found is backend
    assert (found.task, found.default_acquisition, found.default_random_share) == (task, *acquisition)
    network = backend is NetworkBackend
    assert found.any_input_shape == found.supports_checkpoints == network
    assert found.input_dtype == (np.float32 if network else np.float64)
    counted = {"seconds", "cost", "pool_size", "calibration", "random_labels"}
    counted |= {"classes_seen"} if task == "classification" else set()
    assert provided_fields(model) == found.step_fields | {"kl_new_old", "kl_old_new", *counted}
    assert provided_fields(model, validated=True) - provided_fields(model) == {"validation_error", "validation_labels"}


def test_a_subclass_has_the_backend_of_its_nearest_base() -> None:
    class Mine(GaussianProcess):
        pass

    class Other(Mine):
        pass

    assert backend_type(Mine()) is backend_type(Other()) is ProcessBackend
    register_backend(Mine)(ConstantBackend)
    assert backend_type(Mine()) is backend_type(Other()) is ConstantBackend
    assert backend_type(GaussianProcess()) is ProcessBackend


def test_a_model_family_from_outside() -> None:
    X, y = np.arange(40.0)[:, None], np.random.default_rng(0).normal(3.0, 1.0, 40)
    # Before, it is followed like any other regressor, without divergences.
    assert np.isnan(sf.simulate(ConstantMean(), X, y, initial=5, steps=2).kl_new_old).all()
    assert register_backend(ConstantMean)(ConstantBackend) is ConstantBackend
    trace = sf.simulate(ConstantMean(), X, y, initial=5, steps=12, record="all")
    # KL[N(a, 1/(n+1)) || N(b, 1/n)], by hand, with n the number of labels plus 1.
    n, bought = 6 + np.arange(12), np.array([y[[*trace.initial, *trace.indices[:k]]].sum() for k in range(13)])
    means = bought / np.arange(6, 19)
    ratio = n / (n + 1.0)
    np.testing.assert_allclose(
        trace.kl_new_old, 0.5 * (ratio - 1.0 - np.log(ratio) + n * np.diff(means) ** 2), rtol=1e-10
    )
    np.testing.assert_allclose(trace.measures["pool_variance"], 1.0 / (n + 1.0))
    assert trace.about["acquisition"] == "order"
    learner = sf.ActiveLearner(make_pipeline(StandardScaler(), ConstantMean()), X, criterion=sf.Budget(9), initial=5)
    while not learner.verdict.stop:
        items = learner.ask()
        learner.tell(items, y[items])
    learner.correct(learner.labelled[0], 100.0)
    assert len(learner.labelled) == 9
    assert learner.model.predict(X)[0] == pytest.approx((100.0 + y[learner.labelled[1:]].sum()) / 10.0)
    with pytest.raises(MissingInputError, match="requires pool_max_entropy, which a loop of regression does not"):
        sf.ActiveLearner(ConstantMean(), X, criterion=sf.EntropyMax())
    with pytest.raises(InvalidValueError, match="checkpoint is for networks"):
        sf.simulate(ConstantMean(), X, y, checkpoint="run.pt")


@pytest.mark.parametrize("model", [object(), KMeans(), make_pipeline(StandardScaler(), PCA())])
def test_other_models_are_answered_with_what_to_do(model: Any) -> None:
    with pytest.raises(
        InvalidTypeError, match=r"is not a model that can be followed.*StopMonitor.*Step\.between.*register_backend"
    ):
        sf.ActiveLearner(model, np.zeros((5, 1)))


class WithoutTask(ConstantBackend):
    task = "ranking"  # type: ignore[assignment]


class WithStrangeFields(ConstantBackend):
    step_fields = frozenset({"pool_variance", "mood"})


class Bare(Backend):
    pass


@pytest.mark.parametrize(
    ("model_type", "backend", "error", "said"),
    [
        (ConstantMean(), ConstantBackend, InvalidTypeError, "model_type must be a class, not ConstantMean"),
        (ConstantMean, ConstantMean, InvalidTypeError, "must be a subclass of suffice.learner.Backend"),
        (ConstantMean, lambda model, settings: None, InvalidTypeError, "must be a subclass of suffice.learner.Backend"),
        (ConstantMean, Bare, InvalidValueError, "Bare must set the class attribute task"),
        (ConstantMean, WithoutTask, InvalidValueError, "'regression' or 'classification', not 'ranking'"),
        (ConstantMean, WithStrangeFields, InvalidValueError, "mood is none of them"),
    ],
)
def test_what_cannot_be_registered(model_type: Any, backend: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        register_backend(model_type)(backend)
    assert ConstantMean not in backend_module._BACKENDS


def test_the_check_of_a_rule_takes_the_words_of_its_caller() -> None:
    model = make_pipeline(RadialBasis(3), BayesianRidge())
    assert final_estimator(model) is model.steps[-1][1]
    require_provided(sf.MaxVariance().needs(), model)
    with pytest.raises(MissingInputError) as raised:
        require_provided(sf.EntropyMax().needs(), model, names=("the rule", "this loop"), remedy="use another")
    assert str(raised.value) == "the rule requires pool_max_entropy, which this loop does not provide; use another"
