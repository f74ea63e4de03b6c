"""``suffice run --of all``: a labelled table is labelled again until a goal for all of its labels is guaranteed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer
from rich.console import Console
from threadpoolctl import threadpool_limits

from suffice.checks import ScreeningGuarantee
from suffice.cli.goal_options import GoalOptions, require_no_rule
from suffice.cli.json_output import print_json
from suffice.cli.rule_options import RuleOptions, share_of
from suffice.cli.table_run import RunRequest, TableJob, checked_output, class_named, labelling_bar, read_job
from suffice.errors import InvalidValueError, SufficeError
from suffice.files import require_writable, write_whole
from suffice.models.factory import MODEL_FAMILIES, model_description
from suffice.presentation.finish_words import finished_run_sentences, model_switch_sentence
from suffice.session.goals import Goal, checked_goal
from suffice.tables.file_reader import read_columns, table_format
from suffice.tables.file_writer import Column, finite_cells
from suffice.tables.final_writer import encoded_final, final_columns, final_format
from suffice.tables.table_columns import TableColumns
from suffice.tables.table_formats import FINAL_FORMATS, TYPED_FORMATS, FinalFormat, usual_endings
from suffice.tables.typed_cells import extended_parquet, parquet_cells, with_number_columns

if TYPE_CHECKING:
    from suffice.learner.goal_run import FinishedRun

#: Columns that the final file adds to those of the table.
_ADDED: Final = ("label", "source", "probability")
_ROWS_AT_A_TIME: Final = 10_000


@dataclass(frozen=True, kw_only=True)
class FinishOptions(GoalOptions):
    """Options of ``suffice run`` about a goal for all labels."""

    final: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --of all: where to write all rows with their final labels, a name that ends in "
            f"{usual_endings(FINAL_FORMATS)}.",
            show_default=False,
        ),
    ] = None

    def goal(self, at_most: str | None, positive: str | None = None) -> Goal:
        """The goal.

        Args:
            at_most: What ``--at-most`` says.
            positive: The name of the class that is looked for, in a screening.

        Raises:
            InvalidValueError: A number is missing or out of range.
        """
        share = share_of(at_most, "--at-most")
        given = self.arguments(share, screens=positive is not None)
        costs = given.get("annotator_error", 0.0), given.get("correction_cost", 1.0)
        return checked_goal("all", share, *costs, class_name=positive)


class _Finished(NamedTuple):
    """A finished table: the job, the goal and the run."""

    job: TableJob
    goal: Goal
    run: "FinishedRun"

    def about(self) -> dict[str, Any]:
        """The result as JSON values."""
        guarantee = self.run.final.guarantee
        values = {
            "task": self.job.table.kind,
            "model": self._model_name(-1),
            "models": [{**used._asdict(), "name": self._model_name(k)} for k, used in enumerate(self.run.models)],
            "at_most": self.goal.at_most,
            "of": "all",
            **self._proven(),
            "rows": guarantee.rows,
            "labelled_by_people": guarantee.by_people,
            "in_check": self.run.in_check,
            "predicted": guarantee.predicted,
            "confidence_level": guarantee.confidence,
            "guarantee": guarantee.to_dict(),
            "planned": [planned._asdict() for planned in self.run.planned],
        }
        return {**values, "sentences": finished_run_sentences(values), "notes": list(self.job.table.notes)}

    def _model_name(self, k: int) -> str:
        """The name of a model of the run, as --model has it."""
        return self.run.models[k].name if self.job.name == "auto" else self.job.name

    def _proven(self) -> dict[str, Any]:
        """What is guaranteed and what is true, as JSON values."""
        guarantee, run = self.run.final.guarantee, self.run
        if isinstance(guarantee, ScreeningGuarantee):
            return {
                "positive": guarantee.class_name,
                "guaranteed": guarantee.reached,
                "found": guarantee.found,
                "missed_at_most": guarantee.missed_at_most,
                "recall_at_least": guarantee.recall_at_least,
                "true_missed": run.true_wrong,
                "true_recall": 1.0 - run.true_share,
            }
        return {
            "tolerance": guarantee.tolerance,
            "annotator_error": self.goal.annotator_error,
            "correction_cost": self.goal.answer_cost,
            "guaranteed": guarantee.reached,
            "wrong_at_most": guarantee.wrong_at_most,
            "true_wrong": run.true_wrong,
        }


def finish_table(
    request: RunRequest,
    given: FinishOptions,
    positive: str | None = None,
    *,
    acquisition: str | None,
    batch: int | None,
) -> None:
    """Simulate the labelling of a table until the goal is guaranteed, and print and write the result.

    Args:
        request: The request.
        given: Options about the goal.
        positive: The name of the class that is looked for, in a screening.
        acquisition: Which row next, or None.
        batch: Labels at each step, or None.

    Raises:
        InvalidValueError: An option cannot be used.
        SufficeError: The file cannot be written.
    """
    goal = given.goal(request.rule.at_most, positive)
    _require_fitting(request)
    tolerance = request.rule.tolerance
    request = replace(request, rule=RuleOptions(), to_goal=True, screens=positive is not None)
    output = checked_output(request)
    if given.final is not None:
        _require_final(given.final, request.table.data)
    # Brings scikit-learn, which a wrong option need not wait for; only loaded libraries can be limited to a thread.
    from suffice.learner.goal_run import finished_run

    with threadpool_limits(limits=1):
        job = read_job(request, output.console)
        class_name = None if positive is None else class_named(positive, job, request.table.target)
        _require_tolerance(job, tolerance)
        with labelling_bar(output.console) as progress:
            run = finished_run(
                job.model,
                job.pool_features,
                job.pool_labels,
                goal.at_most,
                tolerance=tolerance,
                annotator_error=goal.annotator_error,
                correction_cost=goal.answer_cost,
                acquisition=acquisition,
                random_share=request.random_share,
                initial=request.initial,
                batch=batch,
                seed=request.seed,
                positive=class_name,
                progress=progress,
            )
    found = _Finished(job, goal, run)
    names = {} if given.final is None else _write_final(given.final, request.table.data, found)
    _show(output.console, found, given.final)
    for usual, name in names.items():
        if usual != name:
            said = f"The column {usual} is named {name}, because the table has a column {usual}."
            output.console.print(said, markup=False)
    if request.as_json:
        print_json("run", {**found.about(), "final": None if given.final is None else str(given.final)})


def _require_fitting(request: RunRequest) -> None:
    """Raise an error for options that do not apply to a goal for all labels."""
    others = ["--figure"] if request.output.figure is not None else []
    others += ["--save"] if request.output.save is not None else []
    require_no_rule(request.rule, others)


def _require_tolerance(job: TableJob, tolerance: float | None) -> None:
    """Raise an error if numbers have no tolerance, or classes have one."""
    if job.table.kind == "classification" and tolerance is not None:
        raise InvalidValueError("--tolerance is for numbers, and the target is a class; leave it out")
    if job.table.kind == "regression" and tolerance is None:
        raise InvalidValueError(
            "--of all for numbers needs --tolerance, the largest error that is not wrong, in units of the target"
        )


def _require_final(path: Path, data: Path) -> None:
    """Raise an error before the run if the final file cannot be written."""
    final_format(path)
    try:
        require_writable(path, "the final labels")
        # The administrator may write to every folder, but not to every file system.
        TemporaryFile(dir=path.absolute().parent).close()
    except SufficeError as error:
        raise InvalidValueError(str(error)) from None
    except OSError as error:
        raise InvalidValueError(f"the final labels cannot be saved to {path}: {error.strerror}") from None
    if data.is_file() and path.exists() and path.samefile(data):
        raise InvalidValueError(f"--final {path} is the table itself; give another name")


def _write_final(path: Path, data: Path, found: _Finished) -> dict[str, str]:
    """Write all rows of the table in their order, with the final labels; rows without a target have none.

    Returns:
        The names of the added columns: a number is appended if the table has a column with that name.
    """
    table, final = read_columns(data), found.run.final
    probability = finite_cells(final.probability)
    added: dict[int, tuple[Any, ...]] = {}
    for place, row in enumerate(found.job.table.rows[found.job.pool].tolist()):
        added[row] = final.labels[place], final.source[place], probability[place]
    columns = final_columns(table.names, numbers=found.job.table.kind == "regression", added=_ADDED)
    new = [added.get(row, (None, None, None)) for row in range(len(table))]
    content = _final_content(data, table, columns, new, final_format(path))

    def write(part: Path) -> None:
        part.write_bytes(content)

    write_whole(path, write)
    return {usual: column.name for usual, column in zip(_ADDED, columns[-len(_ADDED) :], strict=True)}


def _final_content(
    data: Path, table: TableColumns, columns: Sequence[Column], new: Sequence[tuple[Any, ...]], format: FinalFormat
) -> bytes:
    """The final file: the cells of the table, and those of the added columns."""
    own, names = len(table.names), table.names
    typed = format in TYPED_FORMATS and table_format(data) == "parquet"
    if typed and format == "parquet":
        return extended_parquet(data, names, columns[own:], new)
    cells: Iterable[Sequence[Any]] = zip(*parquet_cells(data, names), strict=True) if typed else table.cells()
    rows = [(*row, *last) for row, last in zip(cells, new, strict=True)]
    chunks = [rows[k : k + _ROWS_AT_A_TIME] for k in range(0, len(rows), _ROWS_AT_A_TIME)]
    if format in TYPED_FORMATS and not typed:
        columns = [*with_number_columns(columns[:own], chunks), *columns[own:]]
    return encoded_final(columns, chunks, format, added=len(_ADDED))


def _show(console: Console, found: _Finished, final: Path | None) -> None:
    """Print the result."""
    first, *others = finished_run_sentences(found.about())
    console.print(f"\n{first}", style="bold", markup=False)
    for sentence in others:
        console.print(sentence, markup=False)
    for used in found.run.models[1:]:
        name = model_description(used.name) if used.name in MODEL_FAMILIES else used.name
        console.print(model_switch_sentence(name, used.n_labelled), markup=False)
    if final is not None:
        console.print(f"All rows with their final labels: {final}", markup=False)
