"""The statement about a finished data set: a page to print, for readers who did not take part in the labelling."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import suffice
from suffice.presentation.goal_words import goal_words
from suffice.presentation.statement_words import (
    check_facts,
    class_words,
    confidence_sentences,
    guaranteed_sentence,
    not_covered,
    people_sentence,
)
from suffice.presentation.text_format import count, percent, shortened, utc_time
from suffice.project.events import moment
from suffice.project.final_files import final_digest
from suffice.project.settings import described_model
from suffice.report.html_page import rendered
from suffice.session.finish import CHECK, MODEL, PERSON

if TYPE_CHECKING:
    from suffice.project.data_set_goal import ProjectLabels
    from suffice.project.labelling_project import Project

#: People who are shown one by one; more are shown together.
_MOST_PEOPLE: Final = 12


class SourceRow(NamedTuple):
    """A row of the table of sources.

    Attributes:
        name: Name of the source in the final file.
        meaning: Description of the source.
        rows: Number of rows.
        share: Their share of all rows with a label.
        wrong: How many of them may be wrong; in a screening, how many are of the class.
    """

    name: str
    meaning: str
    rows: int
    share: str
    wrong: str


class PersonRow(NamedTuple):
    """A row of the table of people: name, number of labels, how many of them in the check, first and last label."""

    name: str
    labels: int
    in_check: int
    first: str
    last: str


@dataclass(frozen=True, eq=False)
class StatementContents:
    """Contents of the page.

    Attributes:
        title: Title of the page.
        statement: What is guaranteed.
        sure: How sure it is, and how labels of people count.
        facts: How it was checked.
        sources: Number of rows by source.
        counted: What the last column of these counts.
        people: Who labelled.
        not_covered: What is not covered.
        about: Names and values about the files.
    """

    title: str
    statement: str
    sure: list[str]
    facts: list[str]
    sources: list[SourceRow]
    counted: str
    people: list[PersonRow]
    not_covered: list[str]
    about: list[tuple[str, str]]


def statement_page(project: "Project", final: "ProjectLabels") -> str:
    """The statement as a self-contained HTML page.

    Args:
        project: The project.
        final: Its final labels.

    Raises:
        MissingExtraError: Jinja2 is not installed.
    """
    contents = statement_contents(project, final)
    return rendered("statement.html.jinja", statement=contents)


def statement_contents(project: "Project", final: "ProjectLabels") -> StatementContents:
    """Collect the contents of the page.

    Args:
        project: The project.
        final: Its final labels.
    """
    with project.lock:
        checks, settings = project.checks(), project.settings
    column = final.reached.column
    proof, check = final.guarantee.proof, final.reached.check
    # Values of a saved proof that are not stated are left out.
    told = {**final.guarantee.to_dict(), "proof": None if proof is None else asdict(proof)}
    screening = "class_name" in told
    given_up = 0 if check is None else sum(each.number < check.number and each.guarantee is None for each in checks)
    data = settings.source or settings.name
    # Rows that were added since the check are at the end.
    covered = len(final.labels) - final.reached.added
    facts = check_facts(
        told,
        started="" if check is None else moment(check.draw.at),
        by="" if check is None else shortened(check.draw.person, 60),
        given_up=given_up,
        merged=check is not None and check.classes_since == "merged",
        column=column,
    )
    about = [
        ("Data", f"{shortened(data, 120)}, {count(covered, 'row')}"),
        ("Column that was labelled", shortened(settings.target, 120)),
        ("Goal", goal_words(told["at_most"], told.get("tolerance"), class_name=told.get("class_name"))),
        ("Final file as CSV, SHA-256", final_digest(project, final)),
        ("Made with", f"suffice {suffice.__version__}"),
    ]
    if column is not None:
        about.insert(3, ("Predictions", f"column {shortened(column, 120)}"))
    elif check is not None:
        about.insert(3, ("Model", f"{described_model(check.draw.model)}, at {count(check.n_labelled, 'label')}"))
    return StatementContents(
        title=f"Statement about the labels of {shortened(settings.name, 80)}",
        statement=guaranteed_sentence(told),
        sure=[people_sentence(told, seen=final.reached.seen), *confidence_sentences(told)],
        facts=facts,
        sources=_found_sources(final, covered, told) if screening else _sources(final.source[:covered], told, column),
        counted=class_words(told) if screening else "wrong among them",
        people=_people(final, covered),
        not_covered=not_covered(told, added=final.reached.added, data=shortened(data, 80)),
        about=about,
    )


def _sources(source: list[str], told: dict[str, Any], column: str | None) -> list[SourceRow]:
    """Rows by source, and all rows."""
    rows = max(1, told["rows"])
    predicted = min(told["predicted"], told["allowed"])
    meant = same = "counted as right"
    if told.get("annotator_error"):
        # The wrong labels of people are rounded once, for both sources together.
        in_check = ", those of the check included" if source.count(CHECK) else ""
        meant, same = f"at most {told['wrong_at_most'] - predicted:,}{in_check}", "included above"
    predicted_by = "predicted by the model"
    if column is not None:
        predicted_by = f"prediction of column {shortened(column, 60)}"
    named = [
        (PERSON, "labelled by a person", meant),
        (CHECK, "labelled by a person in the random check", same),
        (MODEL, predicted_by, f"at most {predicted:,}"),
    ]
    found = [
        SourceRow(name, meaning, number, percent(number / rows), wrong)
        for name, meaning, wrong in named
        if (number := source.count(name))
    ]
    return [
        *found,
        SourceRow("", "all labels", told["rows"], percent(told["rows"] / rows), f"at most {told['wrong_at_most']:,}"),
    ]


def _found_sources(final: "ProjectLabels", covered: int, told: dict[str, Any]) -> list[SourceRow]:
    """Rows of a screening by source, and all rows, with the numbers of those of the class."""
    rows, missed = max(1, told["rows"]), f"at most {told['missed_at_most']:,}"
    source, name = final.source[:covered], told["class_name"]
    found = {
        each: sum(given == each and str(label) == name for label, given in zip(final.labels, source, strict=False))
        for each in (PERSON, CHECK)
    }
    named = [
        (PERSON, "read by a person", f"{found[PERSON]:,}, found"),
        (CHECK, "read by a person in the random check", f"{found[CHECK]:,}, found"),
        (MODEL, "read by nobody; the label is predicted by the model", f"{missed}, missed"),
    ]
    counted = [
        SourceRow(each, meaning, number, percent(number / rows), words)
        for each, meaning, words in named
        if (number := source.count(each))
    ]
    everything = f"{told['found']:,} found, {missed} missed"
    return [*counted, SourceRow("", "all rows", told["rows"], percent(told["rows"] / rows), everything)]


def _people(final: "ProjectLabels", covered: int) -> list[PersonRow]:
    """Who gave the labels of people, those with the most first; people after the first ones are counted together."""
    by_name: dict[str, list[int]] = {}
    for item, (name, source) in enumerate(zip(final.person[:covered], final.source[:covered], strict=True)):
        if source in (PERSON, CHECK):
            by_name.setdefault(name, []).append(item)
    ordered = sorted(by_name.items(), key=lambda each: (-len(each[1]), each[0]))
    rows = [_person(shortened(name, 60), items, final) for name, items in ordered[:_MOST_PEOPLE]]
    others = ordered[_MOST_PEOPLE:]
    if others:
        name = f"{len(others):,} other {'person' if len(others) == 1 else 'people'}"
        rows.append(_person(name, [item for _, items in others for item in items], final))
    return rows


def _person(name: str, items: list[int], final: "ProjectLabels") -> PersonRow:
    # Times in ISO format are ordered like texts.
    times, in_check = [final.at[item] for item in items], sum(final.source[item] == CHECK for item in items)
    return PersonRow(name, len(items), in_check, utc_time(min(times)), utc_time(max(times)))
