"""The rules of suffice next to the stoppers of ASReview, in simulations of ASReview.

Collections of texts are thinned to 2,000 records with 2, 5 and 10 % relevant ones and simulated with the default model
of ASReview 3 (ELAS u4: TF-IDF weights of words and pairs of words, a linear support vector machine), from one relevant
and one irrelevant record to the last record. The model is fitted again after each label at first, and later whenever
there are 4 % more. Each stopper is asked after each label. A run is under target if less than 95 % of the relevant
records are found.

    python benchmarks/asreview_stoppers.py [--write]

needs ASReview 3 and the data sets (``suffice data fetch newsgroups sms_spam``), and takes about a quarter of an hour.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np

from suffice.integrations import asreview as ours
from suffice_research.data.set_readers import read_texts
from tables import publish, table

SIZE: Final = 2000
SHARES: Final = (0.02, 0.05, 0.1)
SEEDS: Final = 10
TARGET: Final = 0.95
COLLECTIONS: Final = {
    "SMS: spam": ("sms_spam", "spam"),
    "newsgroups: medicine": ("newsgroups", "sci.med"),
}


class Outcome(NamedTuple):
    """Where a stopper stopped, as shares of the records and of the relevant ones."""

    screened: float
    recall: float


@cache
def texts_of(name: str) -> tuple[Any, Any]:
    """All texts of a collection, and which of them are relevant."""
    source, positive = COLLECTIONS[name]
    texts, labels = read_texts(source)
    kept = [(text[:3000], label == positive) for text, label in zip(texts, labels, strict=True) if text.strip()]
    return np.array([text for text, _ in kept], dtype=object), np.array([flag for _, flag in kept])


def simulated(name: str, share: float, seed: int) -> Any:
    """The results of a simulation to the last record: a table with record_id and label in order."""
    import pandas as pd
    from asreview import ActiveLearningCycle, Simulate
    from asreview.models.models import get_ai_config

    texts, relevant = texts_of(name)
    rng = np.random.default_rng([seed, round(1000 * share)])
    wanted = round(SIZE * share)
    some = np.concatenate(
        [
            rng.permutation(np.flatnonzero(relevant))[:wanted],
            rng.permutation(np.flatnonzero(~relevant))[: SIZE - wanted],
        ]
    )
    some = rng.permutation(some)
    cycle = ActiveLearningCycle.from_meta(get_ai_config("elas_u4")["value"])
    cycle.n_query = lambda results: max(1, len(results) // 25)
    records = pd.DataFrame({"title": "", "abstract": texts[some]})
    labels = relevant[some].astype(int)
    simulation = Simulate(records, labels, [cycle], stopper=-1, print_progress=False)
    simulation.label([int(rng.choice(np.flatnonzero(labels == kind))) for kind in (1, 0)])
    simulation.review()
    return simulation._results


def stoppers() -> dict[str, Any]:
    """Stoppers by name."""
    from asreview.models.stoppers import NConsecutiveIrrelevant, QuantileLabeled

    return {
        "ASReview `NConsecutiveIrrelevant(50)`": NConsecutiveIrrelevant(50),
        "ASReview `NConsecutiveIrrelevant(100)`": NConsecutiveIrrelevant(100),
        "ASReview `NConsecutiveIrrelevant(200)`": NConsecutiveIrrelevant(200),
        "ASReview `QuantileLabeled(0.5)`": QuantileLabeled(0.5),
        "`suffice_recall_test`": ours.RecallTestStopper(at_least=TARGET),
        "`suffice_knee`, `least_screened` 0": ours.KneeStopper(least_screened=0),
        "`suffice_poisson_recall`": ours.PoissonRecallStopper(at_least=TARGET),
        "`suffice_safe`": ours.SafeStopper(),
    }


def outcomes(results: Any) -> dict[str, Outcome]:
    """Where each stopper stops, asked after each label."""
    relevant = np.cumsum(results["label"].to_numpy())
    found = {}
    for name, stopper in stoppers().items():
        if isinstance(stopper, ours.RuleStopper):
            # The answers after each label are kept, and depend on the labels before only.
            stopper.stop(results, np.zeros(SIZE))
            place = next((said.n_labelled for said in stopper.verdicts if said.stop), SIZE)
        else:
            place = next(n for n in range(2, SIZE + 1) if stopper.stop(results.iloc[:n], np.zeros(SIZE)))
        found[name] = Outcome(place / SIZE, relevant[place - 1] / relevant[-1])
    reached = int(np.argmax(relevant >= np.ceil(TARGET * relevant[-1]))) + 1
    return {
        "the first moment with a recall of 95 %": Outcome(reached / SIZE, relevant[reached - 1] / relevant[-1]),
        **found,
    }


def main() -> None:
    """Simulate and print the table."""
    lines: dict[str, list[str]] = {}
    for share in SHARES:
        runs = [outcomes(simulated(name, share, seed)) for name in COLLECTIONS for seed in range(SEEDS)]
        print(f"{share:.0%} relevant: {len(runs)} runs", flush=True)
        for rule in runs[0]:
            screened, recall = zip(*(each[rule] for each in runs), strict=True)
            under = sum(value < TARGET for value in recall)
            cell = f"{np.median(screened):.0%}, {np.median(recall):.2f} ({min(recall):.2f}), {under}"
            lines.setdefault(rule, [rule]).append(cell.replace("%", " %"))
    header = ["stopper", *(f"{share:.0%} relevant".replace("%", " %") for share in SHARES)]
    publish("asreview-stoppers", table(header, list(lines.values())))


if __name__ == "__main__":
    main()
