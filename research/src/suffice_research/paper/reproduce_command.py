"""``suffice reproduce``: every table and figure of the paper."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape

from suffice.cli.json_output import json_option, tell_error
from suffice.files import require_writable, write_bytes_whole
from suffice.presentation.text_format import count
from suffice_research.runner import (
    RunsView,
    completed_list,
    interrupted,
    processors,
    provenance,
    require_folder,
    tell_skipped,
)

if TYPE_CHECKING:
    from suffice.report.html_page import ReportTable
    from suffice_research.data.protocols import Experiment
    from suffice_research.paper.claims import ClaimFinding
    from suffice_research.paper.experiments import PaperRun, SkippedPaperRun
    from suffice_research.paper.outcome import RunOutcome


def outcome_summary(found: "RunOutcome") -> str:
    """Return the summary of a run, on one line."""
    correlation = "undefined" if found.correlation is None else f"{found.correlation:.4f}"
    published = "" if found.published_correlation is None else f" (published {found.published_correlation:.4f})"
    places = ("never" if at is None else f"at acquisition {at}" for at in found.stops.values())
    stops = ", ".join(f"{place} (threshold {name})" for name, place in list(zip(found.stops, places, strict=True))[:3])
    return f"correlation {correlation}{published}; stops {stops}; {found.seconds:.1f} s"


class Protocol(StrEnum):
    """Protocol of the experiments: as published, as corrected, or both."""

    published = "published"
    corrected = "corrected"
    both = "both"


@dataclass(frozen=True)
class ReproduceRequest:
    """Validated options of the command: the runs in the order of the report, and the output folder."""

    jobs: "Sequence[PaperRun]"
    left_out: str
    out: Path
    workers: int
    json_file: Path | None
    errata: bool


def _completed_experiments(incomplete: str) -> list[str]:
    from suffice_research.paper.experiments import choose

    every = choose("published", None)
    names = [name for experiment in every for name in (experiment.model, experiment.data, experiment.name)]
    return completed_list(incomplete, dict.fromkeys(names))


def reproduce_command(
    protocol: Annotated[
        Protocol,
        typer.Option(help="published: as the authors ran it, with their errors; corrected: as the paper describes it."),
    ] = Protocol.published,
    only: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Experiments (gpr/power_plant), models or data sets (skin), separated by commas. The models are gpr "
            "(Gaussian process regression), brr and blr (Bayesian ridge and logistic regression) and bdnn (Bayesian "
            "deep neural network).",
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
        Path | None, json_option("Write one row per run as JSON; - is the terminal.", metavar="FILE")
    ] = None,
    slips: Annotated[
        bool, typer.Option("--slips", help="Also correct each error of the authors alone, and measure its effect.")
    ] = False,
) -> None:
    """Repeat the experiments of the paper, and write its tables and figures and which claims hold.

    Every run is kept in the folder as soon as it is done; the same command continues from there.

    Example: suffice reproduce --only gpr,brr --out paper
    """
    request = _request(protocol, only, seeds, jobs, out, json_file, slips)
    console = Console(quiet=str(json_file) == "-", highlight=False)
    console.soft_wrap = not console.is_terminal
    try:
        skipped = _run_and_write(request, console)
    except KeyboardInterrupt:
        sentence = interrupted(request.jobs, request.out, request.out / "traces")
        raise typer.Exit(tell_error(sentence, "interrupted")) from None
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
    from suffice.report.figures import require_matplotlib
    from suffice.report.html_page import require_jinja2
    from suffice_research.paper.experiments import choose, plan

    require_matplotlib()
    require_jinja2("plot")
    protocols = ("published", "corrected") if protocol is Protocol.both else (protocol.value,)
    planned = plan([experiment for name in protocols for experiment in choose(name, only)], seeds)
    for folder in (out, out / "traces", out / "tables", out / "figures"):
        require_folder(folder)
    if json_file is not None and str(json_file) != "-":
        require_writable(json_file, "the rows")
    ready, left_out = _without_network(planned, out / "traces", asked=only is not None)
    workers = jobs or processors()
    return ReproduceRequest(ready, left_out, out, workers, json_file, errata)


def _without_network(jobs: "Sequence[PaperRun]", traces: Path, *, asked: bool) -> "tuple[Sequence[PaperRun], str]":
    """Leave out a network that would take hours, unless it was named or its run is saved already."""
    from suffice_research.runner import kept

    slow = [job for job in jobs if job.experiment.model == "bdnn" and not asked and kept(job, traces) is None]
    if not slow or _has_gpu():
        return jobs, ""
    reason = (
        "The Bayesian deep neural network on MNIST (bdnn/mnist) is left out: a run takes over an hour without a GPU. "
        "--only bdnn/mnist runs it all the same"
    )
    return [job for job in jobs if job not in slow], reason


def _has_gpu() -> bool:
    if find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


def _run_and_write(request: ReproduceRequest, console: Console) -> "list[SkippedPaperRun]":
    from suffice_research.paper.claims import judge
    from suffice_research.paper.outcome import RunOutcome, rows_csv

    results = _carry_out(request.jobs, request, console)
    outcomes = [result for result in results if isinstance(result, RunOutcome)]
    skipped: list[SkippedPaperRun] = [result for result in results if not isinstance(result, RunOutcome)]
    errata, skipped_errata = _errata(request, outcomes, console) if request.errata else ([], [])
    skipped += skipped_errata
    tell_skipped((result.job.experiment.name, result.reason) for result in skipped)
    # One line per run, which is readable, small, and easy to compare.
    rows = ("[\n" + ",\n".join(json.dumps(result.row()) for result in outcomes) + "\n]\n").encode()
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
    from suffice_research.paper.experiments import PaperRunWatcher, measured_runs

    with RunsView(console, jobs, outcome_summary) as view:
        return measured_runs(jobs, request.out / "traces", request.workers, PaperRunWatcher(view.moved, view.ended))


def _errata(
    request: ReproduceRequest, outcomes: "Sequence[RunOutcome]", console: Console
) -> "tuple[list[ReportTable], list[SkippedPaperRun]]":
    """Return tables with the effect of correcting each erratum alone, and the runs that were skipped."""
    from suffice_research.paper.claims import ErratumEffect, errata_tables, erratum_runs
    from suffice_research.paper.outcome import RunOutcome

    bases = {(outcome.name, outcome.seed): outcome for outcome in outcomes if outcome.protocol == "published"}
    changed = [
        (erratum, base, job)
        for base in request.jobs
        if (base.experiment.name, base.seed) in bases and base.experiment.protocol == "published"
        for erratum, job in erratum_runs(base)
    ]
    if not changed:
        return [], []
    console.print(f"Errata corrected one at a time: {len(changed)} runs")
    results = _carry_out([job for _, _, job in changed], request, console)
    effects = [
        ErratumEffect(erratum, bases[base.experiment.name, base.seed], outcome)
        for (erratum, base, _), outcome in zip(changed, results, strict=True)
        if isinstance(outcome, RunOutcome)
    ]
    return errata_tables(effects), [outcome for outcome in results if not isinstance(outcome, RunOutcome)]


_RUN_AS = {"published": "run as published", "corrected": "run as the paper describes it"}
_COLOURS = {"holds": "green", "holds in part": "yellow", "does not hold": "red"}


def write_results(
    request: "ReproduceRequest",
    outcomes: "Sequence[RunOutcome]",
    findings: "Sequence[ClaimFinding]",
    skipped: "Sequence[SkippedPaperRun]",
    errata_tables: "Sequence[ReportTable]",
) -> None:
    """Write tables, figures, findings and the report, and replace those of an earlier command."""
    from suffice_research.paper.paper_report import (
        PaperReportContents,
        draw_paper,
        findings_markdown,
        paper_tables,
        settings_table,
        write_report,
    )

    protocols = list(dict.fromkeys(job.experiment.protocol for job in request.jobs))
    settings = [settings_table(_experiments(request.jobs, protocol)) for protocol in protocols]
    tables = [*paper_tables(outcomes), *errata_tables, *settings]
    folder = request.out / "tables"
    _clear(request.out)
    for table in tables:
        write_bytes_whole(folder / f"{table.name}.md", table.markdown().encode())
        write_bytes_whole(folder / f"{table.name}.csv", table.csv().encode())
    write_bytes_whole(request.out / "findings.md", findings_markdown(findings).encode())
    contents = PaperReportContents(
        title="Stopping by error stability, reproduced",
        findings=tuple(findings),
        scope=_scope(outcomes),
        tables=tuple(tables),
        figures=tuple(draw_paper(outcomes, request.out / "figures")),
        skipped=tuple((run.job.name, run.reason) for run in skipped),
        provenance=_provenance(request, len(outcomes)),
    )
    write_report(request.out / "report.html", contents)


def _clear(out: Path) -> None:
    """Remove tables and figures of an earlier command with other runs, to avoid confusion with the new ones."""
    for protocol in ("published", "corrected"):
        for path in [*(out / "tables").glob(f"{protocol}-*"), *(out / "figures").glob(f"{protocol}-*")]:
            path.unlink(missing_ok=True)


def _experiments(jobs: "Sequence[PaperRun]", protocol: str) -> "list[Experiment]":
    """The experiments of a protocol, for all seeds and arms."""
    own = {job.experiment.name: job.experiment for job in reversed(jobs) if job.experiment.protocol == protocol}
    return list(own.values())[::-1]


def _provenance(request: "ReproduceRequest", n_runs: int) -> tuple[tuple[str, str], ...]:
    lines = [*provenance(), ("Runs", f"{n_runs} of {len(request.jobs)}")]
    return (*lines, *([("Left out", request.left_out)] if request.left_out else []))


def tell(
    request: "ReproduceRequest",
    outcomes: "Sequence[RunOutcome]",
    findings: "Sequence[ClaimFinding]",
    console: Console,
) -> None:
    """Print the findings, the covered part of the paper, and the path of the report."""
    for each in findings:
        how = runs_in_words(outcomes, each.protocol)
        console.print(f"[bold {_COLOURS[each.verdict]}]{each.verdict}[/] ({how}): {escape(each.claim)}")
    for sentence in _scope(outcomes):
        console.print(sentence)
    if request.left_out:
        typer.echo(request.left_out, err=True)
    if outcomes:
        runs = "1 run" if len(outcomes) == 1 else f"{len(outcomes)} runs"
        console.print(f"{runs}; read {escape(str(request.out / 'report.html'))}")


def runs_in_words(outcomes: "Sequence[RunOutcome]", protocol: str) -> str:
    """How the runs of a protocol were made, and with which seeds."""
    seeds = {each.seed for each in outcomes if each.protocol == protocol}
    used = "the authors' seed" if protocol == "published" and seeds == {1} else count(len(seeds), "seed")
    return f"{_RUN_AS[protocol]}, with {used}"


def _scope(outcomes: "Sequence[RunOutcome]") -> tuple[str, ...]:
    """A note if only a part of the paper's experiments was run."""
    from suffice_research.data.protocols import PROTOCOLS

    made = {name: {outcome.name for outcome in outcomes if outcome.protocol == name} for name in PROTOCOLS}
    return tuple(
        f"Judged from {len(run)} of the {len(PROTOCOLS[name])} experiments, {_RUN_AS[name]}."
        for name, run in made.items()
        if run and len(run) < len(PROTOCOLS[name])
    )
