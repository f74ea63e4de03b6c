"""How many items people read until all but a share of a class is found, guaranteed: ``finish.py screening``.

Runs are screenings with a logistic regression and with a forest, to the end of the pool. For each goal the check starts
when the plan says so; what it takes is its exact mean. Compared are: the same policy with the cut known, which knows
how many items of the class are left after each number of further items; the best start of the check in hindsight; and
the usual way, reading in order until ``RecallTest`` says stop, then a check of fixed size, and if it does not prove the
recall, a tenth more and another one.

None of the sets had a part in the choice of the policy, which was made on other classes and sets.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import product
from typing import Any, Final

import numpy as np
from sklearn.decomposition import PCA

import suffice as sf
from evaluation_sets import evaluation_set
from suffice.checks import Guarantee, SequentialTerms, allowed_missed, plan_recall, spent_alpha
from suffice.checks.finish_plan import joint_answers
from suffice.checks.sequential_terms import proof_probabilities
from suffice.learner import finished_run
from suffice.models.factory import make_model
from suffice.tables.transformers import TextComponents
from suffice_research.data import data_folder
from suffice_research.data.set_readers import mnist_folder, read_mnist, read_texts
from tables import table

GOALS: Final = (0.05, 0.1)
MODELS: Final = ("logistic", "forest")
ALPHA: Final = 0.025
#: Items of a set at most; of the largest one.
ROWS, LARGEST = 3000, 10_000
# Items at a step, as a share of those so far, and the share of the items at which a run ends.
_STEP, _LAST = 0.06, 0.97
# Random draws of the checks of fixed size, over which the labels are averaged.
_DRAWS: Final = 20


def _texts(name: str, class_name: str) -> tuple[Any, Any]:
    texts, labels = read_texts(name)
    kept = np.random.default_rng(0).permutation([k for k, text in enumerate(texts) if text.strip()])[:ROWS].tolist()
    return TextComponents().fit_transform([texts[k] for k in kept]), np.array([labels[k] == class_name for k in kept])


def _table(name: str, class_name: Any, rows: int = ROWS, share: float | None = None) -> tuple[Any, Any]:
    found = evaluation_set(name)
    y, rng = np.asarray(found.y == class_name), np.random.default_rng(0)
    kept = rng.permutation(len(y))[:rows]
    if share is not None:
        of_class, others = rng.permutation(np.flatnonzero(y)), rng.permutation(np.flatnonzero(~y))
        wanted = round(share * rows)
        kept = rng.permutation(np.concatenate([of_class[:wanted], others[: rows - wanted]]))
    return found.X[kept], y[kept]


def _images() -> tuple[Any, Any]:
    images, labels = read_mnist(mnist_folder(), "test")
    kept = np.random.default_rng(0).permutation(len(labels))[:ROWS]
    X = PCA(40, random_state=0).fit_transform(images[kept].reshape(len(kept), -1).astype(np.float64))
    return X / X[:, 0].std(), np.asarray(labels[kept] == 5)


def _emissions() -> tuple[Any, Any]:
    import pandas as pd

    frame = pd.concat([pd.read_csv(file) for file in sorted((data_folder() / "uci").glob("gas_emission_20*.csv"))])
    frame = frame.sample(ROWS, random_state=0)
    X = frame[["AT", "AP", "AH", "AFDP", "GTEP", "TIT", "TAT", "TEY", "CDP"]].to_numpy(dtype=np.float64)
    return (X - X.mean(axis=0)) / X.std(axis=0), (frame["CO"] > 6.0).to_numpy()


#: Sets with a rare class: features, and whether an item is of the class.
SETS: Final[dict[str, Callable[[], tuple[Any, Any]]]] = {
    "SMS messages: spam": lambda: _texts("sms_spam", "spam"),
    "newsgroups: cars": lambda: _texts("newsgroups", "rec.autos"),
    "letters: H": lambda: _table("letter", "H"),
    "digits (images): 5": _images,
    "gas turbine: high CO": _emissions,
    "skin (colours): skin": lambda: _table("skin", 1, LARGEST, 0.1),
}


@lru_cache(maxsize=8)
def data_of(name: str) -> tuple[Any, Any]:
    return SETS[name]()


# Runs.


def follow(job: tuple[str, str, int]) -> dict[str, Any]:
    """One run: at each step the numbers that decide, and for each goal the step at which the plan starts a check."""
    name, kind, seed = job
    warnings.simplefilter("ignore")
    X, y = data_of(name)
    order = np.random.default_rng([seed, 31]).permutation(len(X))
    X, y = X[order], y[order]
    rule = sf.RecallTest(at_least=1.0 - min(GOALS))
    model = make_model(kind, classes=[False, True], seed=seed)
    learner = sf.ActiveLearner(model, X, criterion=rule, positive=True, seed=seed)
    first, steps, starts = learner.ask(10), list[dict[str, Any]](), dict[str, int]()
    learner.tell(first, y[first])
    while len(learner.labelled) < _LAST * len(X):
        n = len(learner.labelled)
        rest, found = np.setdiff1d(np.arange(len(X)), learner.labelled), int(y[learner.labelled].sum())
        fitted = learner.current_model
        # A forest that has seen no item of the class does not know it.
        p = fitted.predict_proba(X[rest])[:, list(fitted.classes_).index(True)] if found else np.zeros(len(rest))
        ranked = y[rest][np.argsort(-p, kind="stable")]
        left = int(ranked.sum()) - np.concatenate([[0], np.cumsum(ranked)])
        cuts = np.unique(np.concatenate([[0], np.geomspace(1, len(rest) - 1, 40).astype(int)]))
        step: dict[str, Any] = {"n": n, "found": found, "rest": len(rest)}
        step |= {"cuts": cuts.tolist(), "left": left[cuts].tolist(), "estimate": learner.expected_missed()}
        for goal in GOALS:
            plan = learner.decision(goal, of="all").finish
            if plan is not None and plan.check_now and str(goal) not in starts:
                starts[str(goal)], step[f"expected {goal}"] = len(steps), plan.wrong
        steps.append(step)
        items = learner.ask(min(max(5, round(_STEP * n)), len(rest)))
        learner.tell(items, y[items])
    read = learner.labelled
    order_of_all = [*read, *np.setdiff1d(np.arange(len(X)), read).tolist()]
    relevance = "".join("1" if y[item] else "0" for item in order_of_all)
    return {"set": name, "model": kind, "seed": seed, "rows": len(X), "relevance": relevance, "steps": steps} | {
        "starts": starts
    }


# Policies on a followed run: items that people read, as a share of all.


def mean_answers(step: dict[str, Any], goal: float, expected: float) -> float:
    """Exact mean number of answers of a check at a step, planned for an expected number of items of the class."""
    pool, allowed, missed = step["rest"], allowed_missed(goal, step["found"]), step["left"][0]
    if allowed >= pool:
        return 0.0
    planned = max(1, round(float(joint_answers([pool], allowed, [expected], ALPHA)[0])))
    terms = SequentialTerms(pool, allowed, planned, ALPHA, corrected=True)
    proven = proof_probabilities(terms, [missed], pool)[0]
    return 1.0 + float((1.0 - proven[:-1]).sum())


def planned(run: dict[str, Any], goal: float) -> float:
    """The plan starts the check."""
    step = run["steps"][run["starts"].get(str(goal), len(run["steps"]) - 1)]
    answers = mean_answers(step, goal, step.get(f"expected {goal}", step["estimate"]))
    return float((step["n"] + answers) / run["rows"])


def cut_known(run: dict[str, Any], goal: float) -> float:
    """The same if it is known how many items of the class are left after each number of further items."""
    for step in run["steps"]:
        more, left = np.array(step["cuts"]), np.array(step["left"], dtype=np.float64)
        allowed = [allowed_missed(goal, int(step["found"] + left[0] - each)) for each in left]
        answers = joint_answers(step["rest"] - more, allowed, left, ALPHA)
        totals = step["n"] + more + answers
        if step["n"] >= max(20, answers[0]) and totals[0] <= 1.02 * totals.min():
            break
    return float((step["n"] + mean_answers(step, goal, float(step["left"][0]))) / run["rows"])


def best_start(run: dict[str, Any], goal: float) -> float:
    """A check at the step at which it is typically best, which only hindsight knows."""

    def typical(step: dict[str, Any]) -> float:
        allowed, left = allowed_missed(goal, step["found"]), step["left"][0]
        return float(step["n"] + joint_answers([step["rest"]], allowed, [left], ALPHA)[0])

    step = min(run["steps"], key=typical)
    return float((step["n"] + mean_answers(step, goal, float(step["left"][0]))) / run["rows"])


def fixed_size(run: dict[str, Any], goal: float) -> float:
    """Read in order until ``RecallTest`` says stop, then checks of fixed size, with a tenth more before each other."""
    relevance = np.array(list(run["relevance"]), dtype=int)
    found, size, recall = np.cumsum(relevance), run["rows"], 1.0 - goal
    rule, stop = sf.RecallTest(at_least=recall), size
    for n in range(10, size + 1):
        step = sf.Step(n_labelled=n, relevant_found=int(found[n - 1]), pool_size=size)
        if rule.observe(step).stop:
            stop = n
            break
    estimates = {step["n"]: step["estimate"] for step in run["steps"]}
    totals = []
    for draw in range(_DRAWS):
        rng, labelled, checks = np.random.default_rng([draw, 7]), np.arange(size) < stop, 0
        while not labelled.all():
            left, known = int((~labelled).sum()), int(relevance[labelled].sum())
            near = min(estimates, key=lambda n: abs(n - int(labelled.sum())))
            expected, level = min(left, round(estimates[near])), spent_alpha(checks + 1)
            plan = plan_recall(recall, known, expected, left, alpha=level) if known else None
            if plan is not None and plan.labels is not None and plan.labels < left:
                checks += 1
                drawn = rng.permutation(np.flatnonzero(~labelled))[: plan.labels]
                new = int(relevance[drawn].sum())
                proven = Guarantee.of_recall("1", known, new, len(drawn), left, alpha=level).value
                labelled[drawn] = True
                if proven >= recall:
                    break
            labelled[np.flatnonzero(~labelled)[: max(10, int(0.1 * labelled.sum()))]] = True
        totals.append(labelled.mean())
    return float(np.mean(totals))


POLICIES: Final = {
    "plan": planned,
    "cut known": cut_known,
    "best start": best_start,
    "RecallTest, then checks of fixed size": fixed_size,
}


def geometric(values: Sequence[float]) -> float:
    return math.exp(float(np.mean(np.log(np.maximum(values, 1e-4)))))


def costs_report(runs: Sequence[dict[str, Any]]) -> str:
    """Tables of the items that people read."""
    found = {
        (run["set"], run["model"], run["seed"], goal, policy): measure(run, goal)
        for run, goal, (policy, measure) in product(runs, GOALS, POLICIES.items())
    }
    names = [name for name in SETS if any(run["set"] == name for run in runs)]

    def mean(policy: str, goal: float | None = None, model: str | None = None, name: str | None = None) -> float:
        return geometric(
            [
                value
                for (data, kind, _, each, used), value in found.items()
                if used == policy and goal in (None, each) and model in (None, kind) and name in (None, data)
            ]
        )

    rows = []
    for name in names:
        run = next(run for run in runs if run["set"] == name)
        share = run["relevance"].count("1") / run["rows"]
        rows.append([name, f"{run['rows']:,}", f"{100 * share:.0f} %"])
        for goal in GOALS:
            rows[-1] += [f"{mean('plan', goal, model, name):.2f}" for model in MODELS]
            rows[-1] += [f"{mean(policy, goal, None, name):.2f}" for policy in list(POLICIES)[1:]]
    columns = [*MODELS, "cut known", "best start", "fixed size"]
    header = [
        "data set",
        "items",
        "of the class",
        *[f"{100 * goal:.0f} %: {each}" for goal in GOALS for each in columns],
    ]
    others = []
    for wanted in (*GOALS, None):
        values = [mean(policy, wanted) for policy in POLICIES]
        others.append(["all" if wanted is None else f"{100 * wanted:.0f} %", *[f"{value:.3f}" for value in values]])
        others[-1] += [f"{values[0] / other:.2f}" for other in values[1:]]
    seeds = len({run["seed"] for run in runs})
    return "\n\n".join(
        [
            "Items that people read until at most 5 or 10 % of the class is missed, as a share of all items (number of "
            f"seeds: {seeds}). Reading all items is 1. The columns of the models are those of the plan; the others are "
            "means over both models.",
            table(header, rows),
            "Geometric means over the data sets and models:",
            table(["missed at most", *POLICIES, *[f"plan / {each}" for each in columns[2:]]], others),
        ]
    )


# False guarantees.


def small_run(number: int) -> tuple[bool, float, bool]:
    """A complete screening of a small sample.

    Every second one has a quarter of the items of the class ranked last: their features are those of the items that are
    least like the class.

    Returns:
        Whether its guarantee is false, the share of items that people read, and whether a quarter is ranked last.
    """
    warnings.simplefilter("ignore")
    rng = np.random.default_rng([number, 6])
    X, y = data_of(
        ("letters: H", "digits (images): 5", "gas turbine: high CO", "skin (colours): skin")[number // 2 % 4]
    )
    rows, share = int(rng.integers(200, 601)), float(rng.uniform(0.1, 0.4))
    wanted = max(2, round(share * rows))
    of_class, others = rng.permutation(np.flatnonzero(y))[:wanted], rng.permutation(np.flatnonzero(~y))[: rows - wanted]
    kept = rng.permutation(np.concatenate([of_class, others]))
    X, y, hidden = X[kept].copy(), y[kept], bool(number % 2)
    if hidden:
        towards = X[y].mean(axis=0) - X[~y].mean(axis=0)
        last = rng.permutation(np.flatnonzero(y))[: max(1, wanted // 4)]
        X[last] = X[rng.choice(np.flatnonzero(~y), len(last))] - 2.0 * towards
    model = make_model("logistic", classes=[False, True])
    goal = GOALS[number // 8 % 2]
    run = finished_run(model, X, y, goal, positive=True, seed=None)
    return run.true_share > goal, run.final.guarantee.by_people / rows, hidden


def false_report(found: Sequence[tuple[bool, float, bool]]) -> str:
    parts = []
    for hidden in (False, True):
        wrong = [each for each, _, last in found if last is hidden]
        shares = [share for _, share, last in found if last is hidden]
        ranked = "with a quarter of the class ranked last" if hidden else "with the ranking of the model"
        parts.append(
            f"{len(wrong):,} {ranked}, {sum(wrong):,} {'is' if sum(wrong) == 1 else 'are'} false, "
            f"{100 * np.mean(wrong):.1f} % (people read "
            f"{100 * np.mean(shares):.0f} % of the items on average)"
        )
    return (
        f"{len(found):,} complete screenings of 200 to 600 items, 10 to 40 % of the class, goals 5 and 10 %. A "
        f"guarantee is false if more is missed than the goal says; 5 % may be. Of {'; of '.join(parts)}."
    )
