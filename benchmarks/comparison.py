"""Everything that the page "Which rule should I use?" shows: every rule on every run.

No rule was developed on these data sets: see ``decision_names`` in ``evaluation_sets.py``; they need the packages
named there. ``python benchmarks/comparison.py`` takes about an hour on two processors; runs are kept in
``build/compare/traces``, and those that are there are not run again. It writes ``docs/measured/compare``, and the
evidence that :func:`suffice.recommend` uses.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import shutil
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from evaluation_sets import decision_names, evaluation_set
from suffice_research.compare.compare_command import write_csv, write_json
from suffice_research.compare.comparison_report import (
    boards,
    by_data_table,
    draw_comparison,
    guarantees_table,
    leaderboard_table,
    runs_table,
    settings_table,
)
from suffice_research.compare.judging import JudgedRun, coverage_summary, evidence, judged
from suffice_research.compare.recording import MODELS, RecordingJob, RecordingSettings, recordings
from suffice_research.compare.scoring import Row, curves, rows
from suffice_research.recommendation.compared_rules import catalogue
from suffice_research.recommendation.stopping_costs import RATIOS
from suffice_research.runner import RunWatcher, SkippedRun, carry_out_all
from tables import MEASURED, table

ROOT = Path(__file__).parent.parent
SHOWN, TRACES = MEASURED / "compare", ROOT / "build" / "compare" / "traces"
EVIDENCE = ROOT / "research" / "src" / "suffice_research" / "recommendation" / "evidence.json"
SETS = ROOT / "build" / "compare" / "sets"
SEEDS, BATCHES, ROWS = 2, (1, 10), 6000


def exported() -> list[str]:
    """Write the data sets as tables, and return the names of the files."""
    SETS.mkdir(parents=True, exist_ok=True)
    found = []
    for task in ("regression", "classification"):
        for name in decision_names(task):
            path = SETS / f"{name.replace(' ', '_')}.csv"
            found.append(path.name)
            if path.exists():
                continue
            data = evaluation_set(name)
            with path.open("w") as file:
                file.write(",".join([*(f"x{k}" for k in range(data.X.shape[1])), "target"]) + "\n")
                for row, label in zip(data.X[:ROWS], data.y[:ROWS], strict=True):
                    cell = f"{label:.8g}" if task == "regression" else f"class {str(label).strip()}"
                    file.write(",".join([*(f"{value:.6g}" for value in row), cell]) + "\n")
    return found


def carried_out(jobs: Sequence[RecordingJob]) -> list[JudgedRun]:
    """Record and judge runs, or say which could not be."""
    done = [0]

    def ended(number: int, result: object) -> None:
        done[0] += 1
        if isinstance(result, SkippedRun):
            sys.exit(f"{jobs[number].name}: {result.reason}")
        print(f"\r{done[0]} of {len(jobs)}: {jobs[number].name:60}", end="", file=sys.stderr, flush=True)

    TRACES.mkdir(parents=True, exist_ok=True)
    # Where a time limit stops depends on the machine.
    rules = tuple(entry.name for entry in catalogue() if entry.name != "TimeLimit")
    watcher = RunWatcher(lambda _number, _done: None, ended)
    found: list[Any] = carry_out_all(jobs, TRACES, 2, watcher, partial(judged, rules=rules))
    print(file=sys.stderr)
    return [each for each in found if not isinstance(each, SkippedRun)]


def label_worth_table(made: Sequence[Row]) -> str:
    """The rule on every data set and model, beside all labels and the best rule with a threshold."""
    lines = []
    cases = dict.fromkeys((row["data"], row["model"]) for row in made)
    for data, model in cases:
        own = [row for row in made if (row["data"], row["model"]) == (data, model)]
        best = {
            name: np.array(
                [list(row["regret"].values()) for row in own if row["rule"] == name and row["setting"] == how]
            )
            for name, how in (("LabelWorth", "costs"), ("ExpectedCost", "costs"), ("ErrorStability", "per cost"))
        }
        never = np.array([list(row["regret"].values()) for row in own if row["rule"] == "Never"])
        lines.append(
            [
                data.removesuffix(".csv").replace("_", " "),
                model,
                *(f"{np.median(values):.2f} / {values.mean():.2f}" for values in best.values()),
                f"{np.median(never):.2f} / {never.mean():.2f}",
            ]
        )
    head = [
        "data set",
        "model",
        "LabelWorth",
        "ExpectedCost",
        "ErrorStability, per cost",
        "all labels",
    ]
    return "Median / mean regret.\n\n" + table(head, lines)


def small_rows(made: Sequence[Row]) -> list[Row]:
    """One row for each rule, setting, data set, model and batch: means over the seeds, small enough to keep."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in made:
        groups.setdefault(tuple(str(row[n]) for n in ("rule", "setting", "data", "model", "batch")), []).append(row)
    mean: Callable[[Sequence[Row], str], float] = lambda several, name: round(  # noqa: E731
        float(np.mean([float(row[name]) for row in several])), 4
    )
    return [
        {
            **dict(zip(("rule", "setting", "data", "model", "batch"), key, strict=True)),
            "seeds": len(several),
            "wrong_share": None if several[0]["wrong_share"] is None else mean(several, "wrong_share"),
            **{name: mean(several, name) for name in ("labels", "error", "premature", "fired", "over")},
            "regret": {
                ratio: round(float(np.mean([row["regret"][ratio] for row in several])), 4)
                for ratio in several[0]["regret"]
            },
        }
        for key, several in groups.items()
    ]


