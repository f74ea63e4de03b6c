"""The runs of the paper's experiments: splits, regressions, logistic regression and MNIST.

Requested runs are planned, carried out, and recognised when already saved.
"""

import hashlib
import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.pipeline import make_pipeline

from suffice.divergence import kl
from suffice.errors import InvalidValueError, SufficeError
from suffice.learner import simulate
from suffice.learner.prepare import final_estimator, first_items, generator
from suffice.models import BayesianLogistic, BayesianRidge, DropoutNetwork, GaussianProcess, RadialBasis
from suffice.models.predictive import as_numbers, exponentials, hermite, quality
from suffice.models.regression import RidgeScales, learn_ridge, log_marginal
from suffice.models.threads import one_thread
from suffice.numerics import Floats, solve_lower
from suffice.posteriors import Gaussian
from suffice.trace import Trace
from suffice_research import runner
from suffice_research.data.catalogue import PAPER_SETS, SETS, data_folder, require_set
from suffice_research.data.protocols import MODELS, PROTOCOLS, PUBLISHED, Experiment
from suffice_research.data.set_readers import Digits, Samples, mnist_folder, read_mnist, read_samples
from suffice_research.paper.outcome import RunOutcome, measure
from suffice_research.runner import StepProgress


class DataSplit(NamedTuple):
    """A data set divided into its parts.

    Attributes:
        test: What is tested on.
        pool: What labels are chosen from.
        outside: What lies outside the run; empty under the published protocol.
        initial: Rows of the pool that are labelled first.
    """

    test: Samples
    pool: Samples
    outside: Samples
    initial: NDArray[np.intp]


