"""``suffice compare``: every stopping rule on the same recorded runs."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from itertools import product
from os.path import isfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table as Shown

from suffice.cli.json_output import json_option, tell_error
from suffice.errors import InvalidValueError, MissingExtraError
from suffice.files import require_writable, write_bytes_whole
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
    from suffice.report.figures import Drawn
    from suffice.report.html_page import ReportTable
    from suffice_research.compare.comparison_report import Leaderboard
    from suffice_research.compare.judging import DefaultStop, JudgedRun
    from suffice_research.compare.recording import RecordingJob, RecordingSettings
    from suffice_research.compare.scoring import Row
    from suffice_research.runner import SkippedRun


def write_json(path: Path, value: Any) -> None:
    """Write JSON values to a file, completely or not at all.

    Raises:
        SufficeError: It cannot be written.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     write_json(Path(folder, "board.json"), [{"rule": "Budget", "stop": None}])
        ...     json.loads(Path(folder, "board.json").read_text())
        [{'rule': 'Budget', 'stop': None}]
    """
    write_bytes_whole(path, (json.dumps(value, indent=1, allow_nan=False) + "\n").encode())


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as a table, completely or not at all; see :func:`csv_of`.

    Raises:
        SufficeError: It cannot be written.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     write_csv(Path(folder, "board.csv"), [{"rule": "Budget", "labels": 10}])
        ...     Path(folder, "board.csv").read_text().split()
        ['rule,labels', 'Budget,10']
    """
    write_bytes_whole(path, csv_of(rows).encode())


