"""Everything that the pages "Which rule should I use?" and "LabelWorth" show: every rule on every run.

``python benchmarks/comparison.py`` takes about half an hour on two processors; runs are kept in
``build/compare/traces``, and those that are there are not run again. It writes ``docs/measured/compare``, and the
evidence that :func:`suffice.recommend` speaks from.
"""

import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from stability_variants import variants_table
from suffice.recommendation.compared_rules import catalogue
from suffice.recommendation.stopping_costs import RATIOS
from suffice.research.compare.compare_command import write_csv, write_json
from suffice.research.compare.comparison_figures import draw_comparison
from suffice.research.compare.comparison_tables import (
    Leaderboard,
    boards,
    by_data_table,
    guarantees_table,
    leaderboard_table,
    runs_table,
    settings_table,
)
from suffice.research.compare.evidence import evidence
from suffice.research.compare.judging import JudgedRun, coverage_summary, judged
from suffice.research.compare.leaderboard import Row, curves, leaderboard, rows
from suffice.research.compare.recording import MODELS, RecordingJob, RecordingSettings, recordings
from suffice.research.compare.scoring import RuleScore
from suffice.research.runner import RunWatcher, SkippedRun, carry_out_all
from tables import MEASURED, table

ROOT = Path(__file__).parent.parent
SHOWN, TRACES = MEASURED / "compare", ROOT / "build" / "compare" / "traces"
EVIDENCE = ROOT / "src" / "suffice" / "experiments" / "compare" / "evidence.json"
#: What LabelWorth was made on, or on something like it; and what it was judged on.
DEVELOPED_ON = ("diabetes", "friedman", "wine", "breast_cancer", "sms_spam", "digits")
JUDGED_ON = (
    *("power_plant", "protein", "gas_emission", "grid_stability"),
    *("grid_stable", "htru2", "skin", "adult", "newsgroups"),
)
#: Where more labels make the model worse: the error at the end of the run is far above its best.
HURT = (("protein", "gp"), ("skin", "logistic"))
COMMAND = f"suffice compare --data {','.join((*JUDGED_ON, *DEVELOPED_ON))} --seeds 10 --batch 1,10 --out build/compare"
#: What is shown where something is varied.
VARIED_NUMBERS = ("LabelWorth", "ExpectedCost", "MaxVariance", "InformationGain", "ErrorStability", "Budget", "Never")
VARIED_CLASSES = (
    *("LabelWorth", "InformationGain", "OverallUncertainty", "StabilizingPredictions"),
    *("ErrorStability", "Budget", "Never"),
)
VARIATIONS: tuple[tuple[str, RecordingSettings, int], ...] = (
    ("as it is", RecordingSettings(), 1),
    ("labels noisy: 10 % wrong, or by 0.3 deviations", RecordingSettings(noise=0.1), 1),
    ("rarest class 5 %", RecordingSettings(imbalance=0.05), 1),
    ("stop set of 200", RecordingSettings(stop_set=200), 1),
    ("50 labels at the start", RecordingSettings(initial=50), 1),
    ("50 labels at a time", RecordingSettings(), 50),
)


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


def held_out_table(scores: Sequence[RuleScore]) -> str:
    """The first rules on what no rule was made on; and without the runs in which labels hurt, judged and choosing."""
    lines = []
    for title, kind in (("numbers", "regression"), ("classes", "classification")):
        own = [score for score in scores if MODELS[score.case.model] == kind]
        unhurt = [score for score in own if (score.case.data, score.case.model) not in HURT]
        ranked, without = (
            Leaderboard(
                "all",
                part := [row for row in rows(each) if row["data"] in JUDGED_ON],
                leaderboard(part, resamples=1000),
            )
            for each in (own, unhurt)
        )
        apart = {row["rule"]: row for row in without.best}
        left_out = ("CostLimit", "TimeLimit", "ErrorStability tight", "KappaCertificate")
        shown = [row for row in ranked.best if row["setting"] != "reference" and row["rule"] not in left_out]
        shown.sort(key=lambda row: float(row["typical"]))
        for place, row in enumerate(shown):
            if place < 8 or row["rule"] in ("ErrorStability", "Budget"):
                lines.append(_held_out_line(title, row, apart[row["rule"]]))
    head = ["predicting", "rule", "set by", "median", "90 % point", "typical", "mean (90 % interval)"]
    return table([*head, "without the two: median", "typical", "mean"], lines)


