"""The files that ``suffice reproduce`` writes, and its summary on the terminal."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.markup import escape

from suffice.cli.many_runs import provenance
from suffice.files import write_bytes_whole

if TYPE_CHECKING:
    from suffice.cli.reproduce import ReproduceRequest
    from suffice.data.protocols import Experiment
    from suffice.experiments.paper.claims import ClaimFinding
    from suffice.experiments.paper.outcome import RunOutcome
    from suffice.experiments.paper.plan import PaperRun
    from suffice.experiments.paper.runner import SkippedPaperRun
    from suffice.report.paper.tables import ReportTable

_COLOURS = {"holds": "green", "holds in part": "yellow", "does not hold": "red"}


def write_results(
    request: "ReproduceRequest",
    outcomes: "Sequence[RunOutcome]",
    findings: "Sequence[ClaimFinding]",
    skipped: "Sequence[SkippedPaperRun]",
    errata_tables: "Sequence[ReportTable]",
) -> None:
    """Write tables, figures, findings and the report, in place of those of an earlier command."""
    from suffice.report.paper.figures import draw_paper
    from suffice.report.paper.findings import findings_markdown
    from suffice.report.paper.page import PaperReportContents, write_report
    from suffice.report.paper.settings import settings_table
    from suffice.report.paper.tables import paper_tables

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
        skipped=tuple((each.job.name, each.reason) for each in skipped),
        provenance=_provenance(request, len(outcomes)),
    )
    write_report(request.out / "report.html", contents)


def _clear(out: Path) -> None:
    """Take away the tables and figures of an earlier command with other runs: they would look like these."""
    for protocol in ("published", "corrected"):
        for path in [*(out / "tables").glob(f"{protocol}-*"), *(out / "figures").glob(f"{protocol}-*")]:
            path.unlink(missing_ok=True)


def _experiments(jobs: "Sequence[PaperRun]", protocol: str) -> "list[Experiment]":
    """Those of a protocol, whatever seeds and arms they are run with."""
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
    """Say what was found, from how much of the paper, and where to read it."""
    for each in findings:
        console.print(f"[bold {_COLOURS[each.verdict]}]{each.verdict}[/] ({each.protocol}): {escape(each.claim)}")
    for sentence in _scope(outcomes):
        console.print(sentence)
    if request.left_out:
        typer.echo(request.left_out, err=True)
    if outcomes:
        runs = "1 run" if len(outcomes) == 1 else f"{len(outcomes)} runs"
        console.print(f"{runs}; read {escape(str(request.out / 'report.html'))}")


def _scope(outcomes: "Sequence[RunOutcome]") -> tuple[str, ...]:
    """A verdict on a few experiments is none on the paper."""
    from suffice.data.protocols import PROTOCOLS

    made = {name: {each.name for each in outcomes if each.protocol == name} for name in PROTOCOLS}
    return tuple(
        f"Judged from {len(run)} of the {len(PROTOCOLS[name])} experiments ({name})."
        for name, run in made.items()
        if run and len(run) < len(PROTOCOLS[name])
    )
