"""How often a truly better model is named while labelling goes on, and how often a named model is truly better.

A learner labels with the default rule until it says stop, and compares its model with others as a decision does. At
each comparison the true errors of all models on the same labels are measured on a test set: the share of wrong classes,
or the root mean squared error. Another model is truly better if its error is lower, and by at least 20 % if its error
is at most 0.8 times that of the current model, and lower by 0.01, below which differences do not count. A statement is
a model that is named and was not named at the comparison before. ``--fit`` fits the constants of
``suffice.session.model_comparison`` to the runs.

    python benchmarks/better_models.py --runs FOLDER [--sets test,fresh,last] [--models logistic,gp]
        [--seeds 1] [--leave-out ames] [--write]
    python benchmarks/better_models.py --runs FOLDER --sets development,more --models logistic,forest,kernel --fit
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy.optimize import minimize
from scipy.stats import norm

import suffice as sf
from evaluation_sets import GROUPS, evaluation_set, group_names
from suffice.criteria import LabelWorth
from suffice.models.factory import MODEL_FAMILIES, make_model
from suffice.session.decision import Alternative
from suffice.session.model_comparison import (
    ComparedLosses,
    RatioPrior,
    UsualError,
    comparison_due,
    comparison_losses,
)
from tables import publish, table

INITIAL, LABELS, TEST = 10, 400, 1000
#: The current models, each with the task of its runs.
MODELS: Final = {
    "logistic": "classification",
    "kernel": "classification",
    "forest": "classification",
    "gp": "regression",
    "ridge": "regression",
}
#: Models for classes that are not linear.
NOT_LINEAR: Final = ("kernel", "forest", "boosting")
BETTER: Final = 0.8
_MANY_WEIGHTS: Final = 300
_LEAST_ERROR: Final = 3e-3
# Differences below this one do not count.
_LEAST_DIFFERENCE: Final = 0.01


@dataclass(frozen=True)
class Look:
    """One comparison of a run.

    Attributes:
        n: Number of labels.
        stop: Whether the rule said stop at this number of labels.
        ours, others, random: As of :class:`suffice.session.model_comparison.ComparedLosses`.
        scale: As there.
        error: True error of the current model.
        errors: True errors of the other models by name.
        seconds: Time of the comparison.
    """

    n: int
    stop: bool
    ours: list[float]
    others: dict[str, list[float]]
    random: list[bool]
    scale: float
    error: float
    errors: dict[str, float]
    seconds: float

    def losses(self, model: str) -> ComparedLosses:
        """The losses that were compared, in a run with a current model."""
        others = {name: np.array(losses) for name, losses in self.others.items()}
        share, drawn = MODELS[model] == "classification", np.array(self.random, dtype=bool)
        return ComparedLosses(np.array(self.ours), others, drawn, share, self.scale, model)

    def log_ratio(self, name: str) -> float:
        """Logarithm of the true error of a model relative to that of the current one."""
        return math.log(max(self.errors[name], _LEAST_ERROR) / max(self.error, _LEAST_ERROR))

    def another_is_better(self, *, share: bool) -> bool:
        """Whether the error of another model is at least 20 % lower, and by a difference that counts."""
        best, power = min(self.errors.values(), default=self.error), 1 if share else 2
        return best <= BETTER * self.error and self.error**power - best**power >= _LEAST_DIFFERENCE


@dataclass(frozen=True)
class Run:
    """One run: its current model, data set and seed, and its comparisons."""

    model: str
    name: str
    seed: int
    looks: list[Look]

    @property
    def share(self) -> bool:
        """Whether labels are classes."""
        return MODELS[self.model] == "classification"

    def named(self) -> Iterator[tuple[Look, Alternative | None]]:
        """The model that each comparison names as clearly better."""
        before: Alternative | None = None
        for look in self.looks:
            before = look.losses(self.model).best(before)
            yield look, before if before is not None and before.clear else None


def record(folder: Path, model: str, name: str, seed: int) -> Run:
    """One run, read from its file if it is there."""
    path = folder / f"{model}-{name}-{seed}.json"
    if path.exists():
        saved = json.loads(path.read_text())
        return Run(model, name, seed, [Look(**look) for look in saved])
    X, y, X_test, y_test = evaluation_set(name).split(seed)
    X_test, y_test = X_test[:TEST], y_test[:TEST]
    share = MODELS[model] == "classification"
    classes = np.unique(evaluation_set(name).y).tolist() if share else None
    known = None if MODEL_FAMILIES[model].estimator else classes
    many = share and len(classes or ()) * X.shape[1] > _MANY_WEIGHTS
    batch = 5 if many or MODEL_FAMILIES[model].estimator else 1
    present = make_model(model, task="classification" if share else "regression", classes=known)
    learner = sf.ActiveLearner(present, X, initial=INITIAL, criterion=LabelWorth(), seed=seed)
    looks: list[Look] = []
    last: int | None = None
    n = 0
    while n < min(LABELS, int(0.6 * len(X))) and not learner.verdict.stop:
        items = learner.ask(batch if n else INITIAL)
        learner.tell(items, y[items])
        n = len(learner.labelled)
        verdict = learner.verdict
        left = None if verdict.forecast is None else verdict.forecast.labels
        if not comparison_due(n, last, stopped=verdict.stop, left=left):
            continue
        last, start = n, time.perf_counter()
        view = learner._required_view()
        order = np.array(view.learned_order(), dtype=np.intp)
        labels, random = y[order], np.isin(order, learner.random_items)
        losses = comparison_losses(view.judged_model(), X[order], labels, random, present=model)
        seconds = time.perf_counter() - start
        if losses is None:
            continue

        def error(fitted: Any) -> float:
            predicted = fitted.predict(X_test)
            return float(np.mean(predicted != y_test) if share else np.sqrt(np.mean((predicted - y_test) ** 2)))

        errors = {}
        for other in losses.others:
            task = "classification" if share else "regression"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                errors[other] = error(make_model(other, task=task).fit(X[order], labels))  # type: ignore[arg-type]
        looks.append(
            Look(
                n,
                bool(learner.verdict.stop),
                losses.ours.tolist(),
                {other: values.tolist() for other, values in losses.others.items()},
                random.tolist(),
                losses.scale,
                error(learner.model),
                errors,
                seconds,
            )
        )
    path.write_text(json.dumps([asdict(look) for look in looks]))
    print(model, name, seed, n, flush=True)
    return Run(model, name, seed, looks)


def row(runs: Sequence[Run]) -> list[str]:
    """What is measured on some runs, as cells of a table."""
    statements, true, shown, shown_true, better, before, by_stop, seconds = 0, 0, 0, 0, 0, 0, 0, []
    for run in runs:
        name, early, late = None, False, False
        for look, other in run.named():
            seconds.append(look.seconds)
            if other is not None and other.name != name:
                statements, true = statements + 1, true + (look.log_ratio(other.name) < 0.0)
            name = None if other is None else other.name
            right = name is not None and look.log_ratio(name) < 0.0
            shown, shown_true = shown + (name is not None), shown_true + right
            late |= right
            early |= right and not look.stop
        last = run.looks[-1] if run.looks else None
        if last is not None and last.another_is_better(share=run.share):
            better, before, by_stop = better + 1, before + early, by_stop + late
    compared = sum(bool(run.looks) for run in runs)
    shares = [f"{count} ({100 * count / max(of, 1):.0f} %)" for count, of in ((before, better), (by_stop, better))]
    stated = [
        f"{right} of {of} ({100 * right / max(of, 1):.0f} %)" for right, of in ((true, statements), (shown_true, shown))
    ]
    return [str(len(runs)), str(compared), str(better), *shares, *stated, f"{np.median(seconds or [0.0]):.1f} s"]


def fitted(runs: Sequence[Run], chosen: float) -> RatioPrior:
    """The constants with the largest likelihood of the true ratios of the runs.

    A single normal distribution is fitted first. For classes, models that are not linear have usual errors with one
    slope, and the mixture is fitted then, with these errors. For numbers the usual ratio is 1.
    """
    flat = _prior([14.0, 0.0, 0.0, -40.0], chosen)
    seen = [(run.model, name, look) for run in runs for look in run.looks for name in look.others]
    truth = np.array([look.log_ratio(name) for _, name, look in seen])
    estimate, error, _ = np.array([look.losses(model).ratio(name, flat) for model, name, look in seen]).T
    kinds = [*NOT_LINEAR] if runs[0].share else []

    def terms(name: str, n: int) -> list[float]:
        logarithm = UsualError(0.0, 1.0).at(n)
        return [*(float(name == kind) for kind in kinds), logarithm * (name in kinds)]

    differences = np.array([np.subtract(terms(name, look.n), terms(model, look.n)) for model, name, look in seen])

    def loss(values: Any, usual: Any) -> float:
        prior = _prior(values, chosen)
        variance = prior.noise * error**2 + prior.shift**2
        likelihood, evidence = np.zeros(len(truth)), np.zeros(len(truth))
        for deviation, share in ((prior.deviation, 1.0 - prior.share_far), (prior.far, prior.share_far)):
            total = deviation**2 + variance
            mean = usual + (estimate - prior.handicap - usual) * deviation**2 / total
            fit = share * norm.pdf(estimate - prior.handicap, usual, np.sqrt(total))
            evidence += fit
            likelihood += fit * norm.pdf(truth, mean, deviation * np.sqrt(variance / total))
        return float(-np.log(np.maximum(likelihood, 1e-300) / np.maximum(evidence, 1e-300)).mean())

    def best(starts: Sequence[Sequence[float]], of: Callable[[Any], float]) -> Any:
        options = {"maxiter": 20_000, "maxfev": 20_000}
        found = [minimize(of, start, method="Nelder-Mead", options=options) for start in starts]
        return min(found, key=lambda result: result.fun).x

    no_errors = [0.0 for _ in differences.T]
    starts = ([-1.0, 0.0, 0.0, -2.0], [-0.5, 0.1, 0.5, -1.5])
    normal = best([[*start, *no_errors] for start in starts], lambda x: loss(x[:4], differences @ x[4:]))
    *at_50, slope = normal[4:]
    errors = {kind: UsualError(float(value), float(slope)) for kind, value in zip(kinds, at_50, strict=True)}
    if not kinds:
        return _prior(normal[:4], chosen)
    starts = ([-1.6, 0.0, 0.4, -2.5, -0.5, -1.0], [-1.2, 0.05, 0.0, -2.0, 0.0, -1.5])
    mixture = best(starts, lambda x: loss(x, differences @ normal[4:]))
    return _prior(mixture, chosen)._replace(errors=errors)


def _prior(values: Any, chosen: float) -> RatioPrior:
    """Constants from four values of a fit, which may be any numbers, and two more for a mixture."""
    deviation, handicap, noise, shift, *mixture = (float(value) for value in values)
    far, odds = mixture or (deviation, -math.inf)
    share_far = 1.0 / (1.0 + math.exp(min(-odds, 700.0)))
    scales = math.exp(deviation), math.exp(far), share_far, handicap, math.exp(noise), math.exp(shift)
    return RatioPrior(*scales, chosen, errors={}, clearly=1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--sets", default="test,fresh,last", help="groups separated by commas: " + ", ".join(GROUPS))
    parser.add_argument("--models", default="logistic,gp")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--leave-out", default="", help="sets separated by commas")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    given.runs.mkdir(parents=True, exist_ok=True)
    groups = given.sets.split(",")
    # Other seeds than those of the development sets, so that nothing was seen before.
    first = 0 if "development" in groups else 20
    runs: dict[tuple[str, str], list[Run]] = {}
    for seed in range(first, first + given.seeds):
        for model in given.models.split(","):
            for group in groups:
                wanted = [name for name in group_names(MODELS[model], group) if name not in given.leave_out.split(",")]
                runs.setdefault((model, group), []).extend(record(given.runs, model, name, seed) for name in wanted)
    if given.fit:
        for task in ("classification", "regression"):
            of_task = [run for (model, _), made in runs.items() if MODELS[model] == task for run in made]
            if of_task:
                for chosen in (0.0, 0.25, 0.5, 1.0):
                    print(task, fitted(of_task, chosen))
    head = ["current model", "data sets", "runs", "compared", "another is at least 20 % better"]
    head += ["named before the stop", "at the stop or before", "statements that are true"]
    head += ["comparisons that name a better model, of those that name one", "time of a comparison"]
    rows = [
        [model, f"{len({run.name for run in made})} {group}", *row(made)]
        for (model, group), made in runs.items()
        if made
    ]
    publish("better-models", table(head, rows))


if __name__ == "__main__":
    main()