def published_rows(
    experiment: Experiment, seed: int = 1, among: Mapping[str, Experiment] = PUBLISHED
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Order of the rows, and the first labels, as drawn by the authors' script.

    A script seeds Python's generator once for all its data sets, so the draws depend on the earlier data sets.

    Args:
        experiment: Which one; its sizes count, not those of its namesake in ``among``.
        seed: Seed of the generator; the authors' is 1.
        among: The experiments that are run before it.

    Returns:
        Rows of the file, test rows first and then the pool; and indices into the pool.
    """
    # Not for security: the authors used this generator, and numpy's gives other numbers.
    draws = random.Random(seed)
    for each in among.values():
        if each.model != experiment.model:
            continue
        this = experiment if each.data == experiment.data else each
        order = draws.sample(range(this.rows), this.rows)
        first = draws.sample(range(this.pool_size), this.initial)
        if this is experiment:
            return np.array(order), np.array(first)
    raise KeyError(experiment.name)


def published_split(experiment: Experiment, seed: int, folder: Path | None = None) -> DataSplit:
    """The split of the authors' script: test rows first, then the pool."""
    samples = read_samples(experiment.data, experiment.view, folder)
    order, initial = published_rows(experiment, seed)
    return _parts(samples, order, experiment, initial)


def corrected_split(experiment: Experiment, seed: int, folder: Path | None = None) -> DataSplit:
    """A random split: test rows, rows outside the run, the pool; the first labels at random."""
    samples = read_samples(experiment.data, experiment.view, folder)
    rng = np.random.default_rng(seed)
    order = rng.permutation(experiment.rows)
    return _parts(samples, order, experiment, rng.permutation(experiment.pool_size)[: experiment.initial])


def _parts(samples: Samples, order: Any, experiment: Experiment, initial: Any) -> DataSplit:
    ends = np.cumsum([experiment.test, experiment.outside, experiment.pool_size])
    test, outside, pool = (
        Samples(samples.inputs[rows], samples.target[rows]) for rows in np.split(order, ends)[: len(ends)]
    )
    return DataSplit(test, pool, outside, initial)


def label(model: Any, experiment: Experiment, split: DataSplit, progress: Callable[[int, int], None] | None) -> Trace:
    """Label the pool in the order that the model chooses, one item at a time.

    Args:
        model: A model of :mod:`suffice.models`, or a pipeline that ends in one.
        experiment: What is run.
        split: The data.
        progress: Called regularly with the numbers of steps done and to do.
    """
    return simulate(
        model,
        split.pool.inputs,
        split.pool.target,
        initial=split.initial,
        steps=experiment.step_count,
        X_test=split.test.inputs,
        y_test=split.test.target,
        # As in the paper; the default acquisitions are different.
        acquisition="entropy" if isinstance(final_estimator(model), BayesianLogistic) else "variance",
        record=(),
        progress=progress,
    )


_LEAST_INFORMATION: Final = 1e-12

Progress = Callable[[int, int], None]


def logistic_run(experiment: Experiment, split: DataSplit, *, progress: Progress | None = None) -> Trace:
    """Run a logistic regression: labels by entropy, one at a time.

    Args:
        experiment: What to run.
        split: The data.
        progress: Called regularly with the numbers of steps done and to do.
    """
    if experiment.protocol == "published":
        return _published_run(experiment, split, progress)
    basis, alpha = RadialBasis(experiment.centres, bandwidth=experiment.bandwidth), None
    if experiment.hyperparameters == "outside":
        placed = basis.fit(split.pool.inputs)
        alpha = BayesianLogistic().fit(placed.transform(split.outside.inputs), split.outside.target).alpha_
    model = make_pipeline(basis, BayesianLogistic(alpha, classes=(0, 1)))
    return label(model, experiment, split, progress)


class MostProbableWeights(NamedTuple):
    """Most probable weights, the intercept first; and the information of the labels about them, without the prior."""

    weights: Floats
    information: Floats


def most_probable(features: Floats, labels: Floats, precision: Floats, start: Floats) -> MostProbableWeights:
    """Newton's method to full precision, with step halving; the authors' solver has a tolerance of 1e-4.

    Args:
        features: ``n x J``, a column of ones first.
        labels: ``n``, 0 or 1.
        precision: Prior precision of each weight, ``J``; that of the intercept is 0.
        start: Where to start, ``J``.

    Raises:
        SufficeError: All labels have one class, so the intercept has no most probable value.
    """
    if labels.min() == labels.max():
        raise SufficeError("all labels at hand are of one class, so the intercept grows for ever; take another seed")
    signs = 1.0 - 2.0 * labels

    def loss(weights: Floats) -> float:
        return float(np.logaddexp(0.0, signs * (features @ weights)).sum() + 0.5 * precision @ weights**2)

    weights, least = start, loss(start)
    for _ in range(200):
        p = expit(features @ weights)
        information = (features * (p * (1.0 - p))[:, None]).T @ features
        gradient = features.T @ (p - labels) + precision * weights
        # A small multiple of the identity keeps the system regular if all probabilities are close to 0 or 1.
        ridge = np.diag(precision + _LEAST_INFORMATION)
        step = np.linalg.solve(information + ridge, gradient)
        while (following := loss(weights - step)) > least + 1e-12 * abs(least):
            step = 0.5 * step
        weights, least = weights - step, following
        if np.abs(step).max() <= 1e-9 * (1.0 + np.abs(weights).max()):
            break
    p = expit(features @ weights)
    return MostProbableWeights(weights, (features * (p * (1.0 - p))[:, None]).T @ features)


@one_thread()
def _published_run(experiment: Experiment, split: DataSplit, progress: Progress | None) -> Trace:
    """One pass over the pool for each label; ties are broken by the lowest row, as in the authors' loop."""
    basis = RadialBasis(experiment.centres, bandwidth=experiment.bandwidth).fit(split.pool.inputs)
    pool, test = (_with_ones(basis.transform(part.inputs)) for part in (split.pool, split.test))
    C = experiment.inverse_precision or 1.0
    precision = np.append(0.0, np.full(pool.shape[1] - 1, 1.0 / C))
    order, target = list(map(int, split.initial)), np.asarray(split.pool.target, dtype=np.float64)
    features = np.empty((len(order) + experiment.step_count, pool.shape[1]))
    features[: len(order)] = pool[order]
    taken = np.zeros(len(pool), dtype=bool)
    taken[order] = True
    found = most_probable(pool[order], target[order], precision, np.zeros(pool.shape[1]))
    old, columns = _posterior(experiment, found, C), []
    for step in range(experiment.step_count):
        # The entropy is largest where the logit is closest to 0.
        distance = np.abs(pool @ found.weights)
        distance[taken] = np.inf
        pick = int(np.argmin(distance))
        taken[pick] = True
        features[len(order)] = pool[pick]
        order.append(pick)
        found = most_probable(features[: len(order)], target[order], precision, found.weights)
        new = _posterior(experiment, found, C)
        columns.append((kl(new, old), kl(old, new), _error(experiment, test, split.test.target, found, new)))
        old = new
        if progress is not None:
            progress(step + 1, experiment.step_count)
    new_old, old_new, error = np.array(columns).T
    first = len(split.initial)
    return Trace(
        initial=np.array(order[:first]),
        indices=np.array(order[first:]),
        n_labelled=np.arange(first + 1, len(order) + 1),
        kl_new_old=new_old,
        kl_old_new=old_new,
        error=error,
    )


def _with_ones(features: Floats) -> Floats:
    return np.column_stack([np.ones(len(features)), features])


def _posterior(experiment: Experiment, found: MostProbableWeights, C: float) -> Gaussian:
    """The posterior for the divergences.

    Errata of the authors: they add ``C`` although the prior precision is ``1 / C``, and leave the intercept out. The
    paper prints the information matrix as the covariance.
    """
    kept = slice(1 if experiment.intercept == "out" else 0, None)
    prior = np.full(len(found.weights), C if experiment.information == "C" else 1.0 / C)
    prior[0] = 0.0
    information = (found.information + np.diag(prior))[kept, kept]
    if experiment.covariance == "printed":
        return Gaussian(found.weights[kept], information)
    return Gaussian(found.weights[kept], precision=information)


def _error(experiment: Experiment, test: Floats, target: Any, found: MostProbableWeights, posterior: Gaussian) -> float:
    """Cross entropy on the test set, of one class or both, at one set of weights or as a mean over the posterior."""
    logits = test @ found.weights
    signs = 2.0 * np.asarray(target) - 1.0
    if experiment.loss == "expected":
        free = test[:, test.shape[1] - len(posterior.mean) :]
        by_precision = posterior.of == "precision"
        white = solve_lower(posterior.factor, free.T) if by_precision else posterior.factor.T @ free.T
        deviation = np.sqrt(np.einsum("ji,ji->i", white, white))
        nodes, weights = hermite(20)
        spread = logits[:, None] + deviation[:, None] * nodes
        return float((np.logaddexp(0.0, -signs[:, None] * spread) @ weights).mean())
    losses = np.logaddexp(0.0, -signs * logits)
    return float(losses.mean() if experiment.loss == "both" else (losses * (np.asarray(target) == 1)).mean())


#: Number of labels for the authors' hyper-parameters of the Gaussian process, and their bounds.
_LEARNED_FROM: Final = 1000
_LENGTHS: Final = (1e-3, 1e3)
_MOST_NOISE: Final = 1e3
_MOST_ITERATIONS: Final = 1000


def regression_run(
    experiment: Experiment, split: DataSplit, *, progress: Callable[[int, int], None] | None = None
) -> Trace:
    """Run a regression: labels by variance, one at a time.

    Args:
        experiment: What to run.
        split: The data.
        progress: Called regularly with the numbers of steps done and to do.
    """
    build = _process if experiment.model == "gpr" else _ridge
    return label(build(experiment, split), experiment, split, progress)


def _process(experiment: Experiment, split: DataSplit) -> Any:
    if experiment.hyperparameters == "bought":
        return GaussianProcess(normalize_y=False, regularize=False)
    if experiment.hyperparameters == "outside":
        learned = GaussianProcess(normalize_y=False, regularize=False).fit(*split.outside).prior_
        return GaussianProcess(length_scale=learned.kernel.length_scale, noise=learned.noise)
    length_scale, noise = published_process(experiment, split.pool)
    return GaussianProcess(length_scale, noise)


def published_process(experiment: Experiment, pool: Samples) -> tuple[float, float]:
    """Length scale and noise as learned by the authors: from the first 1000 labels of the pool, within bounds.

    One optimisation from (1, 1). The authors start five more at random points, which found no better optimum with their
    seed.
    """
    X, y = (values[:_LEARNED_FROM] for values in pool)
    limits = np.log([_LENGTHS, (experiment.noise_floor or _LENGTHS[0], _MOST_NOISE)])

    def loss(theta: Floats) -> tuple[float, Floats]:
        found = log_marginal(X, y, np.exp(theta[:1]), float(np.exp(theta[1])))
        return -found.value, -found.gradient

    with one_thread():
        found = minimize(loss, np.zeros(2), jac=True, method="L-BFGS-B", bounds=limits, options={"gtol": 1e-6})
    length, noise = np.exp(found.x)
    return float(length), float(noise)


def _ridge(experiment: Experiment, split: DataSplit) -> Any:
    basis = RadialBasis(experiment.centres, bandwidth=experiment.bandwidth)
    if experiment.hyperparameters == "bought":
        return make_pipeline(basis, BayesianRidge(fit_intercept=False, normalize_y=False, regularize=False))
    # The inputs of the whole pool are known; their labels are not.
    placed = basis.fit(split.pool.inputs)
    if experiment.hyperparameters == "outside":
        learned = BayesianRidge(fit_intercept=False, normalize_y=False, regularize=False).fit(
            placed.transform(split.outside.inputs), split.outside.target
        )
        return make_pipeline(basis, BayesianRidge(learned.prior_.alpha, learned.prior_.beta, fit_intercept=False))
    return make_pipeline(basis, BayesianRidge(*published_ridge(experiment, split.pool, placed), fit_intercept=False))


def published_ridge(experiment: Experiment, pool: Samples, basis: RadialBasis) -> RidgeScales:
    """Precisions as learned by the authors: from the evidence of as many labels of the pool as there are steps."""
    X, y = (values[: experiment.step_count] for values in pool)
    start = RidgeScales(alpha=1.0, beta=0.1)
    features, most = basis.transform(X), experiment.iterations or _MOST_ITERATIONS
    return learn_ridge(features, y, start, fixed=(False, False), iterations=most)


_RECORD: Final = PUBLISHED["bdnn/mnist"]
#: The first training is the first of the 100 rounds, so there are 99 steps.
STEPS: Final = _RECORD.steps
INITIAL: Final = _RECORD.initial
BATCH: Final = _RECORD.batch


def published_network(seed: int, **options: Any) -> DropoutNetwork:
    """The paper's network and its training: five epochs with all labels in one batch, one Adam state for the whole run.

    Args:
        seed: Seed.
        options: Anything else that :class:`~suffice.models.DropoutNetwork` takes.
    """
    settings = {
        "classes": tuple(range(10)),
        "epochs": 5,
        "warm_epochs": 5,
        "batch_size": None,
        "learning_rate": 1e-3,
        "train_samples": 5,
        "samples": 5,
    }
    return DropoutNetwork("mnist", seed=seed, **{**settings, **options})


def published_run(  # noqa: PLR0913 - a run has many settings
    train: Digits,
    test: Digits,
    *,
    seed: int = 0,
    steps: int = STEPS,
    acquisition: str = "batchbald",
    checkpoint: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Trace:
    """Run the published protocol: 1000 random labels, then rounds of 5 over the whole remaining pool.

    ``trace.error`` is the posterior mean of the cross entropy; ``trace.measures["published_error"]`` is the authors'
    measure, a cross entropy that uses probabilities as logits.

    Args:
        train: Images and labels to choose from.
        test: Images and labels to test on.
        seed: Seed of the first labels, the weights, the training and the draws.
        steps: Rounds after the first.
        acquisition: Which labels next.
        checkpoint: File that the run is saved in after every round.
        progress: Called with the rounds done and to do.
        options: Of the network; what is left out is as published.
    """
    watch = _PublishedError(test)
    return simulate(
        published_network(seed, **options),
        train.images,
        train.labels,
        initial=INITIAL,
        steps=steps,
        acquisition=acquisition,
        batch=BATCH,
        seed=seed,
        X_test=test.images,
        y_test=test.labels,
        checkpoint=checkpoint,
        watch=watch,
        record=(),
        progress=progress,
    )


def unlabelled_run(train: Digits, test: Digits, *, seed: int = 0, steps: int = STEPS, **options: Any) -> Trace:
    """The published run without labels after the first 1000, to show the effect of the training alone on the rule.

    ``trace.n_labelled`` counts rounds as if each had added its labels, so that the curves can be compared.

    Args:
        train: Images and labels to choose from.
        test: Images and labels to test on.
        seed: Seed.
        steps: Rounds after the first.
        options: Of the network.
    """
    first = first_items(INITIAL, len(train.images), generator(seed))
    model = published_network(seed, **options).fit(train.images[first], train.labels[first])
    inputs, moved, error, accuracy = model.machine_.tensor(test.images), [], [], []
    for _ in range(steps):
        old = model.posterior
        model.learn(model.X_, model.y_)
        found = quality(model.log_draws(inputs, model.samples, seed), test.labels)
        moved.append(float(kl(model.posterior, old)))
        error.append(found.error)
        accuracy.append(found.accuracy)
    return Trace(
        initial=first,
        indices=np.zeros(0, dtype=np.intp),
        n_labelled=INITIAL + BATCH * np.arange(1, steps + 1),
        kl_new_old=np.array(moved),
        kl_old_new=np.array(moved),
        error=np.array(error),
        measures={"accuracy": np.array(accuracy)},
    )


class _PublishedError:
    """The authors' error of a network on the test set."""

    def __init__(self, test: Digits) -> None:
        self._test, self._inputs = test, None

    def __call__(self, model: DropoutNetwork) -> dict[str, float]:
        if self._inputs is None:
            self._inputs = model.machine_.tensor(self._test.images)
        draws = model.log_draws(self._inputs, model.samples, model.rounds_)
        averaged = as_numbers(exponentials(draws).mean(1))
        return {"published_error": published_error(averaged, self._test.labels)}


def published_error(probabilities: Floats, codes: Any) -> float:
    """Cross entropy of a softmax of probabilities: an erratum of the authors' code, at least 1.46 for ten classes."""
    wrong = np.log(np.exp(probabilities).sum(axis=1)) - probabilities[np.arange(len(codes)), codes]
    return float(wrong.mean())


def run_experiment(
    experiment: Experiment,
    seed: int,
    *,
    folder: Path | None = None,
    checkpoint: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Trace:
    """Run an experiment of the paper.

    Args:
        experiment: What to run.
        seed: Seed of everything random.
        folder: The data folder; the usual one if left out.
        checkpoint: Where a network's run is kept after every round, to go on from.
        progress: Called regularly with the numbers of steps done and to do.

    Returns:
        The run. That of a network also has the authors' error, in ``measures["published_error"]``.

    Raises:
        MissingDataError: The data set is missing.
        CorruptDataError: A file of the data set has the wrong checksum.
    """
    if experiment.model == "bdnn":
        return _network_run(experiment, seed, folder, checkpoint, progress)
    split = (published_split if experiment.protocol == "published" else corrected_split)(experiment, seed, folder)
    run = logistic_run if experiment.model == "blr" else regression_run
    return run(experiment, split, progress=progress)


def _network_run(experiment: Experiment, seed: int, folder: Path | None, checkpoint: Any, progress: Any) -> Trace:
    # Imported here, because torch is optional and only this experiment needs it.

    place = mnist_folder(folder or data_folder())
    train, test = read_mnist(place), read_mnist(place, "test")
    return published_run(train, test, seed=seed, steps=experiment.step_count, checkpoint=checkpoint, progress=progress)


def arms(experiment: Experiment) -> list[tuple[str | None, Experiment]]:
    """The variants of an experiment, by the labels for learning its hyper-parameters, if there is a choice."""
    if experiment.protocol == "published" or experiment.model == "bdnn":
        return [(None, experiment)]
    return [
        ("bought", replace(experiment, hyperparameters="bought")),
        ("outside", replace(experiment, hyperparameters="outside")),
    ]


# Increase the version of a model if changes of the code change its runs; saved runs are then repeated.
_VERSIONS = {"gpr": 2, "brr": 2, "blr": 2, "bdnn": 1}
# Settings that affect only the measures of a run, and not the run. (The run of a network records both errors.)
_MEASURED_LATER = frozenset({"thresholds", "calibration", "counted_from", "correlation", "stops"})
_MEASURED_LATER_OF_NETWORKS = _MEASURED_LATER | {"loss", "protocol", "hyperparameters"}


@dataclass(frozen=True)
class PaperRun:
    """A requested run of the paper; a :class:`suffice_research.runner.RunJob`.

    Attributes:
        experiment: What to run.
        seed: Its seed.
        arm: What its hyper-parameters are learned from, where the experiment compares several answers.
        variant: What differs from the protocol; None for a run as the protocol says.
        shared: Whether it is the same run as that of the protocol, and only the measures differ.
    """

    experiment: Experiment
    seed: int
    arm: str | None = None
    variant: str | None = None
    shared: bool = False

    @property
    def name(self) -> str:
        """Name for people."""
        arm = f", hyper-parameters from labels {self.arm}" if self.arm else ""
        variant = f", {self.variant}" if self.variant else ""
        return f"{self.experiment.protocol} {self.experiment.name}, seed {self.seed}{arm}{variant}"

    @property
    def stem(self) -> str:
        """Base name of its files."""
        run = self.experiment
        variant = None if self.shared else self.variant
        parts = (run.protocol, run.model, run.data, self.arm, self.seed, variant)
        return "-".join(str(part).replace(" ", "_") for part in parts if part is not None)

    @property
    def identity(self) -> str:
        """Identity of the run, which depends on its settings, its data and the version of the code."""
        model = self.experiment.model
        later = _MEASURED_LATER_OF_NETWORKS if model == "bdnn" else _MEASURED_LATER
        settings = {name: value for name, value in asdict(self.experiment).items() if name not in later}
        files = [each.sha256 for each in SETS[self.experiment.data].files]
        text = json.dumps([_VERSIONS[model], settings, self.seed, files], default=dict, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def steps(self) -> int:
        """Number of acquisitions."""
        return self.experiment.step_count

    @property
    def data(self) -> str:
        """Name of its data set."""
        return self.experiment.data

    @property
    def alone(self) -> bool:
        """True for a network, which uses the whole machine or the GPU."""
        return self.experiment.model == "bdnn"

    def ready(self) -> None:
        """Check that the files of its data set are there and right.

        Raises:
            MissingDataError: A file is missing.
            CorruptDataError: A file has the wrong checksum.
        """
        require_set(self.data)

    def run(self, traces: Path, progress: StepProgress | None) -> Trace:
        """Run it. A network saves a checkpoint after every round, from which an interrupted run continues."""
        if not self.alone:
            return run_experiment(self.experiment, self.seed, progress=progress)
        checkpoint = traces / f"{self.stem}.checkpoint"
        trace = run_experiment(self.experiment, self.seed, checkpoint=checkpoint, progress=progress)
        checkpoint.unlink(missing_ok=True)
        return trace


def choose(protocol: str, only: str | None) -> list[Experiment]:
    """The experiments of a protocol, or some of them.

    Args:
        protocol: ``published`` or ``corrected``.
        only: Names with commas between: ``gpr/power_plant``, a whole model (``gpr``) or a whole data set.

    Raises:
        InvalidValueError: A name matches no experiment.

    Examples:
        >>> [each.name for each in choose("published", "gpr/protein,skin")]
        ['gpr/protein', 'blr/skin']
    """
    every = PROTOCOLS[protocol]
    if only is None:
        return list(every.values())
    wanted = [name.strip().lower() for name in only.split(",") if name.strip()]
    if not wanted:
        raise InvalidValueError("--only is empty; name experiments such as gpr/power_plant, with commas between them")
    for name in wanted:
        if not any(name in (each.name, each.model, each.data) for each in every.values()):
            raise InvalidValueError(_unknown(name))
    return [each for each in every.values() if {each.name, each.model, each.data} & set(wanted)]


def plan(experiments: Iterable[Experiment], seeds: int | None = None) -> list[PaperRun]:
    """The runs of some experiments, seed by seed.

    Args:
        experiments: What to run.
        seeds: How many; 1 under the published protocol (the authors' seed) and 10 under the corrected one if left out.

    Examples:
        >>> [job.seed for job in plan([PUBLISHED["gpr/protein"]], 2)]
        [1, 2]
    """
    return [
        PaperRun(setting, seed, arm)
        for each in experiments
        for seed in _seeds(each.protocol, seeds)
        for arm, setting in arms(each)
    ]


def _seeds(protocol: str, seeds: int | None) -> Sequence[int]:
    if protocol == "published":
        return range(1, 1 + (1 if seeds is None else seeds))
    return range(10 if seeds is None else seeds)


def _unknown(name: str) -> str:
    known = [*PUBLISHED, *MODELS, *PAPER_SETS]
    near = get_close_matches(name, known, n=1)
    guess = f" Did you mean {near[0]}?" if near else ""
    return f"--only names {name!r}, which is none of the experiments.{guess} They are {', '.join(PUBLISHED)}"


SkippedPaperRun: TypeAlias = runner.SkippedRun[PaperRun]
PaperRunWatcher: TypeAlias = runner.RunWatcher[RunOutcome | SkippedPaperRun]


def measured(run: PaperRun, trace: Trace) -> RunOutcome:
    """Return the measures of a run, given its trace."""
    seconds = float(trace.about.get("seconds", 0.0))
    return measure(run.experiment, trace, seed=run.seed, arm=run.arm, seconds=seconds)


def measured_run(run: PaperRun, traces: Path, progress: runner.StepProgress | None = None) -> RunOutcome:
    """Carry out a run, unless its trace is saved already, and return its measures."""
    return measured(run, runner.carry_out(run, traces, progress))


def measured_runs(
    runs: Sequence[PaperRun], traces: Path, workers: int, watcher: PaperRunWatcher
) -> list[RunOutcome | SkippedPaperRun]:
    """Carry out runs, several at once; see :func:`suffice_research.runner.carry_out_all`."""
    return runner.carry_out_all(runs, traces, workers, watcher, measured)
