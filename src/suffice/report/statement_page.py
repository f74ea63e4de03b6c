"""The statement about a finished data set: a page to print, for readers who did not take part in the labelling."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import suffice
from suffice.presentation.statement_words import (
    check_facts,
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

if TYPE_CHECKING:
    from suffice.project.labelling_project import Project
    from suffice.project.project_check import ProjectCheck
    from suffice.project.state import LabelledItem
    from suffice.session.finish import FinalLabels

#: People who are shown one by one; more are shown together.
_MOST_PEOPLE: Final = 12


class SourceRow(NamedTuple):
    """A row of the table of sources.

    Attributes:
        name: Name of the source in the final file.
        meaning: Description of the source.
        rows: Number of rows.
        share: Their share of all rows with a label.
        wrong: How many of them may be wrong.
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
        people: Who labelled.
        not_covered: What is not covered.
        about: Names and values about the files.
    """

    title: str
    statement: str
    sure: list[str]
    facts: list[str]
    sources: list[SourceRow]
    people: list[PersonRow]
    not_covered: list[str]
    about: list[tuple[str, str]]


def statement_page(project: "Project", final: "FinalLabels") -> str:
    """The statement as a self-contained HTML page.

    Args:
        project: The project.
        final: Its final labels.

    Raises:
        MissingExtraError: Jinja2 is not installed.
    """
    contents = statement_contents(project, final)
    return rendered("statement.html.jinja", statement=contents)


def statement_contents(project: "Project", final: "FinalLabels") -> StatementContents:
    """Collect the contents of the page.

    Args:
        project: The project.
        final: Its final labels.
    """
    with project.lock:
        labelled, checks, settings = project.state().labelled(), project.checks(), project.settings
    proof = final.guarantee.proof
    # Values of a saved proof that are not stated are left out.
    told = {**final.guarantee.to_dict(), "proof": None if proof is None else asdict(proof)}
    check = _check_of(checks, told)
    given_up = 0 if check is None else sum(each.number < check.number and each.guarantee is None for each in checks)
    data = settings.source or settings.name
    facts = check_facts(
        told,
        started="" if check is None else moment(check.draw.at),
        by="" if check is None else shortened(check.draw.person, 60),
        given_up=given_up,
    )
    covered = project.size if check is None else check.draw.before.size
    about = [
        ("Data", f"{shortened(data, 120)}, {len(final.labels):,} rows"),
        ("Column that was labelled", shortened(settings.target, 120)),
        ("Goal", f"at most {percent(told['at_most'])} of all labels wrong"),
        ("Final file as CSV, SHA-256", final_digest(project, final)),
        ("Made with", f"suffice {suffice.__version__}"),
    ]
    if check is not None:
        about.insert(3, ("Model", f"{described_model(check.draw.model)}, at {count(check.n_labelled, 'label')}"))
    return StatementContents(
        title=f"Statement about the labels of {shortened(settings.name, 80)}",
        statement=guaranteed_sentence(told),
        sure=[people_sentence(told), *confidence_sentences(told)],
        facts=facts,
        sources=_sources(final, told),
        people=_people(labelled, final),
        not_covered=not_covered(told, added=project.size - covered, data=shortened(data, 80)),
        about=about,
    )


def _check_of(checks: "list[ProjectCheck]", told: dict[str, Any]) -> "ProjectCheck | None":
    proof = told.get("proof")
    return None if proof is None else next((each for each in checks if each.number == proof["number"]), None)


def _sources(final: "FinalLabels", told: dict[str, Any]) -> list[SourceRow]:
    """Rows by source, and all rows."""
    rows = max(1, told["rows"])
    predicted = min(told["predicted"], told["allowed"])
    meant = same = "counted as right"
    if told.get("annotator_error"):
        # The wrong labels of people are rounded up once, for both sources together.
        in_check = " of both" if final.source.count("check") else ""
        meant, same = f"at most {told['wrong_at_most'] - predicted:,}{in_check}, as stated", "see above"
    named = [
        ("person", "labelled by a person", meant),
        ("check", "labelled by a person in the random check", same),
        ("model", "predicted by the model", f"at most {predicted:,}"),
    ]
    found = [
        SourceRow(name, meaning, number, percent(number / rows), wrong)
        for name, meaning, wrong in named
        if (number := final.source.count(name))
    ]
    return [
        *found,
        SourceRow("", "all labels", told["rows"], percent(told["rows"] / rows), f"at most {told['wrong_at_most']:,}"),
    ]


def _people(labelled: "list[LabelledItem]", final: "FinalLabels") -> list[PersonRow]:
    """Who gave the labels of people, those with the most first; people after the first ones are counted together."""
    by_name: dict[str, list[LabelledItem]] = {}
    for each in labelled:
        if each.item < len(final.source) and final.source[each.item] in ("person", "check"):
            by_name.setdefault(each.person, []).append(each)
    ordered = sorted(by_name.items(), key=lambda each: (-len(each[1]), each[0]))
    rows = [_person(shortened(name, 60), given, final) for name, given in ordered[:_MOST_PEOPLE]]
    others = ordered[_MOST_PEOPLE:]
    if others:
        together = [each for _, given in others for each in given]
        rows.append(_person(f"{len(others):,} other people", together, final))
    return rows


def _person(name: str, given: "list[LabelledItem]", final: "FinalLabels") -> PersonRow:
    times = [each.at for each in given]
    in_check = sum(final.source[each.item] == "check" for each in given)
    return PersonRow(name, len(given), in_check, utc_time(moment(min(times))), utc_time(moment(max(times))))