def width_text(made: Sequence[Row]) -> str:
    """Where the best stop lies at the ends of the range of costs."""
    oracle = [row for row in made if row["rule"] == "Oracle"]
    return f"{len(oracle)} runs, {len(RATIOS)} prices of an error from {RATIOS[0]:g} to {RATIOS[-1]:g} labels."


def difference_table(made: Sequence[Row]) -> str:
    """Mean regret of a budget less that of each of some rules, with an interval by resampling the data sets."""
    lines = []
    for kind in ("regression", "classification"):
        own = [row for row in made if MODELS[row["model"]] == kind]
        sets = sorted({row["data"] for row in own})
        budget = _by_set(own, "Budget", "per cost", sets)
        for rule, how in COMPARED:
            if not any(row["rule"] == rule and row["setting"] == how for row in own):
                continue
            gap = budget - _by_set(own, rule, how, sets)
            drawn = gap[np.random.default_rng(0).integers(0, len(gap), (2000, len(gap)))].mean(axis=1)
            low, high = np.quantile(drawn, [0.025, 0.975])
            lines.append([kind, f"`{rule}`", how, f"{gap.mean():.3f} ({low:.3f} to {high:.3f})"])
    head = ["task", "rule", "set by", "mean regret of the budget less that of the rule (95 % interval)"]
    return table(head, lines)


COMPARED = (
    ("LabelWorth", "costs"),
    ("ExpectedCost", "costs"),
    *((f"ErrorStability{form}", "per cost") for form in ("", " mean of 10", " by labels", " median", " tight")),
    ("InformationGain", "per cost"),
    ("StabilizingPredictions", "per cost"),
)


def _by_set(made: Sequence[Row], rule: str, how: str, sets: Sequence[str]) -> Any:
    found: dict[str, list[float]] = {name: [] for name in sets}
    for row in made:
        if row["rule"] == rule and row["setting"] == how:
            found[row["data"]] += list(row["regret"].values())
    return np.array([np.mean(found[name]) for name in sets])


def main() -> None:
    names = exported()
    os.chdir(SETS)
    jobs = recordings(names, list(MODELS), seeds=SEEDS, batches=BATCHES, setting=RecordingSettings(), target="target")
    # A thousand basis functions, or a thousand weights of a classifier, would take hours.
    jobs = [job for job in jobs if (job.data, job.model) not in (("loans.csv", "ridge"), ("splice.csv", "logistic"))]
    found = carried_out(jobs)
    scores = [score for each in found for score in each.scores]
    made = rows(scores)
    ranked = boards(made)
    shutil.rmtree(SHOWN, ignore_errors=True)
    SHOWN.mkdir(parents=True)
    batches = ",".join(map(str, BATCHES))
    command = f"suffice compare {' '.join(names)} --target target --seeds {SEEDS} --batch {batches} --out results"
    write_json(EVIDENCE, evidence(scores, judged_on=names, command=command))
    for board in ranked:
        for name, made_table in (
            (board.key, leaderboard_table(board)),
            (f"settings-{board.key}", settings_table(board)),
            (f"by-data-{board.key}", by_data_table(board)),
        ):
            if made_table is not None:
                (SHOWN / f"{name}.md").write_text(made_table.markdown())
        write_csv(SHOWN / f"leaderboard-{board.key}.csv", board.ranked)
    write_csv(SHOWN / "by-data.csv", small_rows(made))
    (SHOWN / "runs.md").write_text(runs_table(made).markdown())
    (SHOWN / "differences.md").write_text(difference_table(made) + "\n")
    (SHOWN / "label_worth.md").write_text(label_worth_table(made) + "\n")
    guaranteed = guarantees_table(coverage_summary([(each.case, each.guarantees) for each in found if each.guarantees]))
    if guaranteed is not None:
        (SHOWN / "guarantees.md").write_text(guaranteed.markdown())
    figures = ROOT / "build" / "compare" / "figures"
    draw_comparison(ranked, curves(scores), figures)
    for path in sorted(figures.glob("*.png")):
        if path.name.startswith(("regret-", "labels-")):
            shutil.copy(path, SHOWN)
    (SHOWN / "command.md").write_text(f"```bash\n{command}\n```\n\n{width_text(made)}\n")


if __name__ == "__main__":
    main()
