"""``suffice compare``: every stopping rule on the same recorded runs, from one command."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from suffice.cli.compare_plan import WORDS, chosen_data, chosen_models, chosen_rules, numbers, planned
from suffice.cli.compare_results import tell, write_results, write_rows
from suffice.cli.many_runs import completed_list, processors, require_folder, tell_skipped
from suffice.cli.progress import RunsView, interrupted
from suffice.files import require_writable

if TYPE_CHECKING:
    from suffice.experiments.compare.judging import JudgedRun
    from suffice.experiments.compare.recording import RecordingJob, RecordingSettings
    from suffice.experiments.runner import SkippedRun


@dataclass(frozen=True)
class CompareRequest:
    """Options of the command, checked: the runs in the order of the report, the rules, and where the results go."""

    jobs: "Sequence[RecordingJob]"
    rules: tuple[str, ...]
    rules_named: bool
    out: Path
    workers: int
    json_file: Path | None
    all_settings: bool


def _completed_data(incomplete: str) -> list[str]:
    from suffice.experiments.compare.sources import SOURCES

    return completed_list(incomplete, [*WORDS, *SOURCES])


def _completed_models(incomplete: str) -> list[str]:
    from suffice.experiments.compare.recording import MODELS

    return completed_list(incomplete, MODELS)


def _completed_rules(incomplete: str) -> list[str]:
    from suffice.experiments.compare.rules import catalogue

    return completed_list(incomplete, (entry.name for entry in catalogue()))


def compare_command(
    data: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Data sets, with commas between: names, paths of tables (with --target), or embedded, paper, all.",
            autocompletion=_completed_data,
            show_default="four small ones",
        ),
    ] = None,
    target: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of a table to predict.")] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="gp, ridge (numbers), logistic (classes).",
            autocompletion=_completed_models,
            show_default="all that fit",
        ),
    ] = None,
    rules: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Stopping rules, with commas between; the references come along.",
            autocompletion=_completed_rules,
            show_default="all but TimeLimit",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each model on each data set.")] = 3,
    batch: Annotated[str, typer.Option(metavar="NUMBERS", help="Labels bought at each step.")] = "1",
    labels: Annotated[int, typer.Option(min=1, help="Labels bought in all, if the pool has as many.")] = 500,
    initial: Annotated[int, typer.Option(min=1, help="Of which so many at random at the start.")] = 10,
    pool: Annotated[int, typer.Option(min=2, help="Rows to label from, at most.")] = 2000,
    test: Annotated[int, typer.Option(min=1, help="Rows to test on, at most.")] = 1000,
    stop_set: Annotated[str, typer.Option(metavar="NUMBERS", help="Items of the stop set, at most.")] = "2000",
    noise: Annotated[
        str,
        typer.Option(
            metavar="NUMBERS", help="Share of wrong labels; of numbers the noise added, in standard deviations."
        ),
    ] = "0",
    imbalance: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBERS", help="Share that the rarest class is brought down to.", show_default="as it is"
        ),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Runs at once.", show_default="as many as there are processors")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for runs, tables, figures and report.")] = Path("suffice-compare"),
    json_file: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Write a row a rule and run as JSON; - is the terminal."),
    ] = None,
    all_settings: Annotated[
        bool, typer.Option("--all-settings", help="Show every way to set a rule, not only the best of them.")
    ] = False,
) -> None:
    """Compare stopping rules: label data sets once, replay every rule on the same runs, and rank them by their cost.

    Every run is kept in the folder as soon as it is done; the same command, or one with more rules, goes on from there.

    Example: suffice compare --data diabetes,wine --rules ErrorStability,LabelWorth --out comparison
    """
    from suffice.report.page import require_jinja2

    require_jinja2("plot")
    models, rules_named = chosen_models(model), rules is not None
    chosen = chosen_rules(rules)
    settings = _recording_settings(
        (labels, initial, pool, test),
        numbers(stop_set, "--stop-set", int, 1),
        numbers(noise, "--noise", float, 0.0),
        [None] if imbalance is None else numbers(imbalance, "--imbalance", float, 0.0),
    )
    batches = numbers(batch, "--batch", int, 1)
    runs = planned(chosen_data(data, models, target), models, target, seeds=seeds, batches=batches, settings=settings)
    for folder in (out, out / "traces", out / "tables", out / "figures"):
        require_folder(folder)
    if json_file is not None and str(json_file) != "-":
        require_writable(json_file, "the rows")
    request = CompareRequest(runs, chosen, rules_named, out, jobs or processors(), json_file, all_settings)
    console = Console(quiet=str(json_file) == "-", highlight=False)
    console.soft_wrap = not console.is_terminal
    try:
        skipped = _run_and_write(request, console)
    except KeyboardInterrupt:
        typer.echo(interrupted(request.jobs, out, out / "traces"), err=True)
        raise typer.Exit(1) from None
    if skipped:
        raise typer.Exit(1)


def _recording_settings(
    sizes: tuple[int, int, int, int], stop_sets: list[int], noises: list[float], shares: Sequence[float | None]
) -> "list[RecordingSettings]":
    """Every combination of what may be varied."""
    from suffice.experiments.compare.recording import RecordingSettings

    labels, initial, pool, test = sizes
    return [
        RecordingSettings(
            labels=labels, initial=initial, pool=pool, test=test, stop_set=stop_set, noise=noise, imbalance=imbalance
        )
        for stop_set, noise, imbalance in product(stop_sets, noises, shares)
    ]


def _run_and_write(request: CompareRequest, console: Console) -> "list[SkippedRun[RecordingJob]]":
    from suffice.experiments.compare.board import rows
    from suffice.experiments.runner import SkippedRun
    from suffice.report.compare.boards import boards

    outcomes = _carry_out(request, console)
    skipped = [each for each in outcomes if isinstance(each, SkippedRun)]
    found = [each for each in outcomes if not isinstance(each, SkippedRun)]
    tell_skipped((each.job.data, each.reason) for each in skipped)
    made = rows([score for each in found for score in each.scores])
    write_rows(request, made)
    if found:
        with console.status("Drawing ...") if console.is_terminal else nullcontext():
            ranked = boards(made)
            problem = write_results(request, ranked, found, skipped)
        tell(request, ranked, len(found), problem, console)
    return skipped


def _carry_out(request: CompareRequest, console: Console) -> "list[JudgedRun | SkippedRun[RecordingJob]]":
    from suffice.experiments.compare.judging import judged, run_summary
    from suffice.experiments.runner import RunWatcher, carry_out_all

    with RunsView(console, request.jobs, run_summary) as view:
        return carry_out_all(
            request.jobs,
            request.out / "traces",
            request.workers,
            RunWatcher(view.moved, view.ended),
            partial(judged, rules=request.rules),
        )
