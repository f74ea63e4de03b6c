"""The report of a labelling project: one page, from top to bottom."""

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from suffice.presentation.messages import (
    NOT_GUARANTEED,
    RATIO_RULE,
    as_sentence,
    certified_change_sentence,
    curve_caption,
    expected_error_basis,
    expected_error_sentence,
    labelled_sentences,
    next_labels_outlook,
    no_certificate_sentence,
    not_started_sentence,
    quantity_name,
    ratio_sentences,
    report_headline,
    still_worth_sentence,
    stopping_sentences,
    summary_tiles,
    threshold_name,
)
from suffice.presentation.shortening import shortened
from suffice.presentation.svg_chart import Chart, both_widths
from suffice.report.labelling.contents import ProjectReportContents, project_report_contents
from suffice.report.labelling.labels import count_bars, labelling_sentences, people_table
from suffice.report.labelling.method import example_table, method_pairs
from suffice.report.page import rendered
from suffice.session.estimates import ITEMS
from suffice.session.insight import LearningStatus

if TYPE_CHECKING:
    from suffice.session.project import Project

#: On a log scale, values far below the threshold would flatten the rest.
_FAR_BELOW: Final = 20.0


class Guaranteed(NamedTuple):
    """What the report says of a certificate.

    Attributes:
        statement: What is certified; empty where there is no certificate.
        meaning: The same for somebody who does not know the theory, or that there is no certificate.
        assumption: What the statement rests on.
    """

    statement: str
    meaning: str
    assumption: str


def report_page(project: "Project", insight: LearningStatus) -> str:
    """Tell what was labelled, why it stopped or goes on, how good the model is, and what is guaranteed.

    The same labels give the same page, whenever it is made.

    Args:
        project: The project.
        insight: What the model makes of its labels.

    Returns:
        A page of HTML that fetches nothing from elsewhere; whatever an item or a name holds is text in it.
    """
    told = project_report_contents(project, insight)
    status = told.status
    return rendered(
        "project_report.html.jinja",
        title=f"Labelling report: {shortened(told.settings.name, 80)}",
        headings={
            "summary": "In short",
            "labels": "What was labelled",
            "stopping": "Why it can stop" if told.stop else "What is missing",
            "quality": "How good the model is",
            "guarantee": "What is guaranteed",
            "method": "How it was done",
            **({"examples": "Some of the items"} if told.examples else {}),
        },
        headline=report_headline(status, stop=told.stop),
        summary=_summary_sentences(told),
        tiles=summary_tiles(status, stop=told.stop, share=told.share, seconds=told.pace),
        labelling=labelling_sentences(told),
        bars=count_bars(told),
        people=people_table(told) if told.labelled else None,
        stopping=_stopping_paragraphs(told),
        curve=_drawn(curve_chart(told)) if _has_curve(told) else None,
        curve_caption=curve_caption(told.rule, forecast=status["forecast"] is not None and not told.stop),
        quality=_quality_sentences(told),
        error_chart=_drawn(error_chart(told)) if status["error"]["estimates"] else None,
        guarantee=_guaranteed(told),
        not_guaranteed=NOT_GUARANTEED,
        method=method_pairs(told),
        examples=example_table(told),
    )


def _drawn(chart: Chart) -> Any:
    """A chart for a wide page and one for a narrow page, as HTML; the texts in them are escaped already."""
    from markupsafe import Markup

    return Markup(both_widths(chart))


def _summary_sentences(told: ProjectReportContents) -> list[str]:
    """How much is labelled, why the rule says what it says, and what speaks against it."""
    status, said = told.status, [labelled_sentences(told.status, stop=told.stop)]
    if status["n_labelled"]:
        ratio, threshold = told.ratio, None if told.verdict is None else told.verdict.threshold
        if ratio is None or threshold is None:
            said.append(told.reason)
        else:
            said.append(ratio_sentences(ratio, threshold, stop=told.stop))
    if told.stop and status["purchase"] is not None:
        said.append(still_worth_sentence(status["purchase"], share=told.share))
    return [*said, status["problem"]]


def _is_judged(told: ProjectReportContents) -> bool:
    return told.verdict is not None and bool(told.status["n_labelled"])


def _has_curve(told: ProjectReportContents) -> bool:
    return _is_judged(told) and bool(told.status["curve"])


def _stopping_paragraphs(told: ProjectReportContents) -> list[str]:
    if not _is_judged(told):
        return [not_started_sentence(told.settings.initial, told.status["size"])]
    return stopping_sentences(told.status, told.reason, rule=told.rule, stop=told.stop)


def curve_chart(told: ProjectReportContents) -> Chart:
    """What the rule watched, as a chart."""
    status = told.status
    line = [(float(n), value) for n, value, _ in status["curve"]]
    limit = [(float(n), threshold) for n, _, threshold in status["curve"] if threshold is not None]
    values = [value for _, value in (*line, *limit)]
    rough: Sequence[tuple[float, float]] = ()
    if told.rule == RATIO_RULE:
        floor = min(threshold for _, threshold in limit) / _FAR_BELOW if limit else 0.0
        rough = [(n, max(value, floor)) for n, value in line]
        line = list(zip((n for n, _ in rough), accumulate((value for _, value in rough), min), strict=True))
    forecast, now = status["forecast"], status["learned"]
    expected = None
    if forecast is not None and not told.stop:
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
        stop=told.enough,
        ahead=expected,
        log=min(values) > 0.0 and max(values) >= 10.0 * min(values),
    )


def error_chart(told: ProjectReportContents) -> Chart:
    """The error that the model expected of itself, as a chart."""
    estimates, target = told.status["error"]["estimates"], told.settings.target
    unit = target if len(target) <= 20 else "the label"
    return Chart(
        title="Expected error over the labels",
        name="expected share wrong" if told.share else f"expected error, in units of {unit}",
        line=[(float(n), middle) for n, middle, _, _ in estimates],
        band=[(float(n), least, most) for n, _, least, most in estimates],
        percent=told.share,
        zero=True,
    )


def _quality_sentences(told: ProjectReportContents) -> list[str]:
    """How good the model is by its own estimate, what that rests on, and what more labels would change."""
    status = told.status
    if not status["error"]["estimates"]:
        return []
    said = [
        expected_error_sentence(status["error"]["estimates"][-1][1:], share=told.share),
        expected_error_basis(min(ITEMS[told.settings.task], status["size"])),
    ]
    return said + (
        [next_labels_outlook(status["purchase"], share=told.share)] if status["purchase"] is not None else []
    )


def _guaranteed(told: ProjectReportContents) -> Guaranteed:
    verdict = told.status["verdict"]
    certificate = None if verdict is None else verdict["certificate"]
    if certificate is None:
        return Guaranteed("", no_certificate_sentence(told.rule), "")
    # A bound of 1 or more holds of every change: it says nothing.
    says = told.change is None or told.change < 1.0
    return Guaranteed(
        as_sentence(certificate["statement"]),
        certified_change_sentence(told.change) if says and told.change is not None else "",
        as_sentence(certificate["assumption"]) if says else "",
    )
