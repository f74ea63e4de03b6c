"""Checks of predictions that were made elsewhere: false guarantees, their cost in answers, and time and memory.

``false`` simulates small files of predictions whose errors are at or just above what is allowed, where guarantees are
false most often, and counts false guarantees of each kind. ``costs`` computes the mean number of answers until a target
is proven; these means are exact. ``speed`` measures the start of a check of a large file, and the time until the page
answers, each in a process of its own. ``example`` checks predictions for the text messages of the data set sms_spam,
which needs ``SUFFICE_DATA``.

    python benchmarks/prediction_checks.py false [--number 2000] [--workers 2] [--write]
    python benchmarks/prediction_checks.py costs [--write]
    python benchmarks/prediction_checks.py speed [--rows 1000000] [--page-rows 20000] [--write]
    python benchmarks/prediction_checks.py example [--write]
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from suffice.checks import SequentialTerms, allowed_wrong, of_predictions, spent_alpha
from suffice.checks.prediction_check import PredictionCheck, PredictionResult
from suffice.checks.sequential_terms import LONGEST, proof_probabilities
from tables import publish, table

# Simulated files.

CLASSES: Final = ("a", "b", "c")
GROUPS: Final = ("x", "y", "z")
#: Targets of the simulated checks.
TARGETS: Final = (0.02, 0.05, 0.1, 0.2)
#: Attempts of a user who checks the same rows until a check proves the target.
ATTEMPTS: Final = 5


class File(NamedTuple):
    """A simulated file of predictions.

    Attributes:
        truth: The true class of each row.
        predicted: The predictions.
        confidence: Confidence in each prediction; it orders the errors well or badly.
        target: The share of wrong predictions to prove.
    """

    truth: NDArray[Any]
    predicted: NDArray[Any]
    confidence: NDArray[np.float64]
    target: float

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """Whether each prediction is wrong."""
        found: NDArray[np.bool_] = self.predicted != self.truth
        return found

    @property
    def allowed(self) -> int:
        """Number of wrong predictions that the target allows."""
        return allowed_wrong(self.target, len(self.truth))


def other_class(truth: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    """A wrong class for each row."""
    places = np.searchsorted(CLASSES, truth)
    found: NDArray[Any] = np.array(CLASSES)[(places + rng.integers(1, len(CLASSES), len(truth))) % len(CLASSES)]
    return found


def simulated_file(rng: np.random.Generator) -> File:
    """A file of 60 to 400 rows, with as many wrong predictions as are allowed and 0 to 3 more."""
    rows, target = int(rng.integers(60, 401)), float(rng.choice(TARGETS))
    truth = rng.choice(CLASSES, rows, p=rng.dirichlet(np.ones(len(CLASSES))))
    number = min(rows, allowed_wrong(target, rows) + int(rng.integers(0, 4)))
    wrong = np.zeros(rows, dtype=bool)
    wrong[rng.choice(rows, number, replace=False)] = True
    # From confidences that say nothing about the errors, or the reverse, to nearly perfect ones.
    score = rng.normal(size=rows) - rng.choice([-1.0, 0.0, 1.0, 3.0]) * wrong
    predicted = np.where(wrong, other_class(truth, rng), truth)
    return File(truth, predicted, np.round(1.0 / (1.0 + np.exp(-score)), int(rng.integers(1, 4))), target)


def with_errors(file: File, rng: np.random.Generator) -> NDArray[Any]:
    """Another column of predictions with as many errors, in other rows."""
    return np.where(rng.permutation(file.wrong), other_class(file.truth, rng), file.truth)


def answered(check: PredictionCheck, truth: NDArray[Any]) -> PredictionResult:
    """The result with right answers, those that are certainly needed at a time."""
    while check.open:
        check.tell(truth[check.next(len(truth))])
    return check.result


def size_of(file: File, rng: np.random.Generator) -> int:
    return int(rng.integers(20, len(file.truth) // 2 + 1))


# One function for each kind: whether a guarantee is false.


def false_total(file: File, _: np.random.Generator, seed: int) -> bool:
    result = answered(of_predictions(file.predicted).check(at_most=file.target, seed=seed), file.truth)
    return result.guaranteed and int(file.wrong.sum()) > file.allowed


def false_in_attempts(file: File, _: np.random.Generator, seed: int) -> bool:
    given = of_predictions(file.predicted)
    for attempt in range(ATTEMPTS):
        check = given.check(at_most=file.target, earlier_checks=attempt, seed=seed)
        # This user gives up when the check has taken half of the rows.
        while check.open and check.result.checked < len(file.truth) // 2:
            check.tell(file.truth[check.next(10)])
        if check.result.guaranteed:
            return int(file.wrong.sum()) > file.allowed
    return False


def false_fixed(file: File, rng: np.random.Generator, seed: int) -> bool:
    result = answered(of_predictions(file.predicted).check(size=size_of(file, rng), seed=seed), file.truth)
    return next(iter(result.guarantees.values())).wrong_at_most < int(file.wrong.sum())


def false_groups(file: File, rng: np.random.Generator, seed: int) -> bool:
    # The errors are more frequent in some groups, or groups are the predicted classes.
    groups = rng.choice(GROUPS, len(file.truth), p=rng.dirichlet(np.ones(len(GROUPS))))
    if rng.random() < 0.5:
        groups = np.where(file.wrong & (rng.random(len(groups)) < 0.5), GROUPS[0], groups)
    elif rng.random() < 0.5:
        groups = file.predicted
    given = of_predictions(file.predicted, groups=groups)
    result = answered(given.check(size=size_of(file, rng), seed=seed), file.truth)
    (total,), (each,) = result.guarantees.values(), result.groups.values()
    within = any(bound.wrong_at_most < int(file.wrong[groups == name].sum()) for name, bound in each.items())
    return within or total.wrong_at_most < int(file.wrong.sum())


def false_columns(file: File, rng: np.random.Generator, seed: int) -> bool:
    columns = {"first": file.predicted, "second": with_errors(file, rng), "third": with_errors(file, rng)}
    result = answered(of_predictions(columns).check(size=size_of(file, rng), seed=seed), file.truth)
    wrong = {name: int((values != file.truth).sum()) for name, values in columns.items()}
    return any(bound.wrong_at_most < wrong[name] for name, bound in result.guarantees.items())


def _accepted(file: File, rng: np.random.Generator, seed: int, goal: str) -> bool:
    given = of_predictions(file.predicted, file.confidence)
    check = given.check(at_most=file.target, accept=goal, size=size_of(file, rng), seed=seed)
    part = answered(check, file.truth).accepted
    if part is None or part.threshold is None:
        return False
    kept = file.confidence >= part.threshold
    if goal == "all":
        kept[list(check.record.items)] = False
    return int(file.wrong[kept].sum()) > part.allowed


def false_accepted_all(file: File, rng: np.random.Generator, seed: int) -> bool:
    return _accepted(file, rng, seed, "all")


def false_accepted_share(file: File, rng: np.random.Generator, seed: int) -> bool:
    return _accepted(file, rng, seed, "accepted")


def false_share(file: File, rng: np.random.Generator, seed: int) -> bool:
    name = str(rng.choice(CLASSES))
    check = of_predictions(file.predicted).check(share_of=name, size=size_of(file, rng), seed=seed)
    share = answered(check, file.truth).share
    assert share is not None
    return not share.least <= int((file.truth == name).sum()) <= share.most


def false_recall(file: File, rng: np.random.Generator, seed: int) -> bool:
    name = str(rng.choice(file.predicted))
    check = of_predictions(file.predicted).check(recall_of=name, size=size_of(file, rng), seed=seed)
    (bound,) = answered(check, file.truth).guarantees.values()
    of_class = file.truth == name
    return bool(of_class.any()) and bound.predicted_recall > float((file.predicted[of_class] == name).mean()) + 1e-12


def false_precision(file: File, rng: np.random.Generator, seed: int) -> bool:
    name = str(rng.choice(file.predicted))
    rows = file.predicted == name
    check = of_predictions(file.predicted).check(precision_of=name, size=1 + int(rows.sum()) // 3, seed=seed)
    (bound,) = answered(check, file.truth).guarantees.values()
    return bound.wrong_at_most < int((file.truth[rows] != name).sum())


def false_of_all(file: File, rng: np.random.Generator, seed: int) -> bool:
    given = of_predictions(file.predicted, file.confidence if rng.random() < 0.7 else None)
    work = given.finish(at_most=float(rng.choice([0.5, 0.75])) * file.target, seed=seed)
    while work.open:
        rows = work.next(4)
        work.tell({int(row): file.truth[row] for row in rows})
    guarantee = work.guarantee
    assert guarantee is not None
    return int((np.array(work.final_labels()) != file.truth).sum()) > guarantee.wrong_at_most


KINDS: Final[dict[str, Callable[[File, np.random.Generator, int], bool]]] = {
    "at most a share is wrong, sequential check": false_total,
    f"the same, up to {ATTEMPTS} checks until one proves it": false_in_attempts,
    "check of fixed size": false_fixed,
    "all groups and the total together": false_groups,
    "three columns together": false_columns,
    "accepted part, at most a share of all rows": false_accepted_all,
    "accepted part, at most a share of it": false_accepted_share,
    "share of a class": false_share,
    "recall of a class": false_recall,
    "precision of a class": false_precision,
    "final labels of all rows (`--of all`)": false_of_all,
}


def false_count(kind: str, start: int, number: int) -> int:
    """False guarantees among simulated files of a kind."""
    found = 0
    for seed in range(start, start + number):
        rng = np.random.default_rng([seed, list(KINDS).index(kind)])
        found += KINDS[kind](simulated_file(rng), rng, seed)
    return found


def false_report(number: int, workers: int) -> str:
    part = max(1, number // 10)
    with ProcessPoolExecutor(workers) as pool:
        jobs = {
            kind: [pool.submit(false_count, kind, start, min(part, number - start)) for start in range(0, number, part)]
            for kind in KINDS
        }
        rows = []
        for kind, parts in jobs.items():
            false = sum(job.result() for job in parts)
            rows.append([kind, f"{false:,}", f"{100 * false / number:.1f} %"])
            print(*rows[-1], file=sys.stderr, flush=True)
    return "\n\n".join(
        [
            f"False guarantees among {number:,} simulated files of each kind. A file has 60 to 400 rows, and 0 to 3 "
            "more wrong predictions than are allowed. Confidences order the errors well, not at all, or in reverse. "
            "At most 5 % may be false; a first check spends half of that.",
            table(["what is guaranteed", "false", "share"], rows),
        ]
    )


# Answers until a target is proven.

COST_TARGETS: Final = (0.01, 0.02, 0.05, 0.1)
POOLS: Final = (1_000, 10_000, 1_000_000)
#: True errors as shares of the target, and their names.
ERRORS: Final = {
    0.0: "none is wrong",
    0.25: "a quarter of the target",
    0.5: "half of the target",
    0.75: "three quarters of the target",
}


def mean_answers(target: float, pool: int, wrong: int) -> float:
    """The mean number of answers of a first check, exactly."""
    terms = SequentialTerms.of_share(target, pool=pool, alpha=spent_alpha(1))
    last = min(pool, 2048)
    while True:
        proven = proof_probabilities(terms, [wrong], last)[0]
        # What is left out is at most a hundredth of an answer.
        if last == min(pool, LONGEST) or (1.0 - proven[-1]) * LONGEST < 0.01:
            return 1.0 + float(np.sum(1.0 - proven[:-1]))
        last = min(pool, LONGEST, 4 * last)


def costs_report() -> str:
    rows = []
    for target in COST_TARGETS:
        for pool in POOLS:
            answers = [mean_answers(target, pool, math.floor(share * target * pool)) for share in ERRORS]
            rows.append([f"{100 * target:g} %", f"{pool:,}", *(f"{number:,.0f}" for number in answers)])
    return table(["target", "rows", *ERRORS.values()], rows)


# Predictions for text messages.

#: Messages that the two models learned; the messages that they predict are others.
LEARNED: Final = {"large": 1500, "small": 150}


def predicted_messages() -> tuple[NDArray[Any], dict[str, NDArray[Any]], NDArray[np.float64]]:
    """The truth for messages, the predictions of models that learned other messages, and the first's confidence."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    from suffice_research.data.set_readers import read_texts

    found = read_texts("sms_spam")
    texts, labels = np.array(found[0], dtype=object), np.array(found[1], dtype=object)
    order = np.random.default_rng(0).permutation(len(texts))
    first = max(LEARNED.values())
    rest, columns, confidence = order[first:], {}, np.zeros(0)
    for name, number in LEARNED.items():
        model = make_pipeline(TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2)), LogisticRegression(C=30.0))
        model.fit(texts[order[:number]], labels[order[:number]])
        columns[name] = model.predict(texts[rest])
        if name == next(iter(LEARNED)):
            confidence = model.predict_proba(texts[rest]).max(axis=1)
    return labels[rest], columns, confidence