def csv_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as CSV.

    A dictionary ``regret`` becomes a column ``regret_10`` and so on, an interval two columns ``_low`` and ``_high``,
    parameters JSON; None is empty.

    Examples:
        >>> print(csv_of([{"rule": "Budget", "params": {"labels": 10}, "regret": {"10": 0.5}, "interval": [0.1, 0.9]}]))
        rule,params,regret_10,interval_low,interval_high
        Budget,"{""labels"": 10}",0.5,0.1,0.9
        <BLANKLINE>
    """
    flat = [_flat(row) for row in rows]
    names = list(dict.fromkeys(name for row in flat for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return text.getvalue()


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if name == "params":
            flat[name] = json.dumps(value)
        elif isinstance(value, Mapping):
            flat |= {f"{name}_{key}": each for key, each in value.items()}
        elif isinstance(value, list):
            flat |= {f"{name}_{end}": each for end, each in zip(("low", "high"), value, strict=True)}
        else:
            flat[name] = value
    return flat


#: The default data sets, which need no download.
QUICK: Final = ("diabetes", "friedman", "breast_cancer", "wine")
#: Names for several data sets.
WORDS: Final = ("embedded", "paper", "all")
#: Rules that are always shown.
ALWAYS: Final = ("Budget", "AtOnce", "Never", "RandomStop", "Oracle")
#: Compared only if named, because its stop depends on the speed of the machine.
ASKED: Final = "TimeLimit"

N = TypeVar("N", int, float)


def chosen_models(text: str | None) -> list[str]:
    """The models of a list with commas; all if there is none.

    Raises:
        InvalidValueError: One is not known.

    Examples:
        >>> chosen_models("gp, ridge")
        ['gp', 'ridge']
    """
    from suffice_research.compare.recording import MODELS

    given = list(MODELS) if text is None else _split(text, "--model")
    for name in given:
        if name not in MODELS:
            raise InvalidValueError(f"there is no model {name!r}.{_nearest(name, MODELS)} There is {', '.join(MODELS)}")
    return given


def chosen_data(text: str | None, models: Sequence[str], target: str | None = None) -> list[str]:
    """The data sets of a list with commas; a quick set if there is none.

    A word for several data sets selects those that a given model can learn; a data set that is named is always
    included.

    Args:
        text: Names, words for several, or paths of tables.
        models: The models given.
        target: The column of a table to predict.

    Raises:
        InvalidValueError: One is not known, or there is a column and no table.

    Examples:
        >>> chosen_data(None, ["gp"], None), chosen_data("embedded,wine", ["logistic"], None)
        (['diabetes', 'friedman'], ['breast_cancer', 'digits', 'wine', 'iris'])
    """
    from suffice_research.compare.recording import SOURCES, source

    # A file may have a comma in its name.
    names = [text] if text is not None and isfile(text) else _split(text, "--data") if text is not None else [""]
    chosen: list[str] = []
    for name in names:
        if name in ("", *WORDS):
            chosen += [data for data in _meant(name) if _fits(data, models)]
        elif name not in SOURCES and (near := get_close_matches(name, WORDS, n=1, cutoff=0.8)):
            raise InvalidValueError(f"there is no data set {name!r}. Did you mean {near[0]}?")
        else:
            chosen.append(source(name).name)
    tables = [name for name in chosen if source(name).origin == "file"]
    if target is not None and not tables:
        raise InvalidValueError(f"--target {target!r} goes with the path of a table in --data, and there is none")
    return list(dict.fromkeys(chosen))


def chosen_tables(given: Sequence[str], listed: Sequence[str], targets: Sequence[str]) -> list[tuple[str, str]]:
    """Tables, each with the column to predict.

    Args:
        given: Paths of tables, each alone or as ``PATH:COLUMN``.
        listed: Paths of tables without a column, which come first.
        targets: Columns of the tables that have none: one for all of them, or one for each in order.

    Raises:
        InvalidValueError: A table has no column, or there are more or fewer columns than tables.

    Examples:
        >>> chosen_tables(["houses.csv:price", "wines.csv:grower"], [], [])
        [('houses.csv', 'price'), ('wines.csv', 'grower')]
        >>> chosen_tables(["a.csv", "b.csv"], [], ["y"])
        [('a.csv', 'y'), ('b.csv', 'y')]
    """
    from suffice_research.compare.recording import columns_of

    tables = [(path, None) for path in listed] + [_path_and_column(text) for text in given]
    open_ones = [path for path, column in tables if column is None]
    if not open_ones:
        if targets:
            whose = "each has one" if tables else "there is none"
            raise InvalidValueError(f"--target {targets[0]!r} goes with the path of a table without a column; {whose}")
        return [(path, column) for path, column in tables if column is not None]
    if not targets:
        raise InvalidValueError(
            f"{open_ones[0]}: name the column to predict, as {open_ones[0]}:COLUMN or with --target COLUMN. Its "
            f"columns are {columns_of(Path(open_ones[0]))}"
        )
    if len(targets) not in (1, len(open_ones)):
        raise InvalidValueError(
            f"{len(targets)} columns are given with --target for {len(open_ones)} tables; give one for all, one for "
            "each in order, or write PATH:COLUMN"
        )
    columns = iter(targets if len(targets) > 1 else [targets[0]] * len(open_ones))
    return [(path, next(columns) if column is None else column) for path, column in tables]


def _path_and_column(text: str) -> tuple[str, str | None]:
    """A path and the column after a colon; both may contain colons themselves."""
    from suffice_research.compare.recording import source

    if isfile(text):
        return text, None
    ends = [at for at, letter in enumerate(text) if letter == ":"]
    file_ends = [at for at in ends if isfile(text[:at])]
    path, column = (text[: file_ends[0]], text[file_ends[0] + 1 :]) if file_ends else (text, None)
    if not file_ends and ends and source(text[: ends[-1]]).origin == "file":
        path, column = text[: ends[-1]], text[ends[-1] + 1 :]
    if source(path).origin != "file":
        raise InvalidValueError(f"{path} is no table but a data set; give it with --data {path}")
    if column == "":
        raise InvalidValueError(f"{text}: the column to predict is missing behind the colon")
    return path, column


def chosen_rules(text: str | None) -> tuple[str, ...]:
    """The rules of a list with commas, and the references that are always included; all rules if there is no list.

    Capitals, spaces, hyphens and underscores do not matter.

    Raises:
        InvalidValueError: One is not known.

    Examples:
        >>> chosen_rules("error_stability, PerformanceConvergence, window 20")
        ('ErrorStability', 'PerformanceConvergence, window 20', 'Budget', 'AtOnce', 'Never', 'RandomStop', 'Oracle')
    """
    from suffice_research.recommendation.compared_rules import catalogue

    names = [entry.name for entry in catalogue()]
    if text is None:
        return tuple(name for name in names if name != ASKED)
    by_plain_name, parts = {_plain(name): name for name in names}, _split(text, "--rules")
    asked: list[str] = []
    while parts:
        part = parts.pop(0)
        # Some names have a comma in them.
        if parts and _plain(part + parts[0]) in by_plain_name:
            part += parts.pop(0)
        if _plain(part) not in by_plain_name:
            near = get_close_matches(_plain(part), by_plain_name, n=1)
            guess = f" Did you mean {by_plain_name[near[0]]}?" if near else ""
            raise InvalidValueError(f"there is no rule {part!r}.{guess} The rules are {'; '.join(names)}")
        asked.append(by_plain_name[_plain(part)])
    return tuple(dict.fromkeys((*asked, *ALWAYS)))


def numbers(text: str, option: str, kind: Callable[[str], N], least: N) -> list[N]:
    """Numbers separated by commas.

    Args:
        text: They.
        option: The option they were given to, for an error.
        kind: ``int`` or ``float``.
        least: None may be below this.

    Raises:
        InvalidValueError: One is no such number.

    Examples:
        >>> numbers("1,10", "--batch", int, 1)
        [1, 10]
    """
    found = []
    for part in _split(text, option):
        try:
            value = kind(part)
        except ValueError:
            value = None
        # Comparisons with NaN are always false.
        if value is None or not least <= value < float("inf"):
            what = "whole numbers" if kind is int else "numbers"
            raise InvalidValueError(f"{option} must be {what} of {least} or more with commas between, not {part!r}")
        found.append(value)
    return list(dict.fromkeys(found))


def planned(
    data: Sequence[str | tuple[str, str]],
    models: Sequence[str],
    target: str | None = None,
    *,
    seeds: int,
    batches: Sequence[int],
    settings: "Sequence[RecordingSettings]",
) -> "list[RecordingJob]":
    """The runs, ordered by data set; a table may be given with its column.

    For numbers there is no rarest class, so runs that differ only in its share are the same run.

    Raises:
        InvalidValueError: A table cannot be read, no model fits a data set, or too few labels are left.
    """
    from dataclasses import replace

    from suffice_research.compare.recording import MODELS, recordings

    for setting in settings:
        for batch in batches:
            _require_steps(setting, batch)
    jobs = []
    for named in data:
        name, column = (named, target) if isinstance(named, str) else named
        for setting in settings:
            for job in recordings([name], models, seeds=seeds, batches=batches, setting=setting, target=column):
                numeric = MODELS[job.model] == "regression" and setting.imbalance is not None
                jobs.append(replace(job, setting=replace(setting, imbalance=None)) if numeric else job)
    return list(dict.fromkeys(jobs))


def _require_steps(setting: "RecordingSettings", batch: int) -> None:
    if setting.labels - setting.initial < 2 * batch:
        left = max(0, setting.labels - setting.initial)
        raise InvalidValueError(
            f"--labels {setting.labels} with --initial {setting.initial} leaves {left} to buy, and 2 steps of {batch} "
            "or more are required; raise --labels, or lower --initial or --batch"
        )


def _meant(word: str) -> list[str]:
    from suffice_research.compare.recording import SOURCES
    from suffice_research.data.catalogue import SETS

    if not word:
        return list(QUICK)
    if word == "embedded":
        return [name for name, labelled in SOURCES.items() if labelled.origin == "embedded"]
    if word == "paper":
        return [name for name, labelled in SOURCES.items() if labelled.data and SETS[labelled.data].models]
    return list(SOURCES)


def _fits(name: str, models: Sequence[str]) -> bool:
    from suffice_research.compare.recording import MODELS, source

    return any(MODELS[model] == source(name).kind for model in models)


def _split(text: str, option: str) -> list[str]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise InvalidValueError(f"{option} is empty; give names with commas between, or leave it out")
    return parts


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _nearest(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name.lower(), list(known), n=1)
    return f" Did you mean {near[0]}?" if near else ""


#: Columns that are omitted on narrow terminals, the least important first.
_DISPENSABLE: Final = (
    *("µs a step", "its interval", "premature %", "labels over", "stops %", "to the first"),
    *("90 % interval", "typical", "90 % point", "median", "set by"),
)
#: Width below which a terminal is narrow, and characters per line of a rule's name there.
_NARROW: Final = 120, 26
#: Width if the output is not a terminal, so that all columns are shown.
_WIDE: Final = 200


def show_board(console: Console, table: "ReportTable", references: Sequence[str]) -> None:
    """Print a leaderboard; columns that do not fit are omitted, and named.

    Args:
        console: Where.
        table: The leaderboard.
        references: Rules to be shown faintly, as they stand in the table.
    """
    if not console.is_terminal:
        console.width = _WIDE
    dispensable = [name for name in _DISPENSABLE if name in table.head]
    left_out: list[str] = []
    longest = _NARROW[1] if console.width < _NARROW[0] else None
    shown = _shown(table, left_out, references, longest)
    while _needed(console, shown) > console.width and len(left_out) < len(dispensable):
        left_out.append(dispensable[len(left_out)])
        shown = _shown(table, left_out, references, longest)
    console.print()
    console.print(shown, soft_wrap=False)
    if left_out:
        console.print(f"No room for: {', '.join(reversed(left_out))}. The report has them.", style="dim")


def _needed(console: Console, shown: Shown) -> int:
    """Number of characters that the full width of a table needs."""
    return Measurement.get(console, console.options.update(width=1000), shown).maximum


def _shown(table: "ReportTable", left_out: Sequence[str], references: Sequence[str], longest: int | None) -> Shown:
    kept = [at for at, name in enumerate(table.head) if name not in left_out]
    shown = Shown(
        title=table.title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
    for at in kept:
        name, words = table.head[at], table.head[at] in ("rule", "set by")
        # On two lines, so that a heading is not wider than its numbers.
        head = name if words else "\n".join(name.rsplit(" ", 1))
        shown.add_column(
            head,
            justify="left" if words else "right",
            vertical="bottom",
            no_wrap=name != "rule",
            max_width=longest if name == "rule" else None,
        )
    for row in table.rows:
        style = "dim" if row[1] in references else "bold" if row[0] == "1" else ""
        shown.add_row(*(escape(row[at]) for at in kept), style=style)
    return shown


@dataclass(frozen=True)
class CompareRequest:
    """Validated options of the command: the runs in the order of the report, the rules, and the output folder."""

    jobs: "Sequence[RecordingJob]"
    rules: tuple[str, ...]
    rules_named: bool
    out: Path
    workers: int
    json_file: Path | None
    all_settings: bool


def _completed_data(incomplete: str) -> list[str]:
    from suffice_research.compare.recording import SOURCES

    return completed_list(incomplete, [*WORDS, *SOURCES])


def _completed_models(incomplete: str) -> list[str]:
    from suffice_research.compare.recording import MODELS

    return completed_list(incomplete, MODELS)


def _completed_rules(incomplete: str) -> list[str]:
    from suffice_research.recommendation.compared_rules import catalogue

    return completed_list(incomplete, (entry.name for entry in catalogue()))


def compare_command(
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TABLE:COLUMN]...",
            help="Your own tables (CSV, Excel, JSON lines or Parquet), each with the column to predict.",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Data sets, separated by commas: names, paths of tables (with --target), or embedded, paper, all.",
            autocompletion=_completed_data,
            show_default="four small ones, if no table is given",
        ),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Column to predict of tables that have none: one for all of them, or one for each in order.",
            show_default=False,
        ),
    ] = None,
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
            help="Stopping rules, separated by commas; the reference rules are always included.",
            autocompletion=_completed_rules,
            show_default="all but TimeLimit",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each model on each data set.")] = 3,
    batch: Annotated[str, typer.Option(metavar="NUMBERS", help="Labels bought at each step.")] = "1",
    labels: Annotated[int, typer.Option(min=1, help="Labels bought in all, if the pool has as many.")] = 500,
    initial: Annotated[int, typer.Option(min=1, help="Random labels at the start, included in --labels.")] = 10,
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
        typer.Option(metavar="NUMBERS", help="Share to which the rarest class is reduced.", show_default="as it is"),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Runs at once.", show_default="as many as there are processors")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for runs, tables, figures and report.")] = Path("suffice-compare"),
    json_file: Annotated[
        Path | None,
        json_option("Write one row per rule and run as JSON; - is the terminal.", metavar="FILE"),
    ] = None,
    all_settings: Annotated[
        bool, typer.Option("--all-settings", help="Show every way to configure a rule, not only the best.")
    ] = False,
) -> None:
    """Compare stopping rules: label data sets once, replay every rule on the same runs, and rank them by their cost.

    Every run is kept in the folder as soon as it is done. The same command, or one with more rules, continues there.

    Example: suffice compare --data diabetes,wine --rules ErrorStability,LabelWorth --out comparison

    With your own tables: suffice compare houses.csv:price mails.csv:spam
    """
    from suffice.report.html_page import require_jinja2

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
    chosen_sets = _sets_and_tables(tables or [], data, models, target or [])
    runs = planned(chosen_sets, models, seeds=seeds, batches=batches, settings=settings)
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
        sentence = interrupted(request.jobs, out, out / "traces")
        raise typer.Exit(tell_error(sentence, "interrupted")) from None
    if skipped:
        raise typer.Exit(1)


def _sets_and_tables(
    tables: Sequence[str], data: str | None, models: Sequence[str], targets: Sequence[str]
) -> list[str | tuple[str, str]]:
    """Data for the comparison: data sets by name, and tables with their columns."""
    from suffice_research.compare.recording import source

    names = [] if tables and data is None else chosen_data(data, models)
    listed = [name for name in names if source(name).origin == "file"]
    sets: list[str | tuple[str, str]] = [name for name in names if name not in listed]
    return list(dict.fromkeys([*sets, *chosen_tables(tables, listed, targets)]))


def _recording_settings(
    sizes: tuple[int, int, int, int], stop_sets: list[int], noises: list[float], shares: Sequence[float | None]
) -> "list[RecordingSettings]":
    """Every combination of the varied settings."""
    from suffice_research.compare.recording import RecordingSettings

    labels, initial, pool, test = sizes
    return [
        RecordingSettings(
            labels=labels, initial=initial, pool=pool, test=test, stop_set=stop_set, noise=noise, imbalance=imbalance
        )
        for stop_set, noise, imbalance in product(stop_sets, noises, shares)
    ]


def _run_and_write(request: CompareRequest, console: Console) -> "list[SkippedRun[RecordingJob]]":
    from suffice_research.compare.comparison_report import boards
    from suffice_research.compare.scoring import rows
    from suffice_research.runner import SkippedRun

    outcomes = _carry_out(request, console)
    skipped = [outcome for outcome in outcomes if isinstance(outcome, SkippedRun)]
    runs = [outcome for outcome in outcomes if not isinstance(outcome, SkippedRun)]
    tell_skipped((outcome.job.data, outcome.reason) for outcome in skipped)
    made = rows([score for outcome in runs for score in outcome.scores])
    write_rows(request, made)
    if runs:
        with console.status("Drawing ...") if console.is_terminal else nullcontext():
            ranked = boards(made)
            problem = write_results(request, ranked, runs, skipped)
        tell(request, ranked, runs, problem, console)
    return skipped


def _carry_out(request: CompareRequest, console: Console) -> "list[JudgedRun | SkippedRun[RecordingJob]]":
    from suffice_research.compare.judging import judged, run_summary
    from suffice_research.runner import RunWatcher, carry_out_all

    with RunsView(console, request.jobs, run_summary) as view:
        return carry_out_all(
            request.jobs,
            request.out / "traces",
            request.workers,
            RunWatcher(view.moved, view.ended),
            partial(judged, rules=request.rules, by_column=_by_column(request.jobs)),
        )


def _by_column(jobs: "Sequence[RecordingJob]") -> frozenset[str]:
    """Tables that are compared with several target columns; their names then include the column."""
    columns: dict[str, set[str | None]] = {}
    for job in jobs:
        columns.setdefault(job.data, set()).add(job.target)
    return frozenset(name for name, several in columns.items() if len(several) > 1)


def write_rows(request: "CompareRequest", rows: "Sequence[Row]") -> None:
    """Write the rows to the folder and to the requested files."""
    write_json(request.out / "rows.json", rows)
    write_csv(request.out / "rows.csv", rows)
    if str(request.json_file) == "-":
        typer.echo((request.out / "rows.json").read_text(), nl=False)
    elif request.json_file is not None:
        write_json(request.json_file, rows)


def write_results(
    request: "CompareRequest",
    boards: "Sequence[Leaderboard]",
    runs: "Sequence[JudgedRun]",
    skipped: "Sequence[SkippedRun[RecordingJob]]",
) -> str:
    """Write tables, figures and the report, and replace those of an earlier command.

    Returns:
        The reason why there are no figures; empty if there are figures.
    """
    from suffice_research.compare.comparison_report import ComparisonReportContents, write_report
    from suffice_research.compare.judging import coverage_summary, guarantee_rows

    _clear(request.out)
    held = [(run.case, run.guarantees) for run in runs if run.guarantees]
    write_csv(
        request.out / "leaderboard.csv", [{"tasks": board.key, **row} for board in boards for row in board.ranked]
    )
    if held:
        write_csv(
            request.out / "guarantees.csv", [row for case, several in held for row in guarantee_rows(case, several)]
        )
    figures, problem = _figures(request, boards, runs)
    contents = ComparisonReportContents(
        boards=boards,
        figures=figures,
        guarantees=coverage_summary(held),
        skipped=[(run.job.name, run.reason) for run in skipped],
        notes=[*own_costs(runs), *_cautions(boards), *([problem] if problem else [])],
        provenance=[
            *provenance(),
            ("Runs", f"{len(runs)} of {len(request.jobs)}"),
            ("Settings", _setting_rows(request)),
        ],
    )
    for table in contents.tables():
        write_bytes_whole(request.out / "tables" / f"{table.name}.md", table.markdown().encode())
        write_bytes_whole(request.out / "tables" / f"{table.name}.csv", table.csv().encode())
    write_report(request.out / "report.html", contents)
    return problem


def _figures(
    request: "CompareRequest", boards: "Sequence[Leaderboard]", runs: "Sequence[JudgedRun]"
) -> "tuple[list[Drawn], str]":
    from suffice_research.compare.comparison_report import draw_comparison
    from suffice_research.compare.scoring import curves

    points = curves([score for run in runs for score in run.scores])
    try:
        return draw_comparison(boards, points, request.out / "figures"), ""
    except MissingExtraError as error:
        return [], f"There are no figures: {error}"


#: Prefixes of the names of files of this command.
_TABLES = ("runs", "leaderboard-", "by-data-", "by-variation-", "guarantees", "chosen-", "settings-")
_FIGURES = ("regret-", "labels-", "stops-")


def _clear(out: Path) -> None:
    """Remove tables and figures of an earlier command with other runs, to avoid confusion with the new ones."""
    for folder, names, endings in (("tables", _TABLES, (".md", ".csv")), ("figures", _FIGURES, (".png", ".pdf"))):
        for path in (out / folder).iterdir():
            if path.name.startswith(names) and path.suffix in endings:
                path.unlink(missing_ok=True)
    for name in ("guarantees.csv", "leaderboard.csv", "report.html"):
        (out / name).unlink(missing_ok=True)


def _setting_rows(request: "CompareRequest") -> str:
    """Settings of the runs; varied settings with all their values."""
    used = list(dict.fromkeys(job.setting for job in request.jobs))
    words = {
        "labels": "labels at most",
        "initial": "drawn at random at the start",
        "pool": "rows to label from at most",
        "test": "rows to test on at most",
        "stop_set": "items of the stop set at most",
        "validation": "labels for rules that validate at most",
    }
    phrases = [f"{_values(getattr(setting, name) for setting in used)} {what}" for name, what in words.items()]
    phrases += [f"label noise {_values(setting.noise for setting in used)}"]
    shares = [setting.imbalance for setting in used if setting.imbalance is not None]
    phrases += [f"share of the rarest class {_values(shares)}"] if shares else []
    return "; ".join(phrases)


def _values(values: Any) -> str:
    return ", ".join(f"{value:g}" for value in dict.fromkeys(values))


def own_costs(judged_runs: "Sequence[JudgedRun]") -> list[str]:
    """Stops on the user's tables with the default costs of ``suffice run``, one sentence per table."""
    groups: dict[tuple[str, str], list[DefaultStop]] = {}
    for run in judged_runs:
        if run.default_stop is not None:
            groups.setdefault((run.case.data, run.case.model), []).append(run.default_stop)
    sentences = []
    for (data, model), stops in groups.items():
        runs = "1 run" if len(stops) == 1 else f"{len(stops)} runs"
        wrong = "wrong prediction among the other rows" if stops[0].share else "other row no better than by the mean"
        rule, best = (
            f"{min(labels)}" if min(labels) == max(labels) else f"{min(labels)} to {max(labels)}"
            for labels in ([stop.labels for stop in stops], [stop.best for stop in stops])
        )
        counted = f"counting 1 for a label and 1 for each {wrong}, as suffice run does"
        sentences.append(
            f"{Path(data).name}, {model}, {runs} with {stops[0].pool} rows to label, {counted}: LabelWorth stops at "
            f"{rule} labels, the best stop in hindsight was at {best}."
        )
    return sentences


