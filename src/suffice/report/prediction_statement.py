"""The statement about predictions that were made elsewhere: a page to print."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import suffice
from suffice.errors import SufficeError
from suffice.presentation.given_words import (
    answer_way_sentence,
    check_words,
    covered_sentence,
    group_rows,
    groups_sentence,
    not_covered_by_check,
)
from suffice.presentation.text_format import count, percent, percent_at_least, shortened, utc_time
from suffice.project.events import moment
from suffice.project.prediction_results import changed_error, check_result
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
    change = changed_error(checks)
    columns = ", ".join(settings.checked.columns)
    data = shortened(settings.source or settings.name, 120)
    return PredictionStatement(
        title=f"Statement about the predictions in {shortened(settings.name, 80)}",
        checks=[_part(project, ended[first], several=len(ended) > 1) for first in sorted(ended)],
        change="" if change is None else str(change),
        not_covered=not_covered_by_check(settings.checked.answer),
        about=[
            ("Data", f"{data}, {project.size:,} rows"),
            ("Predictions", f"column {shortened(columns, 120)}"),
            ("Digest of the file, SHA-256", str(project.made_with.get("digest", "not known"))),
            ("Made with", f"suffice {suffice.__version__}"),
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
    result = check_result(project, check).to_dict()
    # Groups are in a table.
    words: dict[str, Any] = check_words({**result, "groups": {}}, result["rows"])
    first, *rest = words["sentences"]
    draw = check.draw
    heading = "What is guaranteed" if result["guaranteed"] else "What was found"
    if several:
        heading = f"Rows {draw.asked.first_item + 1:,} to {draw.before.size:,}"
    sure = percent_at_least(result["confidence_level"])
    facts = [
        f"Random check number {draw.spends_as} of these rows{_elsewhere(project, check)}, started on "
        f"{utc_time(moment(draw.at))} by {shortened(draw.person, 60)}. {count(result['rows'], 'row')} had no answer "
        "then.",
        f"{result['checked']:,} rows were drawn at random and answered.",
        answer_way_sentence(result["answer"]),
        f"Confidence: {sure}. By bad luck in the draw the statement can be false; the probability of this is at most "
        f"{percent(1.0 - result['confidence_level'])}, for any data and any predictions.",
        covered_sentence(draw.asked.first_item, draw.before.size, result["rows"]),
    ]
    return CheckPart(heading, first, rest, group_rows(result), facts, result["guaranteed"], groups_sentence(result))