def example_report() -> str:
    truth, columns, confidence = predicted_messages()
    large, rows = columns["large"], len(truth)
    wrong = {name: int((values != truth).sum()) for name, values in columns.items()}
    spam = int((truth == "spam").sum())
    groups = np.where(large == "spam", "predicted spam", "predicted ham")
    one, sure = of_predictions(large), of_predictions(large, confidence)
    truly = f"{wrong['large']:,} of {rows:,}, {100 * wrong['large'] / rows:.1f} %"
    options = "--prediction llm"
    checks: list[tuple[str, PredictionCheck, str]] = [
        (f"`{options} --at-most 5%`", one.check(at_most=0.05, seed=0), truly),
        (f"`{options} --at-most 3%`", one.check(at_most=0.03, seed=0), truly),
        (f"`{options} --at-most 1%`", one.check(at_most=0.01, seed=0), truly),
        (
            f"`{options} --group kind --size 400`",
            of_predictions(large, groups=groups).check(size=400, seed=0),
            "; ".join(f"{name}: {int((large != truth)[groups == name].sum()):,}" for name in sorted(set(groups))),
        ),
        (
            f"`{options} --prediction small --size 400`",
            of_predictions({"llm": large, "small": columns["small"]}).check(size=400, seed=0),
            f"llm: {wrong['large']:,}; small: {wrong['small']:,}",
        ),
        (
            f"`{options} --share-of spam --size 400`",
            one.check(share_of="spam", size=400, seed=0),
            f"{spam:,}, {100 * spam / rows:.1f} %",
        ),
        (
            f"`{options} --probability p --accept accepted --at-most 3% --size 400`",
            sure.check(at_most=0.03, accept="accepted", size=400, seed=0),
            "",
        ),
    ]
    lines = []
    for name, check, known in checks:
        result = answered(check, truth)
        said = known
        if result.accepted is not None and result.accepted.threshold is not None:
            kept = confidence >= result.accepted.threshold
            said = f"{int((large != truth)[kept].sum()):,} of {int(kept.sum()):,} accepted"
        lines.append([name, f"{result.checked:,}", " ".join(result.sentences()), said])
    work = sure.finish(at_most=0.01, seed=0)
    while work.open:
        row = int(work.next()[0])
        work.tell({row: truth[row]})
    final = int((np.array(work.final_labels()) != truth).sum())
    guarantee = work.guarantee
    assert guarantee is not None
    name = f"`{options} --probability p --at-most 1% --of all`"
    lines.append([name, f"{guarantee.by_people:,}", str(guarantee).replace("\u00a0", " "), f"{final:,} of {rows:,}"])
    return "\n\n".join(
        [
            f"{rows:,} messages of the data set sms_spam. The predictions are those of logistic regressions on "
            f"weighted words that learned {LEARNED['large']:,} (`llm`) and {LEARNED['small']:,} (`small`) other "
            "messages; they stand in for a language model. People who always answer right are simulated.",
            table(
                ["options of `suffice check`", "answers", "what it states", "truly wrong, or truly of the class"], lines
            ),
        ]
    )


