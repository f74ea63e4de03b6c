"""How often the advice to stop is withdrawn, at mistake costs of 0.1 to 100 labels, on development sets.

A learner labels each set, one label at a time at first, and gets the decision without a target after each step. The run
goes on after a stop. A reversal is a stop that is followed by another answer. The verdict and the decision are compared
at each step. The sets with rare classes are generated: 2 and 4 % of their items are positive.

    python benchmarks/reversals.py [--sets classes] [--labels 250] [--seeds 1] [--details FILE] [--write]
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

import suffice as sf
from evaluation_sets import evaluation_set
from suffice.criteria import LabelWorth
from suffice.models.factory import make_model
from tables import publish, table

PRICES: Final = (0.1, 1.0, 10.0, 100.0)
NUMBERS: Final = ("power plant", "protein", "gas emission", "diabetes", "steps", "products", "concrete")
CLASSES: Final = ("htru2", "grid classes", "adult", "letter", "breast cancer", "circle")
RARE: Final = {"2 % positives": 0.02, "4 % positives": 0.04}
_STOPS: Final = frozenset({"enough", "limit", "complete"})
# Labels of a step: one, and later this share of the labels so far.
_GROWTH: Final = 0.04


@dataclass(frozen=True)
class Advised:
    """A run: the answer, and whether the verdict is to stop, after each number of labels.

    Attributes:
        positives: Number of labels of the rarest class at the first stop; None without a stop, or for numbers.
        recall: Share of the unlabelled items of that class that are predicted as such at the first stop.
    """

    name: str
    price: float
    seed: int
    labels: list[int]
    answers: Sequence[str]
    stops: list[bool]
    positives: int | None
    recall: float | None
    seconds: float

    @property
    def stopped(self) -> list[bool]:
        """Whether the answer is to stop, at each step."""
        return [answer in _STOPS for answer in self.answers]

    @property
    def reversals(self) -> int:
        """Number of times that a stop was followed by another answer."""
        return sum(before and not now for before, now in zip(self.stopped, self.stopped[1:], strict=False))

    @property
    def disagreements(self) -> int:
        """Number of steps at which the verdict and the answer differ."""
        return sum(stop != answer for stop, answer in zip(self.stops, self.stopped, strict=True))

    @property
    def first(self) -> int | None:
        """Number of labels at the first stop; None without one."""
        return next((n for n, stop in zip(self.labels, self.stopped, strict=True) if stop), None)


def data_of(name: str, seed: int) -> tuple[Any, Any]:
    """Pool and labels of a set."""
    if name not in RARE:
        X, y, _, _ = evaluation_set(name).split(seed)
        return X, y
    rng = np.random.default_rng([seed, 31])
    X = rng.normal(size=(3000, 5))
    score = X[:, 0] + 0.6 * X[:, 1] + 0.4 * rng.normal(size=3000)
    return X, np.where(score > np.quantile(score, 1.0 - RARE[name]), "positive", "negative")


def run(name: str, model: str, price: float, seed: int, most: int) -> Advised:
    """One run, with the decision after each step."""
    start = time.perf_counter()
    X, y = data_of(name, seed)
    classes = np.unique(y).tolist() if model == "logistic" else None
    learner = sf.ActiveLearner(
        make_model(model, classes=classes, basis=0), X, criterion=LabelWorth(mistake_cost=price), seed=seed
    )
    labels, answers, stops = [], [], []
    positives, recall = None, None
    while len(learner.labelled) < min(most, len(X) // 2):
        n = len(learner.labelled)
        items = learner.ask(max(1, int(_GROWTH * n)) if n else 10)
        verdict = learner.tell(items, y[items])
        labels.append(len(learner.labelled))
        answers.append(learner.decision().answer)
        stops.append(verdict.stop)
        if classes and positives is None and answers[-1] in _STOPS:
            rarest = min(classes, key=lambda each: int(np.sum(y == each)))
            positives = sum(bool(label == rarest) for label in learner.labels.values())
            rest = np.setdiff1d(np.arange(len(X)), learner.labelled)
            rest = rest[y[rest] == rarest]
            recall = float(np.mean(learner.current_model.predict(X[rest]) == rarest)) if len(rest) else None
    seconds = time.perf_counter() - start
    return Advised(name, price, seed, labels, answers, stops, positives, recall, seconds)


def shown(runs: Sequence[Advised]) -> str:
    """The results as a table, by kind of labels and price."""
    groups: dict[tuple[str, float], list[Advised]] = defaultdict(list)
    for each in runs:
        kind = "rare classes" if each.name in RARE else "numbers" if each.positives is None else "classes"
        kind = "numbers" if each.name in NUMBERS else "classes" if each.name in CLASSES else kind
        groups[kind, each.price].append(each)
    rows = []
    for (kind, price), group in sorted(groups.items()):
        stopped = [each for each in group if each.first is not None]
        reversed_ = sum(each.reversals > 0 for each in group)
        differ = sum(each.disagreements > 0 for each in group)
        median = f"{np.median([each.first for each in stopped]):.0f}" if stopped else "none"
        rows.append([kind, f"{price:g}", str(len(group)), str(len(stopped)), median, str(reversed_), str(differ)])
    share = np.mean([each.reversals > 0 for each in runs])
    head = ["labels", "mistake cost", "runs", "with a stop", "labels at the first stop, median"]
    total = f"\n\nIn {100 * share:.0f} % of the {len(runs)} runs a stop was withdrawn at least once."
    return table([*head, "runs with a reversal", "runs where verdict and answer differ"], rows) + total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--labels", type=int, default=250)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--details", type=Path)
    parser.add_argument("--sets", choices=["numbers", "classes", "all"], default="all")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    jobs = [(name, "gp" if number % 2 else "ridge") for number, name in enumerate(NUMBERS) if given.sets != "classes"]
    jobs += [(name, "logistic") for name in (*RARE, *CLASSES) if given.sets != "numbers"]
    runs = []
    for seed in range(given.seeds):
        for name, model in jobs:
            for price in PRICES:
                found = run(name, model, price, seed, given.labels)
                runs.append(found)
                said = f"first stop {found.first}, {found.reversals} reversals, {found.disagreements} differ"
                print(name, price, seed, said, found.positives, found.recall, f"{found.seconds:.0f} s", flush=True)
                if given.details is not None:
                    given.details.write_text(json.dumps([asdict(each) for each in runs]))
    publish("reversals", shown(runs))


if __name__ == "__main__":
    main()
