"""The report of a labelling project: one self-contained HTML page."""

import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from statistics import median
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

import suffice
from suffice.criteria import LabelWorth, Verdict
from suffice.errors import InvalidValueError
from suffice.presentation.charts import Chart, both_widths, ticks
from suffice.presentation.error_words import error_words, expected_error_basis, target_words
from suffice.presentation.goal_words import goal_words
from suffice.presentation.project_words import agreement_sentence
from suffice.presentation.report_words import (
    corrections_and_skips,
    given_and_imported,
    not_guaranteed,
    not_started_sentence,
    summary_tiles,
)
from suffice.presentation.rule_words import (
    ERROR_RATIO_EXPLAINED,
    RATIO_RULE,
    certified_change_sentence,
    compared_sentence,
    curve_caption,
    quantity_name,
    threshold_name,
)
from suffice.presentation.text_format import as_sentence, count, item_summary, number, percent, shortened, utc_time
from suffice.project.events import moment
from suffice.project.items import Item
from suffice.project.labelling_pace import pace
from suffice.project.learning_status import LearningStatus
from suffice.project.people import people_summary
from suffice.project.project_check import ProjectCheck
from suffice.project.settings import Settings, described_model
from suffice.project.state import LabelledItem
from suffice.project.status_summary import status
from suffice.report.html_page import ReportTable, rendered
from suffice.session.error_estimate import REST_ITEMS

if TYPE_CHECKING:
    from suffice.project.labelling_project import Project

#: Items that are shown with their labels.
EXAMPLES: Final = 10


@dataclass(frozen=True, eq=False)
class ProjectReportContents:
    """Contents of the page.

    Attributes:
        settings: Settings of the project.
        made: When it was made.
        status: What :func:`suffice.project.status_summary.status` says.
        labelled: All labels, in order.
        examples: The first of these, with their items.
        verdict: What the rule says, or None before it says something.
        pace: Typical seconds per label; None if unknown.
        checks: All random checks, in order.
        team: What is known about the answers of each person, see :func:`suffice.project.people.people_summary`.
    """

    settings: Settings
    made: str
    status: dict[str, Any]
    labelled: list[LabelledItem]
    examples: list[tuple[Item, LabelledItem]]
    verdict: Verdict | None = None
    pace: float | None = None
    checks: Sequence[ProjectCheck] = ()
    team: dict[str, Any] = field(default_factory=lambda: {"people": [], "notes": []})

    @property
    def share(self) -> bool:
        """Whether the error of the model is a share of the items."""
        return self.settings.task == "classification"

    @property
    def rule(self) -> str:
        """Name of the stopping rule."""
        return str(self.settings.rule["rule"]).rpartition(".")[2]

    @property
    def change(self) -> float | None:
        """The certified change of the expected error as a share of its range, where there is one."""
        certificate = None if self.verdict is None else self.verdict.certificate
        return None if certificate is None else certificate.change

    @property
    def decision(self) -> dict[str, Any]:
        """The decision, in numbers and in words."""
        decision: dict[str, Any] = self.status["decision"]
        return decision

    @property
    def given(self) -> list[LabelledItem]:
        """Labels that people gave; the others came with the data."""
        return [each for each in self.labelled if each.person != self.settings.source]


def project_report_contents(project: "Project", learning_status: LearningStatus) -> ProjectReportContents:
    """Collect the contents of the page.

    Args:
        project: The project.
        learning_status: Results of the model.
    """
    with project.lock:
        state = project.state()
        told, labelled, made = status(project, learning_status), state.labelled(), state.made
        checks, team = state.checks.all(), people_summary(state, project.settings)
    first = labelled[:EXAMPLES]
    items = project.items([each.item for each in first])
    return ProjectReportContents(
        settings=project.settings,
        made="" if made is None else moment(made.at),
        status=told,
        labelled=labelled,
        examples=list(zip(items, first, strict=True)),
        verdict=learning_status.verdict,
        pace=pace([each for each in labelled if each.person != project.settings.source]),
        checks=checks,
        team=team,
    )


#: Rows of a table of counts, and of one of people.
_MOST_ROWS: Final = 40
#: Approximate number of bins of the distribution of numbers.
_BINS: Final = 9
_CHOSEN: Final = "After the first ones the model chose {items}, so their shares are not those of all items."


class BarRow(NamedTuple):
    """A row of a table of counts.

    Attributes:
        name: What was counted.
        labels: How often, as text.
        share: Share of all, as text.
        width: Length of the bar, in percent of the longest.
    """

    name: str
    labels: str
    share: str
    width: float


