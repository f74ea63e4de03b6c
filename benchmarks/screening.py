"""Recall and effort of the rules of screening on real collections, thinned to 1, 3 and 10 % relevant items.

A collection is screened from 10 random labels to the last item. The next item is always the one that is likeliest to be
relevant by a logistic regression (on TF-IDF weights for texts). The model is fitted again after each label at first,
and later whenever there are 4 % more. All rules look after every label. A run counts as under target if less than the
requested share of the relevant items is found at its stop.

    python benchmarks/screening.py --runs FILE [--seconds 1200] [--write]

adds runs to FILE (JSON lines) as long as the time allows, and writes docs/measured/screening.md and
screening-order.md from all of them.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import suffice as sf
from suffice.checks import Guarantee, plan_recall, spent_alpha
from suffice.criteria import Criterion, Step
from suffice_research.data import data_folder
from suffice_research.data.set_readers import read_texts, read_words
from tables import MEASURED, table

SIZE: Final = 3000
SHARES: Final = (0.01, 0.03, 0.1)
SEEDS: Final = 10
TARGETS: Final = (0.95, 0.8)
GROWTH: Final = 0.04
#: The rules at a target, in the order of the table, and the share of runs that may be under target.
RULES: Final[dict[str, tuple[Callable[[float], Criterion], float | None]]] = {
    "`RecallTest`": (sf.RecallTest, 0.05),
    "`QuantCI`": (sf.QuantCI, None),
    "`PoissonRecall`": (sf.PoissonRecall, 0.05),
    "`Knee`": (lambda _: sf.Knee(), None),
    "`Knee(0)`": (lambda _: sf.Knee(0), None),
    "`ConsecutiveIrrelevant(50)`": (lambda _: sf.ConsecutiveIrrelevant(50), None),
    "`ConsecutiveIrrelevant(200)`": (lambda _: sf.ConsecutiveIrrelevant(200), None),
    "`Safe`": (lambda _: sf.Safe(), None),
}


class Collection(NamedTuple):
    """Features of all items, and which of them are relevant."""

    X: Any
    relevant: NDArray[np.bool_]


def _texts(name: str, positive: Sequence[str]) -> Collection:
    texts, labels = read_texts(name)
    kept = [(text[:3000], label in positive) for text, label in zip(texts, labels, strict=True) if text.strip()]
    weights = TfidfVectorizer(max_features=5000, min_df=2, sublinear_tf=True).fit_transform([text for text, _ in kept])
    return Collection(weights.tocsr(), np.array([flag for _, flag in kept]))


def _pulsars() -> Collection:
    read = pd.read_csv(data_folder() / "uci" / "htru2.csv", header=None)
    return Collection(StandardScaler().fit_transform(read.iloc[:, :-1]), read.iloc[:, -1].to_numpy() == 1)


def _adult() -> Collection:
    read = read_words("adult")
    return Collection(StandardScaler().fit_transform(read.X), np.asarray(read.y) == ">50K")


COLLECTIONS: Final[dict[str, Callable[[], Collection]]] = {
    "SMS: spam": lambda: _texts("sms_spam", ("spam",)),
    "newsgroups: medicine": lambda: _texts("newsgroups", ("sci.med",)),
    "HTRU2: pulsars": _pulsars,
    "Adult: high income": _adult,
}


@cache
def collection(name: str) -> Collection:
    """A collection, read once."""
    return COLLECTIONS[name]()


def screening(name: str, share: float, seed: int, random_share: float) -> dict[str, Any]:
    """One run: relevance in the order of the screening, and sums over the probabilities after each label."""
    given = collection(name)
    rng = np.random.default_rng([seed, round(1000 * share)])
    wanted = round(SIZE * share)
    pool = np.concatenate(
        [
            rng.permutation(np.flatnonzero(given.relevant))[:wanted],
            rng.permutation(np.flatnonzero(~given.relevant))[: SIZE - wanted],
        ]
    )
    pool = rng.permutation(pool)
    X, y = given.X[pool], given.relevant[pool]
    assert y.sum() == wanted
    shuffled = rng.permutation(SIZE)
    order = shuffled[:10].tolist()
    sums: list[tuple[float, float, float, float]] = []
    free = np.ones(SIZE, dtype=bool)
    free[order] = False
    while len(order) < SIZE:
        if y[order].any() and not y[order].all():
            model = LogisticRegression(C=10.0, solver="liblinear").fit(X[order], y[order])
            p = model.predict_proba(X)[:, 1]
        else:
            # Nothing is known of a class without a label.
            p = np.full(SIZE, y[order].mean())
        variance = p * (1.0 - p)
        a, v_a, b, v_b = p[~free].sum(), variance[~free].sum(), p[free].sum(), variance[free].sum()
        sums += [(a, v_a, b, v_b)] * (len(order) - len(sums))
        ranked = np.argsort(-p[shuffled], kind="stable")
        ranked = shuffled[ranked][free[shuffled[ranked]]]
        drawn = shuffled[free[shuffled]]
        size = max(1, int((GROWTH if y[order].sum() < wanted else 4.0 * GROWTH) * len(order)))
        for _ in range(min(size, SIZE - len(order))):
            random = int(random_share * (len(order) + 1)) > int(random_share * len(order))
            source = drawn if random else ranked
            item = int(next(i for i in source if free[i]))
            free[item] = False
            order.append(item)
    sums += [sums[-1]] * (len(order) - len(sums))
    return {
        "set": name,
        "share": share,
        "seed": seed,
        "random_share": random_share,
        "relevance": "".join("1" if y[item] else "0" for item in order),
        "sums": [[float(f"{value:.6g}") for value in row] for row in sums],
    }


_STOPS: Final[dict[tuple[Any, ...], int]] = {}


def stop_of(run: dict[str, Any], rule: Criterion) -> int:
    """The number of items screened when a rule stops; all of them if it does not."""
    key = (run["set"], run["share"], run["seed"], run["random_share"], repr(rule))
    if key not in _STOPS:
        _STOPS[key] = _first_stop(run, rule.copy())
    return _STOPS[key]


def _first_stop(run: dict[str, Any], rule: Criterion) -> int:
    if isinstance(rule, sf.RecallTest):
        return _first_rejection(run, rule)
    found = np.cumsum(np.array(list(run["relevance"]), dtype=int))
    rate = found[9] / 10.0
    for n in range(10, SIZE + 1):
        a, v_a, b, v_b = run["sums"][n - 1]
        step = Step(
            n_labelled=n,
            pool_size=SIZE,
            relevant_found=int(found[n - 1]),
            estimated_relevant=max(SIZE * rate, float(found[n - 1])),
            classes_seen=1 + int(found[n - 1] > 0),
            expected_found=a,
            found_variance=v_a,
            expected_missed=b,
            missed_variance=v_b,
        )
        if rule.observe(step).stop:
            return n
    return SIZE


def _first_rejection(run: dict[str, Any], rule: sf.RecallTest) -> int:
    """The first stop of the test, by bisection: while nothing relevant comes, its probability falls."""
    places = [place + 1 for place, digit in enumerate(run["relevance"]) if digit == "1"]

    def stops(n: int, found: int) -> bool:
        return rule.copy().observe(Step(n_labelled=n, relevant_found=found, pool_size=SIZE)).stop

    for found, (first, after) in enumerate(pairwise([0, *places, SIZE + 1])):
        if first:
            rule.observe(Step(n_labelled=first, relevant_found=found, pool_size=SIZE))
        if max(first, 10) < after and stops(after - 1, found):
            low, high = max(first, 10), after - 1
            while low < high:
                middle = (low + high) // 2
                low, high = (low, middle) if stops(middle, found) else (middle + 1, high)
            return low
    return SIZE


class Outcome(NamedTuple):
    """What a screening cost and found: shares of all items, and of the relevant ones."""

    screened: float
    recall: float


def with_rule(run: dict[str, Any], rule: Criterion) -> Outcome:
    """The outcome of a rule that needs nothing but the screening."""
    stop = stop_of(run, rule)
    found = run["relevance"].count("1", 0, stop)
    return Outcome(stop / SIZE, found / run["relevance"].count("1"))


def with_control(run: dict[str, Any], recall: float) -> Outcome | None:
    """The outcome with a control sample of the least size, whose labels count; None if there are too few relevant."""
    rng = np.random.default_rng([run["seed"], 5])
    relevance = np.array(list(run["relevance"]), dtype=int)
    sample = sf.QuantileRecall.least_sample(recall)
    if relevance.sum() < sample:
        return None
    drawn = rng.permutation(SIZE)
    drawn = drawn[: np.searchsorted(np.cumsum(relevance[drawn]), sample) + 1]
    control = np.zeros(SIZE, dtype=int)
    control[drawn[relevance[drawn] == 1]] = 1
    stop = int(np.searchsorted(np.cumsum(control), sf.QuantileRecall(sample, recall).required())) + 1
    labelled = np.arange(SIZE) < stop
    # The recall is that of the screening; the control items count on top.
    labelled[drawn] = True
    return Outcome(labelled.mean(), relevance[labelled].sum() / relevance.sum())


def with_guarantee(run: dict[str, Any], recall: float, first: Criterion) -> tuple[Outcome, bool]:
    """The outcome of a check of the rest after a rule says stop, and whether what it guaranteed is true.

    The check has the size that proves the recall if nothing is missed. If nothing less than all items is enough, or the
    check does not prove the recall, the screening goes on for a tenth more, and another check follows.
    """
    rng = np.random.default_rng([run["seed"], 6])
    relevance = np.array(list(run["relevance"]), dtype=int)
    labelled = np.arange(SIZE) < stop_of(run, first)
    checks = 0
    while not labelled.all():
        left, found = int((~labelled).sum()), int(relevance[labelled].sum())
        plan = plan_recall(recall, found, 0, left, alpha=spent_alpha(checks + 1)) if found else None
        if plan is not None and plan.labels is not None and plan.labels < left:
            checks += 1
            drawn = rng.permutation(np.flatnonzero(~labelled))[: plan.labels]
            new = int(relevance[drawn].sum())
            proven = Guarantee.of_recall("1", found, new, len(drawn), left, alpha=spent_alpha(checks)).value
            labelled[drawn] = True
            if proven >= recall:
                reached = relevance[labelled].sum() / relevance.sum()
                return Outcome(labelled.mean(), reached), bool(reached >= proven)
        more = np.flatnonzero(~labelled)[: max(10, int(0.1 * labelled.sum()))]
        labelled[more] = True
    return Outcome(1.0, 1.0), True


def best(run: dict[str, Any], recall: float) -> Outcome:
    """The first moment at which the target is reached, which only hindsight knows."""
    found = np.cumsum(np.array(list(run["relevance"]), dtype=int))
    stop = int(np.searchsorted(found, np.ceil(recall * found[-1] - 1e-9))) + 1
    return Outcome(stop / SIZE, found[stop - 1] / found[-1])


def _cells(outcomes: Sequence[Outcome | None], recall: float) -> str:
    known = [each for each in outcomes if each is not None]
    if not known:
        return "not possible"
    under = sum(each.recall < recall - 1e-9 for each in known)
    median, least = 100.0 * np.median([each.screened for each in known]), 100.0 * min(each.recall for each in known)
    recalls = f"{100.0 * np.median([each.recall for each in known]):.1f} ({least:.0f})"
    return f"{median:.0f} % · {recalls} · {under}/{len(known)}"


def tables(runs: Sequence[dict[str, Any]], recall: float) -> str:
    """Share screened, recall and runs under target: rules against shares of relevant items, over all collections."""
    outcomes: dict[str, dict[float, list[Outcome | None]]] = defaultdict(lambda: defaultdict(list))
    truths: list[bool] = []
    for number, run in enumerate(runs):
        print(f"{recall}: run {number} of {len(runs)}", end="\r", flush=True)
        share = run["share"]
        outcomes["best in hindsight"][share].append(best(run, recall))
        for name, (make, _) in RULES.items():
            outcomes[name][share].append(with_rule(run, make(recall)))
        outcomes["`QuantileRecall`"][share].append(with_control(run, recall))
        found, true = with_guarantee(run, recall, sf.ConsecutiveIrrelevant(200))
        outcomes["`RecallGuarantee`"][share].append(found)
        truths.append(true)
    nominal = {name: allowed for name, (_, allowed) in RULES.items()} | {
        "`QuantileRecall`": 0.05,
        "`RecallGuarantee`": 0.05,
    }
    rows = []
    for name, cells in outcomes.items():
        every = [each for values in cells.values() for each in values if each is not None]
        allowed = nominal.get(name)
        under = np.mean([each.recall < recall - 1e-9 for each in every])
        rows.append(
            [
                name,
                *(_cells(cells[share], recall) for share in SHARES),
                f"{100.0 * np.mean([each.screened for each in every]):.0f} %",
                f"{100.0 * under:.0f} % ({'none stated' if allowed is None else f'{100.0 * allowed:.0f} %'})",
            ]
        )
    header = [
        f"recall {recall:g}",
        *(f"{100.0 * share:g} % relevant" for share in SHARES),
        "screened, mean",
        "under target (allowed)",
    ]
    print(f"guarantees that are true: {sum(truths)} of {len(truths)}")
    return table(header, rows)


def by_collection(runs: Sequence[dict[str, Any]], recall: float) -> str:
    """The same for each collection, in brief: share screened and runs under target."""
    names = list(dict.fromkeys(run["set"] for run in runs))
    rows = []
    for rule, (make, _) in RULES.items():
        cells = []
        for name in names:
            found = [with_rule(run, make(recall)) for run in runs if run["set"] == name]
            under = sum(each.recall < recall - 1e-9 for each in found)
            cells.append(f"{100.0 * np.mean([each.screened for each in found]):.0f} % · {under}/{len(found)}")
        rows.append([rule, *cells])
    return table([f"recall {recall:g}", *names], rows)


def order_table(runs: Sequence[dict[str, Any]], recall: float = 0.95) -> str:
    """Items screened until a recall is reached, with and without random labels in between."""
    found: dict[tuple[str, float], dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        found[run["set"], run["share"]][run["random_share"]].append(best(run, recall).screened)
    shares = sorted({run["random_share"] for run in runs})
    rows = [
        [name, f"{100.0 * share:g} %", *(f"{100.0 * np.mean(cells[each]):.1f} %" for each in shares)]
        for (name, share), cells in sorted(found.items())
        if all(cells[each] for each in shares)
    ]
    return table(["collection", "relevant", *(f"random labels: {100.0 * each:g} %" for each in shares)], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=Path, required=True, help="file with one run a line")
    parser.add_argument("--seconds", type=float, default=1200.0, help="time for new runs")
    parser.add_argument("--write", action="store_true", help="write docs/measured/screening.md and screening-order.md")
    given = parser.parse_args()
    lines = given.runs.read_text().splitlines() if given.runs.exists() else []
    runs = [json.loads(line) for line in lines]
    done = {(run["set"], run["share"], run["seed"], run["random_share"]) for run in runs}
    start = time.monotonic()
    plan = [(seed, name, share, 0.0) for seed in range(SEEDS) for name in COLLECTIONS for share in SHARES]
    plan += [(seed, name, share, 0.2) for seed in range(3) for name in COLLECTIONS for share in SHARES]
    for seed, name, share, random_share in plan:
        if (name, share, seed, random_share) in done or time.monotonic() - start > given.seconds:
            continue
        begun = time.monotonic()
        runs.append(screening(name, share, seed, random_share))
        with given.runs.open("a") as file:
            file.write(json.dumps(runs[-1]) + "\n")
        print(name, share, seed, random_share, f"{time.monotonic() - begun:.1f} s", flush=True)
    ranked = [run for run in runs if run["random_share"] == 0.0]
    text = "\n\n".join(tables(ranked, recall) for recall in TARGETS) + "\n\n" + by_collection(ranked, 0.95)
    print(text)
    order = order_table([run for run in runs if run["seed"] < 3])
    print(order)
    if given.write:
        (MEASURED / "screening.md").write_text(text + "\n")
        (MEASURED / "screening-order.md").write_text(order + "\n")


if __name__ == "__main__":
    main()
