"""``suffice reproduce``: every table and figure of the paper, from one command."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from suffice.cli.many_runs import completed_list, processors, require_folder, tell_skipped
from suffice.cli.progress import RunsView, interrupted
from suffice.cli.reproduce_progress import summary
from suffice.cli.reproduce_results import tell, write_results
from suffice.files import require_writable, write_bytes_whole

if TYPE_CHECKING:
    from suffice.experiments.paper.outcome import Outcome
    from suffice.experiments.paper.plan import Job
    from suffice.experiments.paper.runner import Skipped
    from suffice.report.paper.tables import Table


class Protocol(StrEnum):
    """Which experiments: those that were published, those that should have been, or both."""

    published = "published"
    corrected = "corrected"
    both = "both"


@dataclass(frozen=True)
class Order:
    """What is to be done: runs in the order of the report, and where everything goes."""

    jobs: "Sequence[Job]"
    left_out: str
    out: Path
    workers: int
    json_file: Path | None
    slips: bool


def _completed_experiments(incomplete: str) -> list[str]:
    from suffice.experiments.paper.plan import choose

    every = choose("published", None)
    names = [name for each in every for name in (each.model, each.data, each.name)]
    return completed_list(incomplete, dict.fromkeys(names))


def reproduce_command(
    protocol: Annotated[
        Protocol,
        typer.Option(help="published: as the authors ran it, slips included; corrected: as the paper says it."),
    ] = Protocol.published,
    only: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Experiments (gpr/power_plant), models (gpr) or data sets (skin), with commas between.",
            autocompletion=_completed_experiments,
            show_default="all; the network only where there is a GPU",
        ),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Runs of each experiment.", show_default="published 1, corrected 10")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Runs at once.", show_default="as many as there are processors")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for runs, tables, figures and report.")] = Path("suffice-reproduce"),
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write a row a run as JSON; - is the terminal.")
    ] = None,
    slips: Annotated[
        bool, typer.Option("--slips", help="Also put each slip of the authors right alone, and measure what it does.")
    ] = False,
) -> None:
    """Run the experiments of the paper, and write its tables and figures, and what holds of its claims.

    Every run is kept in the folder as soon as it is done; the same command goes on from there.

    Example: suffice reproduce --only gpr,brr --out paper
    """
    order = _order(protocol, only, seeds, jobs, out, json_file, slips)
    console = Console(quiet=str(json_file) == "-", highlight=False)
    console.soft_wrap = not console.is_terminal
    try:
        skipped = _conduct(order, console)
    except KeyboardInterrupt:
        typer.echo(_interrupted(order), err=True)
        raise typer.Exit(1) from None
    if skipped:
        raise typer.Exit(1)


def _interrupted(order: Order) -> str:
    from suffice.experiments.paper.runner import Run

    return interrupted([Run.of(job) for job in order.jobs], order.out, order.out / "traces")


def _order(
    protocol: Protocol,
    only: str | None,
    seeds: int | None,
    jobs: int | None,
    out: Path,
    json_file: Path | None,
    slips: bool,
) -> Order:
    from suffice.experiments.paper.plan import choose, plan
    from suffice.report.paper.figures import require_matplotlib

    require_matplotlib()
    protocols = ("published", "corrected") if protocol is Protocol.both else (protocol.value,)
    planned = plan([each for name in protocols for each in choose(name, only)], seeds)
    for folder in (out, out / "traces", out / "tables", out / "figures"):
        require_folder(folder)
    if json_file is not None and str(json_file) != "-":
        require_writable(json_file, "the rows")
    ready, left_out = _without_network(planned, out / "traces", asked=only is not None)
    workers = jobs or processors()
    return Order(ready, left_out, out, workers, json_file, slips)


def _without_network(jobs: "Sequence[Job]", traces: Path, *, asked: bool) -> "tuple[Sequence[Job], str]":
    """Leave out a network that would take hours, unless it was asked for by name or is there already."""
    from suffice.experiments.paper.runner import kept

    slow = [job for job in jobs if job.experiment.model == "bdnn" and not asked and kept(job, traces) is None]
    if not slow or _has_gpu():
        return jobs, ""
    said = "bdnn/mnist is left out: a run takes over an hour without a GPU. --only bdnn/mnist runs it all the same"
    return [job for job in jobs if job not in slow], said


def _has_gpu() -> bool:
    if find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


def _conduct(order: Order, console: Console) -> "list[Skipped]":
    from suffice.experiments.paper.claims import judge
    from suffice.experiments.paper.outcome import Outcome, rows_csv

    found = _carry_out(order.jobs, order, console)
    outcomes = [each for each in found if isinstance(each, Outcome)]
    skipped: list[Skipped] = [each for each in found if not isinstance(each, Outcome)]
    slip_tables, unslipped = _slips(order, outcomes, console) if order.slips else ([], [])
    skipped += unslipped
    tell_skipped((each.job.experiment.name, each.reason) for each in skipped)
    # A line a run: readable, small, and a change shows where it is.
    rows = ("[\n" + ",\n".join(json.dumps(each.row()) for each in outcomes) + "\n]\n").encode()
    write_bytes_whole(order.out / "results.json", rows)
    write_bytes_whole(order.out / "results.csv", rows_csv(outcomes).encode())
    findings = judge(outcomes)
    if outcomes:
        write_results(order, outcomes, findings, skipped, slip_tables)
    if str(order.json_file) == "-":
        typer.echo(rows.decode(), nl=False)
    elif order.json_file is not None:
        write_bytes_whole(order.json_file, rows)
    tell(order, outcomes, findings, console)
    return skipped


def _carry_out(jobs: "Sequence[Job]", order: Order, console: Console) -> "list[Outcome | Skipped]":
    from suffice.experiments.paper.runner import Run, Watcher, carry_out_all

    with RunsView(console, [Run.of(job) for job in jobs], summary) as view:
        return carry_out_all(jobs, order.out / "traces", order.workers, Watcher(view.moved, view.ended))


def _slips(order: Order, outcomes: "Sequence[Outcome]", console: Console) -> "tuple[list[Table], list[Skipped]]":
    """Each slip put right alone: what changes, and what could not be run."""
    from suffice.experiments.paper.outcome import Outcome
    from suffice.experiments.paper.slips import slip_jobs
    from suffice.report.paper.slips import SlipEffect, slips_tables

    bases = {(each.name, each.seed): each for each in outcomes if each.protocol == "published"}
    changed = [
        (slip, base, job)
        for base in order.jobs
        if (base.experiment.name, base.seed) in bases and base.experiment.protocol == "published"
        for slip, job in slip_jobs(base)
    ]
    if not changed:
        return [], []
    console.print(f"Slips put right, one at a time: {len(changed)} runs")
    found = _carry_out([job for _, _, job in changed], order, console)
    effects = [
        SlipEffect(slip, bases[base.experiment.name, base.seed], each)
        for (slip, base, _), each in zip(changed, found, strict=True)
        if isinstance(each, Outcome)
    ]
    return slips_tables(effects), [each for each in found if not isinstance(each, Outcome)]
