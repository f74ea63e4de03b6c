"""The rules of suffice next to those of small-text, on the binary example of small-text.

Posts of two newsgroups, baseball and hockey, without headers, quotes and signatures; TF-IDF weights; the linear support
vector machine of the example; 20 labels at the start, half of each class, and 20 more in each round. The example draws
them at random; the second half of the table asks for the least confident ones. Every rule has its default settings.

    python benchmarks/small_text_rules.py [--write]

needs small-text and the data set (``suffice data fetch newsgroups``), and takes about ten minutes.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import warnings
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

import suffice as sf
from suffice.integrations.small_text import SmallTextCriterion
from suffice_research.data.set_readers import read_texts
from tables import publish, table

GROUPS: Final = ("rec.sport.baseball", "rec.sport.hockey")
SEEDS: Final = 10
START, BATCH, LAST = 20, 20, 1000


class Sets(NamedTuple):
    """Features and classes of the pool and of the test set."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any


def example() -> Sets:
    """The data of the example; two thirds of the posts are the pool."""
    texts, labels = read_texts("newsgroups")
    kept = [(text, label) for text, label in zip(texts, labels, strict=True) if label in GROUPS]
    y = np.array([GROUPS.index(label) for _, label in kept])
    order = np.random.default_rng(0).permutation(len(kept))
    pool, test = order[: 2 * len(kept) // 3], order[2 * len(kept) // 3 :]
    vectorizer = TfidfVectorizer(stop_words="english")
    X = normalize(vectorizer.fit_transform([kept[k][0] for k in pool]))
    return Sets(X, y[pool], normalize(vectorizer.transform([kept[k][0] for k in test])), y[test])


def rules() -> dict[str, Callable[[Any], Any]]:
    """Rules by name: each is made for a run and answers after each round."""
    import small_text as st

    def theirs(rule: Any) -> Callable[[Any], bool]:
        def stop(learner: Any) -> bool:
            predictions, proba = learner.classifier.predict(learner.dataset, return_proba=True)
            unlabelled = np.setdiff1d(np.arange(len(learner.dataset)), learner.indices_labeled)
            return bool(
                rule.stop(active_learner=learner, predictions=predictions, proba=proba, indices_stopping=unlabelled)
            )

        return stop

    def ours(rule: sf.Criterion | None = None, **options: Any) -> Callable[[Any], bool]:
        criterion = SmallTextCriterion(rule, **options)
        return lambda learner: criterion.stop(active_learner=learner)

    return {
        "small-text `KappaAverage`": lambda _: theirs(st.KappaAverage(2)),
        "small-text `DeltaFScore`": lambda _: theirs(st.DeltaFScore(2)),
        "small-text `ClassificationChange`": lambda _: theirs(st.ClassificationChange(2)),
        "small-text `OverallUncertainty`": lambda _: theirs(st.OverallUncertainty(2)),
        "small-text `MaxIterations(10)`": lambda _: theirs(st.MaxIterations(10)),
        "`StabilizingPredictions`": lambda _: ours(sf.StabilizingPredictions()),
        "`PredictedFChange`": lambda _: ours(sf.PredictedFChange()),
        "`ClassificationChange`": lambda _: ours(sf.ClassificationChange()),
        "`OverallUncertainty`": lambda _: ours(sf.OverallUncertainty()),
        "`LabelWorth`": lambda _: ours(),
        "`LabelWorth`, told which labels are random": lambda random: ours(random=random),
    }


class Run(NamedTuple):
    """One run: for each round the labels, the test error and the cost; and where each rule stopped."""

    labels: list[int]
    error: list[float]
    cost: list[float]
    stops: dict[str, int | None]


def run(data: Sets, strategy: Any, seed: int, *, random: bool) -> Run:
    """One run to the last label, with all rules beside it."""
    import small_text as st

    rng = np.random.default_rng(seed)
    np.random.seed(seed)  # noqa: NPY002 - the strategies of small-text use it
    start = np.concatenate([rng.choice(np.flatnonzero(data.y == kind), START // 2, replace=False) for kind in (0, 1)])
    train = st.SklearnDataset(data.X, data.y, target_labels=np.arange(2))
    learner = st.PoolBasedActiveLearner(
        st.SklearnClassifierFactory(st.ConfidenceEnhancedLinearSVC(), 2), strategy, train
    )
    learner.initialize_data(start, data.y[start])
    drawn = np.arange(len(data.y)) if random else ()
    told = "`LabelWorth`, told which labels are random"
    beside = {name: make(drawn) for name, make in rules().items() if random or name != told}
    found = Run([], [], [], dict.fromkeys(beside))
    while True:
        model = learner.classifier.model
        known = learner.indices_labeled
        rest = np.setdiff1d(np.arange(len(data.y)), known)
        found.labels.append(len(known))
        found.error.append(float((model.predict(data.X_test) != data.y_test).mean()))
        found.cost.append(len(known) + int((model.predict(data.X[rest]) != data.y[rest]).sum()))
        for name, stop in beside.items():
            if found.stops[name] is None and stop(learner):
                found.stops[name] = len(found.labels) - 1
        if len(known) >= LAST:
            return found
        queried = learner.query(num_samples=BATCH)
        learner.update(data.y[queried])


def rows(runs: list[Run]) -> list[list[str]]:
    """The rows of the table for one strategy."""
    found = []
    best = [int(np.argmin(each.cost)) for each in runs]
    for name in ["the best stop", *runs[0].stops]:
        stops = best if name == "the best stop" else [each.stops[name] for each in runs]
        # A rule that has not stopped pays for all labels of the run.
        places = [len(each.labels) - 1 if stop is None else stop for each, stop in zip(runs, stops, strict=True)]
        labels = [each.labels[place] for each, place in zip(runs, places, strict=True)]
        error = [each.error[place] for each, place in zip(runs, places, strict=True)]
        cost = [each.cost[place] for each, place in zip(runs, places, strict=True)]
        found.append(
            [
                name,
                f"{np.median(labels):.0f} ({min(labels)} to {max(labels)})",
                f"{100 * np.mean(error):.1f} %",
                f"{np.mean(cost):.0f}",
                str(sum(stop is None for stop in stops)),
            ]
        )
    return found


def main() -> None:
    """Run and print the table."""
    import small_text as st

    warnings.simplefilter("ignore")
    data = example()
    strategies = {"at random, as in the example": st.RandomSampling(), "least confident": st.LeastConfidence()}
    lines: list[list[str]] = []
    for name, strategy in strategies.items():
        runs = [run(data, strategy, seed, random=isinstance(strategy, st.RandomSampling)) for seed in range(SEEDS)]
        lines += [[f"**labels {name}**", "", "", "", ""], *rows(runs)]
    header = ["rule", "labels at the stop: median (range)", "test error", "cost", f"no stop in {SEEDS} runs"]
    publish("small-text-rules", table(header, lines))


if __name__ == "__main__":
    main()