class CountBars(NamedTuple):
    """A table of counts with a bar for each.

    Attributes:
        title: What is counted.
        name: Heading of the column of names.
        rows: The rows.
        note: What one has to know to read it.
    """

    title: str
    name: str
    rows: list[BarRow]
    note: str


def labelling_sentences(told: ProjectReportContents) -> list[str]:
    """Sentences about the labels: number and time, agreement of people, distribution of numbers."""
    if not told.labelled:
        return ["Nothing is labelled yet."]
    times = [each.at for each in told.given] or [0.0]
    alike = told.status["agreement"]
    said = [
        given_and_imported(
            len(told.given),
            moment(min(times)),
            moment(max(times)),
            imported=len(told.labelled) - len(told.given),
            source=told.settings.source,
        ),
        corrections_and_skips(sum(each.corrected for each in told.labelled), told.status["n_skipped"]),
        agreement_sentence(alike)
        if alike is not None
        else "No item was labelled by two people, so nothing can be said about how far people agree.",
    ]
    if not told.settings.classes:
        values = [float(each.label) for each in told.labelled]
        least, most = number(min(values)), number(max(values))
        said.append(
            f"Half of the labels are {number(median(values))} or less; the least is {least}, the largest {most}."
        )
    return said


def count_bars(told: ProjectReportContents) -> CountBars | None:
    """Number of labels of each class, or distribution of the numbers; None if there is none."""
    if not told.labelled:
        return None
    return _class_bars(told) if told.settings.classes else _number_bars(told)


def _class_bars(told: ProjectReportContents) -> CountBars:
    counts = sorted(told.status["classes"], key=lambda each: -each["count"])
    note = _chosen_note(told)
    if missing := [each["name"] for each in counts if not each["count"]]:
        some = ", ".join(shortened(name, 40) for name in missing[:10]) + (", …" if len(missing) > 10 else "")
        note += f"{' ' * bool(note)}No item is labelled {some} so far: of such a class the model knows nothing."
    if len(counts) > _MOST_ROWS:
        note = f"The {_MOST_ROWS} most frequent of {len(counts)} classes. {note}"
    rows = [(shortened(each["name"], 80), each["count"]) for each in counts[:_MOST_ROWS]]
    return _bars("Labels of each class", told, rows, note)


def _number_bars(told: ProjectReportContents) -> CountBars | None:
    values = [float(each.label) for each in told.labelled]
    low, high = min(values), max(values)
    # So far apart, or so close, they cannot be put into bins.
    if not np.isfinite(high - low) or high - low <= 1e-9 * max(abs(low), abs(high)):
        return None
    edges = ticks(low, high, _BINS)
    counted, _ = np.histogram(values, edges)
    names = [f"{number(start)} to {number(end)}" for start, end in pairwise(edges)]
    rows = [(name, int(each)) for name, each in zip(names, counted, strict=True)]
    return _bars("How the labels are spread", told, rows, _chosen_note(told))


def _chosen_note(told: ProjectReportContents) -> str:
    """Note about shares of classes among labels that the model chose."""
    share = told.settings.random_share
    items = "most of the items" if 0.0 < share < 0.5 else "some of the items" if share else "the items"
    # The items of a check are drawn at random, and may be more than the chosen ones.
    items = "some of the items" if told.checks else items
    return _CHOSEN.format(items=items) if len(told.given) > told.settings.initial and share < 1.0 else ""


def _bars(title: str, told: ProjectReportContents, counts: list[tuple[str, int]], note: str) -> CountBars:
    most, total = max((each for _, each in counts), default=0) or 1, sum(each for _, each in counts) or 1
    rows = [BarRow(name, f"{each:,}", percent(each / total), 100.0 * each / most) for name, each in counts]
    return CountBars(title, shortened(told.settings.target, 80), rows, note)


def people_table(told: ProjectReportContents) -> ReportTable:
    """Number of labels of each person."""
    people = told.status["people"]
    rows = tuple(
        (_person_name(told, each["name"]), str(each["labels"]), utc_time(each["last"])) for each in people[:_MOST_ROWS]
    )
    note = "Of several opinions on an item, the one that counts is included." if told.status["agreement"] else ""
    if len(people) > _MOST_ROWS:
        note = f"The {_MOST_ROWS} of {len(people)} people who labelled most. {note}".strip()
    return ReportTable("people", "Who labelled", ("person", "labels", "last seen"), rows, note)


def answers_table(told: ProjectReportContents) -> ReportTable | None:
    """What is known about the answers of each person; None if nothing is."""
    people = [each for each in told.team["people"] if each["sentences"]]
    rows = tuple((_person_name(told, each["name"]), " ".join(each["sentences"])) for each in people[:_MOST_ROWS])
    note = " ".join(told.team["notes"])
    return ReportTable("answers", "Answers of people", ("person", "what is known"), rows, note) if rows else None