def _held_out_line(title: str, row: Row, other: Row) -> list[str]:
    low, high = row["interval"]
    return [
        title,
        f"`{row['rule']}`",
        row["setting"],
        f"{row['median']:.3f}",
        f"{row['p90']:.2f}",
        f"{row['typical']:.2f}",
        f"{row['mean']:.2f} ({low:.2f} to {high:.2f})",
        f"{other['median']:.3f}",
        f"{other['typical']:.2f}",
        f"{other['mean']:.2f}",
    ]


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
        name = f"**{data}**" if data in JUDGED_ON else data
        lines.append(
            [
                name,
                model,
                *(f"{np.median(values):.2f} / {values.mean():.2f}" for values in best.values()),
                f"{np.median(never):.2f} / {never.mean():.2f}",
            ]
        )
    head = [
        "data set (bold: judged on)",
        "model",
        "LabelWorth",
        "ExpectedCost",
        "ErrorStability, per cost",
        "all labels",
    ]
    return "Median / mean regret.\n\n" + table(head, lines)


def variations_table() -> str:
    """Regret of some rules when one thing is changed, for numbers and for classes."""
    parts = []
    for title, model, data, shown in (
        ("Numbers: power_plant and gas_emission (gp)", "gp", ["power_plant", "gas_emission"], VARIED_NUMBERS),
        ("Classes: grid_stable and htru2 (logistic)", "logistic", ["grid_stable", "htru2"], VARIED_CLASSES),
    ):
        lines = []
        for words, setting, batch in VARIATIONS:
            numbers = model == "gp"
            if numbers and setting.imbalance is not None:
                continue
            own = replace(setting, noise=0.3) if numbers and setting.noise else setting
            jobs = recordings(data, [model], seeds=3, batches=(batch,), setting=own, target=None)
            made = rows([score for each in carried_out(jobs) for score in each.scores])
            lines.append([words, *(_regret(made, rule) for rule in shown)])
        text = (
            f"{title}, three seeds each, thresholds for each cost chosen on the other of the two. Median / mean regret."
        )
        parts.append(f"{text}\n\n{table(['what is changed', *shown], lines)}")
    return "\n\n".join(parts)


def _regret(made: Sequence[Row], rule: str) -> str:
    own = [row for row in made if row["rule"] == rule and row["setting"] not in ("default", "one threshold")]
    values = [value for row in own for value in row["regret"].values()]
    return f"{np.median(values):.2f} / {np.mean(values):.2f}"


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


def main() -> None:
    settings = RecordingSettings()
    jobs = recordings(
        [*JUDGED_ON, *DEVELOPED_ON], list(MODELS), seeds=10, batches=(1, 10), setting=settings, target=None
    )
    found = carried_out(jobs)
    scores = [score for each in found for score in each.scores]
    made = rows(scores)
    everything = boards(made)
    ranked = boards([row for row in made if row["data"] in JUDGED_ON])
    shutil.rmtree(SHOWN, ignore_errors=True)
    SHOWN.mkdir(parents=True)
    write_json(EVIDENCE, evidence(scores, judged_on=JUDGED_ON, command=COMMAND))
    for board in ranked:
        for name, made_table in (
            (board.key, leaderboard_table(board)),
            (f"settings-{board.key}", settings_table(board)),
            (f"by-data-{board.key}", by_data_table(board)),
        ):
            if made_table is not None:
                (SHOWN / f"{name}.md").write_text(made_table.markdown())
        write_csv(SHOWN / f"leaderboard-{board.key}.csv", board.ranked)
    for board in everything:
        (SHOWN / f"all-sets-{board.key}.md").write_text(leaderboard_table(board).markdown())
        write_csv(SHOWN / f"all-sets-{board.key}.csv", board.ranked)
    write_csv(SHOWN / "by-data.csv", small_rows(made))
    (SHOWN / "runs.md").write_text(runs_table(made).markdown())
    (SHOWN / "held_out.md").write_text(held_out_table(scores) + "\n")
    (SHOWN / "label_worth.md").write_text(label_worth_table(made) + "\n")
    guaranteed = guarantees_table(coverage_summary([(each.case, each.guarantees) for each in found if each.guarantees]))
    if guaranteed is not None:
        (SHOWN / "guarantees.md").write_text(guaranteed.markdown())
    figures = ROOT / "build" / "compare" / "figures"
    draw_comparison(ranked, curves(scores), figures)
    for path in sorted(figures.glob("*.png")):
        if path.name.startswith(("regret-", "labels-")) or "htru2" in path.name or "power_plant" in path.name:
            shutil.copy(path, SHOWN)
    (SHOWN / "command.md").write_text(f"```bash\n{COMMAND}\n```\n\n{width_text(made)}\n")
    own = [job for job in jobs if job.data in JUDGED_ON]
    (SHOWN / "variants.md").write_text(variants_table(own, TRACES, HURT) + "\n")
    (SHOWN / "variations.md").write_text(variations_table() + "\n")


if __name__ == "__main__":
    main()
