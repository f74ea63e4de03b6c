"""The statement about predictions that were made elsewhere: a page to print."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import suffice
from suffice.checks.prediction_check import PredictionResult
from suffice.errors import SufficeError
from suffice.presentation.given_words import (
    answer_way_sentence,
    check_words,
    covered_sentence,
    group_rows,
    groups_sentence,
    not_covered_by_check,
    rows_words,
)
from suffice.presentation.text_format import count, percent, percent_at_least, shortened, utc_time, was_or_were
from suffice.project.events import EventKind, moment
from suffice.project.prediction_results import batch_change, check_result
from suffice.report.html_page import rendered

if TYPE_CHECKING:
    from suffice.project.labelling_project import Project
    from suffice.project.project_check import ProjectCheck


@dataclass(frozen=True, eq=False)
class CheckPart:
    """What one check has shown.

    Attributes:
        heading: Which rows it is about.
        statement: What is guaranteed.
        sentences: Further sentences.
        groups: Rows of the table of groups.
        facts: How it was checked.
        proven: Whether it has proven what was asked for.
        together: How the bounds of groups and the target belong together.
    """

    heading: str
    statement: str
    sentences: list[str]
    groups: list[tuple[str, ...]]
    facts: list[str]
    proven: bool
    together: str = ""


@dataclass(frozen=True, eq=False)
class PredictionStatement:
    """Contents of the page.

    Attributes:
        title: Title of the page.
        checks: The checks that have ended, the newest of each batch of rows, the first batch first.
        change: Whether the error has changed between batches; empty if it is not known.
        not_covered: What is not covered.
        about: Names and values about the data.
    """

    title: str
    checks: list[CheckPart]
    change: str
    not_covered: list[str]
    about: list[tuple[str, str]]


def prediction_statement(project: "Project") -> str:
    """The statement as a self-contained HTML page.

    Args:
        project: A project that checks predictions made elsewhere.

    Raises:
        SufficeError: No check has ended, or the project has a model.
        MissingExtraError: Jinja2 is not installed.
    """
    if project.settings.checked is None:
        raise SufficeError("this project has a model of its own; suffice report describes its results")
    if project.settings.goal is not None:
        from suffice.report.statement_page import statement_page

        return statement_page(project, project.final_labels())
    return rendered("predictions.html.jinja", statement=statement_contents(project))


def statement_contents(project: "Project") -> PredictionStatement:
    """Collect the contents of the page.

    Raises:
        SufficeError: No check has ended.
    """
    settings, checks = project.settings, project.checks()
    assert settings.checked is not None
    ended: dict[int, ProjectCheck] = {}
    for check in checks:
        if check.state == "complete":
            ended[check.draw.asked.first_item] = check
    if not ended:
        raise SufficeError("no check has ended, so there is nothing to state yet; answer the rows of the check first")
    change = batch_change(project)
    data = shortened(settings.source or settings.name, 120)
    return PredictionStatement(
        title=f"Statement about the predictions in {shortened(settings.name, 80)}",
        checks=[_part(project, ended[first], several=len(ended) > 1) for first in sorted(ended)],
        change="" if change is None else " ".join(change["sentences"]),
        not_covered=not_covered_by_check(settings.checked.answer),
        about=[
            *_about(
                data, project.n_items_made, settings.checked.columns, str(project.made_with.get("digest", "not known"))
            ),
            *_added(project),
        ],
    )


def _elsewhere(project: "Project", check: "ProjectCheck") -> str:
    """How many of the earlier checks of these rows were stated to have been made elsewhere."""
    first = check.draw.asked.first_item
    of_these = [each for each in project.checks() if each.draw.asked.first_item == first]
    here = sum(each.number <= check.number for each in of_these)
    elsewhere = check.draw.spends_as - here
    if elsewhere > 0:
        return f" ({here:,} in this project, and {elsewhere:,} before it, as stated by those who started them)"
    return " (no check outside this project was stated)" if check.draw.spends_as == 1 else ""


def _part(project: "Project", check: "ProjectCheck", *, several: bool) -> CheckPart:
    result, draw = check_result(project, check).to_dict(), check.draw
    heading = None
    if several:
        heading = rows_words(draw.asked.first_item, draw.before.size).capitalize()
    facts = [
        f"Random check number {draw.spends_as} of these rows{_elsewhere(project, check)}, started on "
        f"{utc_time(moment(draw.at))} by {shortened(draw.person, 60)}. {count(result['rows'], 'row')} had no answer "
        "then.",
        f"{_drawn(result['checked'])} at random and answered.",
        answer_way_sentence(result["answer"]),
        _confidence_fact(result),
        covered_sentence(draw.asked.first_item, draw.before.size, result["rows"]),
    ]
    return _result_part(result, facts, heading)


def _result_part(result: dict[str, Any], facts: list[str], heading: str | None = None) -> CheckPart:
    # Groups are in a table.
    first, *rest = check_words({**result, "groups": {}}, result["rows"])["sentences"]
    if heading is None:
        heading = "What is guaranteed" if result["guaranteed"] else "What was found"
    return CheckPart(heading, first, rest, group_rows(result), facts, result["guaranteed"], groups_sentence(result))


def _confidence_fact(result: dict[str, Any]) -> str:
    return (
        f"Confidence: {percent_at_least(result['confidence_level'])}. By bad luck in the draw the statement can be "
        f"false; the probability of this is at most {percent(1.0 - result['confidence_level'])}, for any data and any "
        "predictions."
    )


def known_statement(  # noqa: PLR0913 - all but one by keyword
    result: PredictionResult, *, source: str, digest: str, truth: str, drawn: bool, earlier_checks: int = 0
) -> str:
    """The statement about predictions whose answers were in the file, as a self-contained HTML page.

    Args:
        result: The result of a check that has ended.
        source: Name of the file.
        digest: Digest of the file.
        truth: Column of the answers.
        drawn: Whether all rows have an answer, so that the check was drawn now; otherwise the rows with an answer are
            the sample.
        earlier_checks: Number of checks of the same rows before, as stated by the caller.

    Raises:
        MissingExtraError: Jinja2 is not installed.
    """
    told, name = result.to_dict(), shortened(truth, 60)
    how = f"{_drawn(told['checked'])} at random, and answered from column {name!r} of the file."
    if not drawn:
        how = (
            f"The {told['checked']:,} rows with an answer in column {name!r} are the sample. suffice did not draw it. "
            "The statement holds if these rows were drawn at random from all rows, their number was fixed before "
            "anybody saw an answer, and none was left out because nobody could answer it."
        )
    facts = [
        f"Random check number {earlier_checks + 1} of these rows, as stated by those who started it.",
        how,
        "How people answered, and whether they saw the predictions, is not known to suffice.",
        _confidence_fact(told),
        covered_sentence(0, told["rows"], told["rows"]),
    ]
    statement = PredictionStatement(
        title=f"Statement about the predictions in {shortened(source, 80)}",
        checks=[_result_part(told, facts)],
        change="",
        not_covered=not_covered_by_check(told["answer"]),
        about=_about(shortened(source, 120), told["rows"], list(result.wrong), digest),
    )
    return rendered("predictions.html.jinja", statement=statement)


def _added(project: "Project") -> list[tuple[str, str]]:
    """Names and values about the files whose rows were added later."""
    said = []
    for event in project.events():
        if event.kind is EventKind.items_added:
            first, number = int(event.data["first"]), int(event.data["count"])
            name = shortened(str(event.data.get("source", "not known")), 120)
            rows = f"{count(number, 'row')}, {rows_words(first, first + number)}"
            digest = event.data.get("digest", "not known")
            said += [("Added later", f"{name}, {rows}"), (f"Digest of {name}, SHA-256", str(digest))]
    return said


def _about(source: str, rows: int, columns: Sequence[str], digest: str) -> list[tuple[str, str]]:
    """Names and values about the data."""
    return [
        ("Data", f"{source}, {count(rows, 'row')}"),
        ("Predictions", f"column {shortened(', '.join(columns), 120)}"),
        ("Digest of the file, SHA-256", digest),
        ("Made with", f"suffice {suffice.__version__}"),
    ]


def _drawn(rows: int) -> str:
    return f"{count(rows, 'row')} {was_or_were(rows)} drawn"