def tell(
    request: "CompareRequest",
    boards: "Sequence[Leaderboard]",
    runs: "Sequence[JudgedRun]",
    problem: str,
    console: Console,
) -> None:
    """Print the leaderboards, the meaning of regret, and the path of the report."""
    from suffice_research.compare.comparison_report import MARK, REFERENCES, REGRET, leaderboard_table, marked

    references = [marked(rule) for rule in REFERENCES]
    for board in boards:
        show_board(console, leaderboard_table(board, every=request.all_settings), references)
    console.print(f"{REGRET} {MARK} marks references, which look at no model.")
    if not request.all_settings:
        console.print("Each rule is shown in the way to set it that did best; --all-settings shows them all.")
    for note in (*own_costs(runs), *_unmatched(request, boards), *_cautions(boards)):
        console.print(note, markup=False)
    if problem:
        typer.echo(f"suffice: {problem[0].lower()}{problem[1:]}", err=True)
    counted = "1 run" if len(runs) == 1 else f"{len(runs)} runs"
    console.print(f"{counted}; read {escape(str(request.out / 'report.html'))}")


def _unmatched(request: "CompareRequest", boards: "Sequence[Leaderboard]") -> list[str]:
    """Requested rules that could not be applied to any run."""
    there = {row["rule"] for board in boards for row in board.ranked}
    missing = [rule for rule in request.rules if rule not in there] if request.rules_named else []
    needs = "need what these runs do not have (classes, or numbers)"
    return [f"Left out: {', '.join(missing)}, which {needs}."] if missing else []


def _cautions(boards: "Sequence[Leaderboard]") -> list[str]:
    """Cautions about the leaderboards."""
    from suffice_research.recommendation.compared_rules import MADE_ON

    runs = [row for board in boards for row in board.rows]
    own = sorted({row["data"] for row in runs if row["rule"] == "LabelWorth"} & MADE_ON)
    sentences = []
    if own:
        sentences.append(
            f"The constants of LabelWorth were fixed on {', '.join(own)}: how it does there is no test of it."
        )
    models = {model: {row["data"] for row in runs if row["model"] == model} for model in {r["model"] for r in runs}}
    alone = sorted(model for model, data in models.items() if len(data) == 1)
    if alone:
        sentences.append(
            f"With one data set for {', '.join(alone)} no threshold could be chosen on another: rules with a threshold "
            "are at their default there, and only rules that are told the costs are set for them."
        )
    return sentences