def _person_name(told: ProjectReportContents, name: str) -> str:
    return f"came with the data ({shortened(name)})" if name == told.settings.source else name


_KIND_OF_ITEMS: Final = {"table": "rows of a table", "text": "texts", "image": "images"}
#: Classes that are named, and characters of a note on the data.
_MOST_CLASSES: Final = 30
_LONGEST_NOTE: Final = 1000


def method_pairs(told: ProjectReportContents) -> list[tuple[str, str]]:
    """All data that are needed to repeat the project, by name."""
    settings, size = told.settings, told.status["size"]
    data = f"{shortened(settings.source) or 'not named'}: {count(size, 'item')}, {_KIND_OF_ITEMS[settings.shown]}"
    pairs = [
        ("Data", data),
        ("Label", _label_words(told)),
        *(("What was done to the data", shortened(note, _LONGEST_NOTE)) for note in settings.notes),
        ("Model", _model_words(told)),
        ("Stopping rule", _rule_words(told)),
        *([("Target", _target(settings))] if settings.at_most is not None else []),
        ("Start", f"{count(settings.initial, 'label')} of items drawn at random, then the model chose"),
    ]
    if settings.random_share:
        share = percent(settings.random_share)
        pairs.append(("Random labels", f"{share} of the items asked for after the start were drawn at random"))
    if settings.overlap:
        asked = f"{percent(settings.overlap)} of the items are given to {settings.opinions} people"
        pairs.append(("Opinions of several people", asked))
    return [
        *pairs,
        ("Seed of all randomness", "none" if settings.seed is None else str(settings.seed)),
        *([("Project made", utc_time(told.made))] if told.made else []),
        ("Program", f"suffice {suffice.__version__}"),
    ]


def _label_words(told: ProjectReportContents) -> str:
    settings, target = told.settings, shortened(told.settings.target, 80)
    if not settings.classes:
        return f"{target}, a number"
    names = [shortened(name, 60) for name in settings.classes[:_MOST_CLASSES]]
    rest = len(settings.classes) - len(names)
    more = f" and {rest:,} more" if rest else ""
    return f"{target}, one of {len(settings.classes):,} classes: {', '.join(names)}{more}"


def _model_words(told: ProjectReportContents) -> str:
    """The current model, the original model if it was changed, and why if it is chosen on the labels."""
    model, first = told.status["model"], told.settings.model
    before = "" if model["name"] == first else f" (until it was switched: {described_model(first)})"
    why = [sentence for sentence in [model["reason"]] if sentence]
    why += [] if model["choice"] is None else model["choice"]["sentences"]
    return ". ".join([f"{model['description']}{before}", *([" ".join(why)] if why else [])])


def _rule_words(told: ProjectReportContents) -> str:
    """The rule, what it does, and how it is set."""
    try:
        rule = told.settings.criterion()
    except InvalidValueError:
        # A user-defined rule that is not installed on this machine.
        return told.rule
    meaning = " ".join((inspect.getdoc(type(rule)) or "").split("\n\n")[0].split())
    given = {name: value for name, value in rule.state_dict()["params"].items() if value is not None}
    if isinstance(rule, LabelWorth) and rule.error_cost is None:
        given.setdefault("mistake_cost", 1.0)
    set_to = ", ".join(f"{name} {_parameter_words(value)}" for name, value in given.items())
    plain = re.sub(r":\w+:|``?", "", meaning)
    return f"{type(rule).__name__}{f' ({set_to})' if set_to else ''}. {plain}".strip()


