"""Everything that the page "Does the paper hold up?" shows: runs the commands, and puts their results where it does.

``python benchmarks/reproduction.py`` takes about half an hour on two processors; runs are kept in ``build/``, and those
that are there are not run again. The network's runs need a GPU: without one they are those under
``docs/measured/paper/traces``.
"""

import argparse
import json
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from math import inf, isinf
from pathlib import Path

from suffice_research.data.protocols import CORRECTED, MODELS, RUN_NAMES
from suffice_research.paper.claims import is_one_place
from suffice_research.paper.experiments import choose, measured_run, plan, run_experiment
from suffice_research.paper.outcome import RunGroup, correlation, grouped, measure, middle, spread
from suffice_research.runner import kept
from tables import MEASURED, table

ROOT = Path(__file__).parent.parent
SHOWN = MEASURED / "paper"
RUNS, SLIPS = Path("build/paper"), Path("build/slips")
#: The last one with a folder leaves its tables and figures there.
COMMANDS = (
    f"reproduce --only gpr,brr,blr --out {RUNS} --json docs/measured/paper/published.json",
    f"reproduce --protocol corrected --out {RUNS} --json docs/measured/paper/corrected.json",
    f"reproduce --protocol both --out {RUNS}",
    f"reproduce --seeds 5 --slips --out {SLIPS}",
)


def network_runs() -> None:
    """Take the runs of the network that are there already."""
    for folder in (RUNS, SLIPS):
        traces = ROOT / folder / "traces"
        traces.mkdir(parents=True, exist_ok=True)
        for path in sorted((SHOWN / "traces").glob("*.npz")):
            shutil.copy(path, traces)


def show() -> None:
    """Copy what the page shows."""
    for path in SHOWN.glob("*"):
        if path.suffix in (".md", ".png") and path.name != "start.md":
            path.unlink()
    for path in [*(ROOT / RUNS / "tables").glob("*.md"), *(ROOT / RUNS / "figures").glob("*.png")]:
        shutil.copy(path, SHOWN)
    shutil.copy(ROOT / RUNS / "findings.md", SHOWN)
    for name in ("published-slips", "published-slip-effects"):
        shutil.copy(ROOT / SLIPS / "tables" / f"{name}.md", SHOWN)
    shutil.copy(ROOT / SLIPS / "tables" / "published-correlations.md", SHOWN / "published-five-seeds.md")
    (SHOWN / "rules.md").write_text(rules_table() + "\n")
    commands = "\n".join(f"suffice {command}" for command in COMMANDS)
    (SHOWN / "commands.md").write_text(f"```bash\n{commands}\n```\n\n{times()}\n")


def rules_table() -> str:
    """How the verdicts on the corrected runs depend on the rules that they are decided by."""
    jobs = plan(choose("corrected", None))
    traces = ROOT / RUNS / "traces"
    outcomes = [measured_run(job, traces) for job in jobs if kept(job, traces) is not None]
    groups = grouped(outcomes, "corrected")
    # As it was at first: from the first step after calibration, whatever its ratio.
    late = [replace(each, correlation=correlation(each.ratio, each.error, each.counted_from + 1)) for each in outcomes]
    rows = [
        ["correlation above 0.9", above(groups, 0.9)],
        ["correlation above 0.85", above(groups, 0.85)],
        ["correlation above 0.95", above(groups, 0.95)],
        ["above 0.9, a first ratio above 1 counted too", above(grouped(late, "corrected"), 0.9)],
    ]
    for within, never in ((0.1, False), (0.05, False), (0.2, False), (0.1, True)):
        against = ", a set that never stops counts against it" if never else ""
        told_of = "; ".join(
            f"{MODELS[model]} {places(groups, model, within, never)}" for model in ("gpr", "brr", "blr")
        )
        rows.append([f"one place within {within:g}{against}", told_of])
    return table(["rule", "cases that agree"], rows)


def above(groups: list[RunGroup], bar: float) -> str:
    found = [middle(each.correlation or 0.0 for each in runs.outcomes) for runs in groups if runs.name != "blr/htru2"]
    return f"{sum(value > bar for value in found)} of {len(found)}"


def places(groups: list[RunGroup], model: str, within: float, never: bool) -> str:
    found = []
    for arm in ("bought", "outside"):
        own = [runs for runs in groups if runs.model == model and runs.arm == arm]
        for threshold in own[0].thresholds:
            excess = {runs: middle(runs.excesses(threshold)) for runs in own}
            found.append(is_one_place(excess, within=within, never_counts=never))
    return f"{found.count(True)} of {len(found) - found.count(None)}"


def start_table() -> str:
    """What more labels at random before the first step do, where ten are too few to learn hyper-parameters from."""
    rows = []
    for name in ("brr/protein", "gpr/protein", "brr/power_plant"):
        for initial in (10, 50, 100, 300):
            experiment = replace(CORRECTED[name], initial=initial)
            found = [
                measure(experiment, run_experiment(experiment, seed), seed=seed, arm="bought", seconds=0.0)
                for seed in range(5)
            ]
            threshold = f"{experiment.thresholds[0]:g}"
            labels = [inf if (at := each.stops[threshold]) is None else initial + 1 + at for each in found]
            errors = [inf if (error := each.error_at_stop[threshold]) is None else error for each in found]
            best = f"{middle(each.error_best for each in found):.3f}"
            rows.append([name, str(initial), best, threshold, told(labels, ".0f"), told(errors, ".3f")])
    head = ["run", "labels at random first", "least error", "threshold", "labels at the stop", "error there"]
    note = f"Median (lowest to highest) over five seeds; hyper-parameters from the labels bought. {RUN_NAMES}"
    return f"{table(head, rows)}\n\n{note}"


def told(values: list[float], form: str) -> str:
    """Median and range; what is infinite never came."""
    found = spread(values)
    if found is None:
        return "-"
    median, low, high = ("never" if isinf(each) else format(each, form) for each in found[:3])
    return median if low == high else f"{median} ({low} to {high})"


def times() -> str:
    """How long the runs took, from their own rows."""
    rows = {name: json.loads((SHOWN / f"{name}.json").read_text()) for name in ("published", "corrected")}
    seconds = {name: sum(row["seconds"] for row in found) for name, found in rows.items()}
    regressions = sum(row["seconds"] for row in rows["published"] if row["model"] in ("gpr", "brr"))
    picks = sum(row["steps"] for row in rows["published"] if row["model"] in ("gpr", "brr"))
    return (
        f"The runs' own seconds together: the eight published runs of Gaussian process regression and Bayesian "
        f"ridge regression, {picks:,} picks, "
        f"{regressions:.0f} s; all eleven {seconds['published']:.0f} s; the {len(rows['corrected'])} corrected ones "
        f"{seconds['corrected'] / 60:.0f} minutes, those of the network on a GPU."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show-only", action="store_true", help="run nothing; copy what the last runs left")
    if not parser.parse_args().show_only:
        network_runs()
        for command in COMMANDS:
            print(f"suffice {command}", flush=True)
            program = str(Path(sys.executable).with_name("suffice"))
            subprocess.run([program, *shlex.split(command)], cwd=ROOT, check=True)
        (SHOWN / "start.md").write_text(start_table() + "\n")
    show()


if __name__ == "__main__":
    main()