# Time and memory.

_WORDS: Final = (
    "the",
    "order",
    "refund",
    "late",
    "broken",
    "thanks",
    "please",
    "money",
    "account",
    "never",
    "arrived",
    "bill",
)
_START: Final = """
import json, resource, sys, time
start = time.perf_counter()
from suffice.cli import main
sys.argv = ["suffice", "check", sys.argv[1], "--prediction", "llm", "--text", "body", "--at-most", "5%", "--json"]
sys.stdin = open("/dev/null")
try:
    main()
except SystemExit:
    pass
used = resource.getrusage(resource.RUSAGE_SELF)
told = {"wall": time.perf_counter() - start, "cpu": used.ru_utime + used.ru_stime, "memory": used.ru_maxrss / 2**20}
print(json.dumps(told))
"""


def write_csv(path: Path, rows: int) -> None:
    """A file with a text, a prediction and other columns."""
    rng = np.random.default_rng(0)
    # The texts are different because of the number at their end.
    texts = [" ".join(_WORDS[k] for k in rng.integers(0, len(_WORDS), 20)) for _ in range(1000)]
    kinds = rng.choice(["complaint", "question", "praise"], rows).tolist()
    countries, shares = rng.choice(["de", "fr", "us"], rows).tolist(), (0.5 + rng.random(rows) / 2.0).tolist()
    with path.open("w") as file:
        file.write("id,body,llm,p,country\n")
        for row, (kind, country, share) in enumerate(zip(kinds, countries, shares, strict=True)):
            file.write(f"{row},{texts[row % len(texts)]} {row},{kind},{share:.3f},{country}\n")


