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
from suffice.cli.reproduce_progress import outcome_summary
from suffice.cli.reproduce_results import tell, write_results
from suffice.files import require_writable, write_bytes_whole

if TYPE_CHECKING:
    from suffice.experiments.paper.outcome import RunOutcome
    from suffice.experiments.paper.plan import PaperRun
    from suffice.experiments.paper.runner import SkippedPaperRun
    from suffice.report.paper.tables import ReportTable


class Protocol(StrEnum):
    """Which experiments: those that were published, those that should have been, or both."""

    published = "published"
    corrected = "corrected"
    both = "both"


@dataclass(frozen=True)
class ReproduceRequest:
    """Options of the command, checked: the runs in the order of the report, and where the results go."""

    jobs: "Sequence[PaperRun]"
    left_out: str
    out: Path
    workers: int
    json_file: Path | None
    errata: bool


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
    request = _request(protocol, only, seeds, jobs, out, json_file, slips)
    console = Console(quiet=str(json_file) == "-", highlight=False)
    console.soft_wrap = not console.is_terminal
    try:
        skipped = _run_and_write(request, console)
    except KeyboardInterrupt:
        typer.echo(interrupted(request.jobs, request.out, request.out / "traces"), err=True)
        raise typer.Exit(1) from None
    if skipped:
        raise typer.Exit(1)


def _request(
    protocol: Protocol,
    only: str | None,
    seeds: int | None,
    jobs: int | None,
    out: Path,
    json_file: Path | None,
    errata: bool,
) -> ReproduceRequest:
    from suffice.experiments.paper.plan import choose, plan
    from suffice.report.page import require_jinja2
    from suffice.report.paper.figures import require_matplotlib

    require_matplotlib()
    require_jinja2("plot")
    protocols = ("published", "corrected") if protocol is Protocol.both else (protocol.value,)
    planned = plan([each for name in protocols for each in choose(name, only)], seeds)
    for folder in (out, out / "traces", out / "tables", out / "figures"):
        require_folder(folder)
    if json_file is not None and str(json_file) != "-":
        require_writable(json_file, "the rows")
    ready, left_out = _without_network(planned, out / "traces", asked=only is not None)
    workers = jobs or processors()
    return ReproduceRequest(ready, left_out, out, workers, json_file, errata)


def _without_network(jobs: "Sequence[PaperRun]", traces: Path, *, asked: bool) -> "tuple[Sequence[PaperRun], str]":
    """Leave out a network that would take hours, unless it was asked for by name or is there already."""
    from suffice.experiments.runner import kept

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


def _run_and_write(request: ReproduceRequest, console: Console) -> "list[SkippedPaperRun]":
    from suffice.experiments.paper.claims import judge
    from suffice.experiments.paper.outcome import RunOutcome, rows_csv

    found = _carry_out(request.jobs, request, console)
    outcomes = [each for each in found if isinstance(each, RunOutcome)]
    skipped: list[SkippedPaperRun] = [each for each in found if not isinstance(each, RunOutcome)]
    errata, skipped_errata = _errata(request, outcomes, console) if request.errata else ([], [])
    skipped += skipped_errata
    tell_skipped((each.job.experiment.name, each.reason) for each in skipped)
    # A line a run: readable, small, and a change shows where it is.
    rows = ("[\n" + ",\n".join(json.dumps(each.row()) for each in outcomes) + "\n]\n").encode()
    write_bytes_whole(request.out / "results.json", rows)
    write_bytes_whole(request.out / "results.csv", rows_csv(outcomes).encode())
    findings = judge(outcomes)
    if outcomes:
        write_results(request, outcomes, findings, skipped, errata)
    if str(request.json_file) == "-":
        typer.echo(rows.decode(), nl=False)
    elif request.json_file is not None:
        write_bytes_whole(request.json_file, rows)
    tell(request, outcomes, findings, console)
    return skipped


def _carry_out(
    jobs: "Sequence[PaperRun]", request: ReproduceRequest, console: Console
) -> "list[RunOutcome | SkippedPaperRun]":
    from suffice.experiments.paper.runner import PaperRunWatcher, measured_runs

    with RunsView(console, jobs, outcome_summary) as view:
        return measured_runs(jobs, request.out / "traces", request.workers, PaperRunWatcher(view.moved, view.ended))


def _errata(
    request: ReproduceRequest, outcomes: "Sequence[RunOutcome]", console: Console
) -> "tuple[list[ReportTable], list[SkippedPaperRun]]":
    """Return tables of what each erratum changes when it alone is corrected, and the runs that were skipped."""
    from suffice.experiments.paper.outcome import RunOutcome
    from suffice.experiments.paper.slips import erratum_runs
    from suffice.report.paper.slips import ErratumEffect, errata_tables

    bases = {(each.name, each.seed): each for each in outcomes if each.protocol == "published"}
    changed = [
        (erratum, base, job)
        for base in request.jobs
        if (base.experiment.name, base.seed) in bases and base.experiment.protocol == "published"
        for erratum, job in erratum_runs(base)
    ]
    if not changed:
        return [], []
    console.print(f"Errata corrected one at a time: {len(changed)} runs")
    found = _carry_out([job for _, _, job in changed], request, console)
    effects = [
        ErratumEffect(erratum, bases[base.experiment.name, base.seed], each)
        for (erratum, base, _), each in zip(changed, found, strict=True)
        if isinstance(each, RunOutcome)
    ]
    return errata_tables(effects), [each for each in found if not isinstance(each, RunOutcome)]
