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
from suffice.cli.compare_judging import Judged, judged
from suffice.experiments.compare.board import Row, curves, leaderboard, rows
from suffice.experiments.compare.costs import RATIOS
from suffice.experiments.compare.evidence import evidence
from suffice.experiments.compare.guarantees import summary
from suffice.experiments.compare.recording import MODELS, Recording, Setting, recordings
from suffice.experiments.compare.rules import catalogue
from suffice.experiments.compare.writing import write_csv, write_json
from suffice.experiments.runner import Skipped, Watcher, carry_out_all
from suffice.report.compare.boards import Board, boards
from suffice.report.compare.figures import draw_comparison
from suffice.report.compare.tables import by_data_table, guarantees_table, leaderboard_table, runs_table, settings_table
from tables import MEASURED, table

ROOT = Path(__file__).parent.parent
SHOWN, TRACES = MEASURED / "compare", ROOT / "build" / "compare" / "traces"
EVIDENCE = ROOT / "src" / "suffice" / "experiments" / "compare" / "evidence.json"
#: What LabelWorth was made on, or on something like it; and what it was judged on.
MADE_ON = ("diabetes", "friedman", "wine", "breast_cancer", "sms_spam", "digits")
JUDGED_ON = (
    *("power_plant", "protein", "gas_emission", "grid_stability"),
    *("grid_stable", "htru2", "skin", "adult", "newsgroups"),
)
#: Where more labels make the model worse: the error at the end of the run is far above its best.
HURT = (("protein", "gp"), ("skin", "logistic"))
COMMAND = f"suffice compare --data {','.join((*JUDGED_ON, *MADE_ON))} --seeds 10 --batch 1,10 --out build/compare"
#: Rules that do without anything but costs, and the best of the others.
VARIED = ("LabelWorth", "ExpectedCost", "MaxVariance", "ErrorStability", "StabilizingPredictions", "Budget", "Never")
VARIATIONS: tuple[tuple[str, Setting, int], ...] = (
    ("as it is", Setting(), 1),
    ("10 % wrong labels, or noise of 0.3 deviations", Setting(noise=0.1), 1),
    ("rarest class 5 %", Setting(imbalance=0.05), 1),
    ("stop set of 200", Setting(stop_set=200), 1),
    ("50 labels at the start", Setting(initial=50), 1),
    ("50 labels at a time", Setting(), 50),
)


def carried_out(jobs: Sequence[Recording]) -> list[Judged]:
    """Record and judge runs, or say which could not be."""
    done = [0]

    def ended(number: int, result: object) -> None:
        done[0] += 1
        if isinstance(result, Skipped):
            sys.exit(f"{jobs[number].name}: {result.reason}")
        print(f"\r{done[0]} of {len(jobs)}: {jobs[number].name:60}", end="", file=sys.stderr, flush=True)

    TRACES.mkdir(parents=True, exist_ok=True)
    rules = tuple(entry.name for entry in catalogue())
    watcher = Watcher(lambda _number, _done: None, ended)
    found: list[Any] = carry_out_all(jobs, TRACES, 2, watcher, partial(judged, rules=rules))
    print(file=sys.stderr)
    return [each for each in found if not isinstance(each, Skipped)]


def held_out_table(made: Sequence[Row]) -> str:
    """The first rules on what no rule was made on; over all of it, and without the runs in which labels hurt."""
    lines = []
    for title, kept in (
        ("numbers", [row for row in made if MODELS[row["model"]] == "regression"]),
        ("classes", [row for row in made if MODELS[row["model"]] == "classification"]),
    ):
        judged_on = [row for row in kept if row["data"] in JUDGED_ON]
        unhurt = [row for row in judged_on if (row["data"], row["model"]) not in HURT]
        ranked, without = (Board("all", part, leaderboard(part, resamples=1000)) for part in (judged_on, unhurt))
        apart = {row["rule"]: row for row in without.best}
        shown = [row for row in ranked.best if row["setting"] != "reference"][:6]
        names = {row["rule"] for row in shown}
        shown += [row for row in ranked.best if row["rule"] == "ErrorStability" and row["rule"] not in names]
        for row in shown:
            other = apart[row["rule"]]
            low, high = row["interval"]
            lines.append(
                [
                    title,
                    f"`{row['rule']}`",
                    row["setting"],
                    f"{row['median']:.3f}",
                    f"{row['mean']:.2f} ({low:.2f} to {high:.2f})",
                    f"{row['p90']:.2f}",
                    f"{other['median']:.3f}",
                    f"{other['mean']:.2f}",
                ]
            )
    head = ["predicting", "rule", "set by", "median", "mean (90 % interval)", "90 % point"]
    return table([*head, "median without the two", "mean without the two"], lines)


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
    """The mean and median regret of some rules when one thing is changed."""
    lines = []
    for title, setting, batch in VARIATIONS:
        classes = recordings(
            ["grid_stable", "htru2"], ["logistic"], seeds=3, batches=(batch,), setting=setting, target=None
        )
        numbers: list[Recording] = []
        if setting.imbalance is None:
            noisy = replace(setting, noise=0.3) if setting.noise else setting
            data = ["power_plant", "gas_emission"]
            numbers = recordings(data, ["gp"], seeds=3, batches=(batch,), setting=noisy, target=None)
        found = carried_out([*classes, *numbers])
        made = rows([score for each in found for score in each.scores])
        cells = [_regret(made, rule) for rule in VARIED]
        lines.append([title, *cells])
    text = (
        "Median / mean regret on grid_stable and htru2 (logistic) and power_plant and gas_emission (gp), three seeds "
    )
    text += "each; thresholds for each cost chosen on the other set of the same model.\n\n"
    return text + table(["what is changed", *VARIED], lines)


def _regret(made: Sequence[Row], rule: str) -> str:
    ways: dict[str, list[Row]] = {}
    for row in made:
        if row["rule"] == rule and row["setting"] not in ("default", "one threshold"):
            ways.setdefault(row["setting"], []).append(row)
    values = [value for several in ways.values() for row in several for value in row["regret"].values()]
    return f"{np.median(values):.2f} / {np.mean(values):.2f}" if values else ""


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
    settings = Setting()
    jobs = recordings([*JUDGED_ON, *MADE_ON], list(MODELS), seeds=10, batches=(1, 10), setting=settings, target=None)
    found = carried_out(jobs)
    scores = [score for each in found for score in each.scores]
    made = rows(scores)
    ranked = boards(made)
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
    write_csv(SHOWN / "by-data.csv", small_rows(made))
    (SHOWN / "runs.md").write_text(runs_table(made).markdown())
    (SHOWN / "held_out.md").write_text(held_out_table(made) + "\n")
    (SHOWN / "label_worth.md").write_text(label_worth_table(made) + "\n")
    guaranteed = guarantees_table(summary([(each.case, each.guarantees) for each in found if each.guarantees]))
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