def started(path: Path) -> dict[str, float]:
    """Time and memory of a process that starts a check and asks the first question."""
    done = subprocess.run([sys.executable, "-c", _START, str(path)], capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def page_answers(path: Path) -> float:
    """Seconds from the command until the page answers."""
    from urllib.error import URLError
    from urllib.request import urlopen

    port, start = 18765, time.perf_counter()
    options = [
        "--prediction",
        "llm",
        "--text",
        "body",
        "--at-most",
        "5%",
        "--no-open",
        "--no-token",
        "--port",
        str(port),
    ]
    command = [sys.executable, "-m", "suffice", "serve", str(path), *options]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while time.perf_counter() - start < 120.0:
            try:
                with urlopen(f"http://127.0.0.1:{port}/", timeout=30) as answer:
                    answer.read()
                return time.perf_counter() - start
            except (URLError, ConnectionError):
                time.sleep(0.02)
        raise RuntimeError("the page did not answer")
    finally:
        server.terminate()
        server.wait()


def speed_report(rows: int, page_rows: int) -> str:
    with TemporaryDirectory() as folder:
        large, small = Path(folder) / "large.csv", Path(folder) / "small.csv"
        write_csv(large, rows)
        write_csv(small, page_rows)
        load = os.getloadavg()[0]
        found, page = started(large), page_answers(small)
    lines = [
        ["start of a check, wall time", f"{rows:,}", f"{found['wall']:.1f} s"],
        ["start of a check, processor time", f"{rows:,}", f"{found['cpu']:.1f} s"],
        ["start of a check, peak memory", f"{rows:,}", f"{found['memory']:.2f} GiB"],
        ["`suffice serve` until the page answers, wall time", f"{page_rows:,}", f"{page:.1f} s"],
    ]
    return "\n\n".join(
        [
            f"One process each, with {os.cpu_count()} cores and a load of {load:.1f} by other work; with a load above "
            "the number of cores, wall times are too long.",
            table(["what", "rows of the CSV file", "result"], lines),
        ]
    )


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("kind", choices=("false", "costs", "speed", "example"))
    reader.add_argument("--number", type=int, default=2000)
    reader.add_argument("--workers", type=int, default=2)
    reader.add_argument("--rows", type=int, default=1_000_000)
    reader.add_argument("--page-rows", type=int, default=20_000)
    reader.add_argument("--write", action="store_true")
    given = reader.parse_args()
    if given.kind == "false":
        publish("prediction-false", false_report(given.number, given.workers), sys.argv[1:])
    elif given.kind == "costs":
        publish("prediction-costs", costs_report(), sys.argv[1:])
    elif given.kind == "example":
        publish("prediction-example", example_report(), sys.argv[1:])
    else:
        publish("prediction-speed", speed_report(given.rows, given.page_rows), sys.argv[1:])


if __name__ == "__main__":
    main()