def _parameter_words(value: Any) -> str:
    if isinstance(value, dict) and "rule" in value:
        return str(value["rule"])
    if isinstance(value, list):
        return " and ".join(map(_parameter_words, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value) if isinstance(value, float) else "none" if value is None else str(value)


def example_table(told: ProjectReportContents) -> ReportTable:
    """The first items with their labels."""
    rows = tuple(
        (
            shortened(item.id, 60),
            item_summary(item.cells, told.settings.main),
            shortened(each.label, 80) if isinstance(each.label, str) else number(each.label),
            each.person,
        )
        for item, each in told.examples
    )
    title = "The first item" if len(rows) == 1 else f"The first {len(rows)} items"
    head = ("id", "item", shortened(told.settings.target, 80), "labelled by")
    return ReportTable(
        "examples", title, head, rows, "Long texts are cut; the whole is in the exported file of labels."
    )


#: On a log scale, values far below the threshold would flatten the rest.
_FAR_BELOW: Final = 20.0


class Certified(NamedTuple):
    """Certificate in the report.

    Attributes:
        statement: What is certified; empty where there is no certificate.
        meaning: The same for somebody who does not know the theory.
        assumption: What the statement rests on.
    """

    statement: str
    meaning: str
    assumption: str


def report_page(project: "Project", learning_status: LearningStatus) -> str:
    """The decision, the error, the effect of more labels, and what was labelled.

    The same labels give the same page, whenever it is made.

    Args:
        project: The project.
        learning_status: Results of the model.

    Returns:
        An HTML page that loads no other files; the contents of items and names are escaped.
    """
    told = project_report_contents(project, learning_status)
    status, decision = told.status, told.decision
    first, second = {"summary": "In short"}, {"guaranteed": "What is guaranteed"}
    if status["guarantee"] is None:
        second = {}
    elif status["guarantee"]["about_present_model"]:
        first, second = second, first
    return rendered(
        "project_report.html.jinja",
        title=f"Labelling report: {shortened(told.settings.name, 80)}",
        headings={
            **first,
            **second,
            "quality": "How large the error is",
            "outlook": "What more labels bring",
            "labels": "What was labelled",
            "guarantee": "What is not guaranteed",
            "stopping": "Details of the stopping rule",
            "method": "How it was done",
            **({"examples": "Some of the items"} if told.examples else {}),
        },
        decision=decision,
        guarantee=status["guarantee"],
        guarantee_details=_guarantee_pairs(told),
        checks=checks_table(told) if told.checks else None,
        summary=_summary(status),
        tiles=summary_tiles(status, seconds=told.pace),
        quality=_quality_sentences(told),
        error_chart=_drawn(error_chart(told)) if status["error"]["estimates"] else None,
        labelling=labelling_sentences(told),
        bars=count_bars(told),
        people=people_table(told) if told.labelled else None,
        answers=answers_table(told),
        not_guaranteed=not_guaranteed(status["guarantee"]),
        stopping=_stopping_paragraphs(told),
        curve=_drawn(curve_chart(told)) if _has_curve(told) else None,
        curve_caption=curve_caption(told.rule, forecast=decision["forecast"] is not None),
        certified=_certified(told),
        method=method_pairs(told),
        examples=example_table(told),
    )


def _summary(status: dict[str, Any]) -> list[str]:
    """Summary of the project without the guarantee, which has its own section."""
    said = [] if status["guarantee"] is None else status["guarantee"]["sentences"]
    return [sentence for sentence in status["words"] if sentence not in said]


def _guarantee_pairs(told: ProjectReportContents) -> list[tuple[str, str]]:
    """Fields of a guarantee, with their names."""
    found = told.status["guarantee"]
    if found is None:
        return []
    check = next(each for each in told.checks if each.number == found["check"])
    items = count(len(check.draw.before.unlabelled), "item")
    pairs = [
        ("Evidence", found["evidence"]),
        ("Model", f"{described_model(check.draw.model)}, as it was after {count(check.n_labelled, 'label')}")
        if told.settings.checked is None
        else ("Predictions", f"column {shortened(', '.join(told.settings.checked.columns), 120)}"),
        ("Items", f"the {items} without a label when the check started; items added later are not covered"),
    ]
    if found["classes"]:
        some = [shortened(name, 60) for name in found["classes"][:_MOST_CLASSES]]
        rest = len(found["classes"]) - len(some)
        more = f" and {rest:,} more" if rest else ""
        pairs.append(("Classes", f"{', '.join(some)}{more}; a class added later is not covered"))
    at = utc_time(moment(check.draw.at))
    return [*pairs, ("Check", f"number {check.number}, started by {shortened(check.draw.person, 80)} on {at}")]


def _check_progress(check: ProjectCheck) -> tuple[str, str]:
    """The number of items of a check, and its state."""
    progress = check.progress
    if progress is None:
        return f"{check.record.size:,} of {check.record.pool:,}", check.state
    # The number of items that a sequential check needs is not known before it ends.
    state = "ended without a proof" if progress["state"] == "failed" else progress["state"]
    return f"{progress['answered']:,} answered of {check.record.pool:,}", state


def _target(settings: Settings) -> str:
    assert settings.at_most is not None
    if settings.goal is not None:
        return goal_words(settings.at_most, settings.tolerance, class_name=settings.positive)
    return target_words(settings.at_most, settings.task)


def checks_table(told: ProjectReportContents) -> ReportTable:
    """All checks, because a guarantee must be read together with weaker and aborted checks."""
    rows = tuple(
        (
            str(check.number),
            utc_time(moment(check.draw.at)),
            *_check_progress(check),
            "" if check.guarantee is None else str(check.guarantee),
        )
        for check in told.checks[-_MOST_ROWS:]
    )
    note = (
        "All statements together hold with the stated confidence. Each check, also one that was stopped, takes a part "
        "of the error probability."
    )
    head = ("check", "started", "items", "state", "what it proves about the model of then")
    return ReportTable("checks", "Random checks", head, rows, note)


def _drawn(chart: Chart) -> Any:
    """A chart for a wide page and one for a narrow page, as HTML; the texts in them are escaped already."""
    from markupsafe import Markup

    return Markup(both_widths(chart))


def _is_judged(told: ProjectReportContents) -> bool:
    return told.verdict is not None and bool(told.status["n_labelled"])


def _has_curve(told: ProjectReportContents) -> bool:
    return _is_judged(told) and bool(told.status["curve"])


def _stopping_paragraphs(told: ProjectReportContents) -> list[str]:
    if not _is_judged(told):
        return [not_started_sentence(told.settings.initial, told.status["size"])]
    said = [compared_sentence(told.rule, *told.status["curve"][-1])] if _has_curve(told) else []
    _, value, threshold = told.status["curve"][-1] if said else (0, None, None)
    above = value is not None and threshold is not None and value > threshold
    if above and told.decision["since"] is not None and told.rule == LabelWorth.__name__:
        said.append("A stop remains until a label is worth one and a half times its cost.")
    return [*said, *([ERROR_RATIO_EXPLAINED] if told.rule == RATIO_RULE else [])]


def curve_chart(told: ProjectReportContents) -> Chart:
    """Chart of the values that the rule compared."""
    status = told.status
    line = [(float(n), value) for n, value, _ in status["curve"]]
    limit = [(float(n), threshold) for n, _, threshold in status["curve"] if threshold is not None]
    values = [value for _, value in (*line, *limit)]
    rough: Sequence[tuple[float, float]] = ()
    if told.rule == RATIO_RULE:
        floor = min(threshold for _, threshold in limit) / _FAR_BELOW if limit else 0.0
        rough = [(n, max(value, floor)) for n, value in line]
        line = list(zip((n for n, _ in rough), accumulate((value for _, value in rough), min), strict=True))
    forecast, now = told.decision["forecast"], told.decision["n_labelled"]
    expected = None
    if forecast is not None:
        expected = (now + forecast["low"], now + forecast["labels"], now + forecast["high"])
        limit += [(float(expected[2]), limit[-1][1])] if limit else []
    name = quantity_name(told.rule)
    return Chart(
        title=f"{name} over the labels",
        name=name,
        line=line,
        rough=rough,
        limit=limit,
        limit_name=threshold_name(told.rule),
        stop=told.decision["since"],
        ahead=expected,
        log=min(values) > 0.0 and max(values) >= 10.0 * min(values),
    )


def error_chart(told: ProjectReportContents) -> Chart:
    """The estimated error of the model, as a chart."""
    estimates, target = told.status["error"]["estimates"], told.settings.target
    unit = target if len(target) <= 20 else "the label"
    return Chart(
        title="Estimated error over the labels",
        name="estimated share wrong" if told.share else f"estimated error, in units of {unit}",
        line=[(float(n), middle) for n, middle, _, _ in estimates],
        band=[(float(n), least, most) for n, _, least, most in estimates],
        percent=told.share,
        zero=True,
    )


def _quality_sentences(told: ProjectReportContents) -> list[str]:
    """Estimated error, and what the estimate is based on."""
    status, decision = told.status, told.decision
    if decision["error"] is None or not decision["unlabelled"]:
        return []
    random_labels = decision["error"]["random_labels"]
    looked_at = decision["unlabelled"] if random_labels else status["size"]
    said = [
        as_sentence(error_words(decision)),
        expected_error_basis(min(REST_ITEMS, looked_at), random_labels),
    ]
    if not told.share:
        said.append("The error is the root of the mean of the squared differences between predictions and labels.")
    return said


def _certified(told: ProjectReportContents) -> Certified:
    verdict = told.status["verdict"]
    certificate = None if verdict is None else verdict["certificate"]
    if certificate is None:
        return Certified("", "", "")
    # A bound of 1 or more holds for every change, so it has no information.
    says = told.change is None or told.change < 1.0
    return Certified(
        as_sentence(certificate["statement"]),
        certified_change_sentence(told.change) if says and told.change is not None else "",
        as_sentence(certificate["assumption"]) if says else "",
    )
