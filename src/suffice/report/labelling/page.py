"""The report of a labelling project as a page that holds everything that it shows."""

from typing import TYPE_CHECKING

from suffice.report.labelling.contents import contents
from suffice.report.labelling.judgement import guarantee, quality, stopping
from suffice.report.labelling.labels import labelled
from suffice.report.labelling.method import examples, method
from suffice.report.labelling.saying import cut
from suffice.report.labelling.sheet import STYLE
from suffice.report.labelling.short import summary
from suffice.report.page import Section, page_of
from suffice.session.insight import LearningStatus

if TYPE_CHECKING:
    from suffice.session.project import Project


def report_page(project: "Project", insight: LearningStatus) -> str:
    """Tell what was labelled, why it stopped or goes on, how good the model is, and what is guaranteed.

    The same labels give the same page, whenever it is made.

    Args:
        project: The project.
        insight: What the model makes of its labels.

    Returns:
        A page of HTML that fetches nothing from elsewhere; whatever an item or a name holds is text in it.
    """
    told = contents(project, insight)
    sections = [
        Section("summary", "In short", summary(told)),
        Section("labels", "What was labelled", labelled(told)),
        Section("stopping", "Why it can stop" if told.stop else "What is missing", stopping(told)),
        Section("quality", "How good the model is", quality(told)),
        Section("guarantee", "What is guaranteed", guarantee(told)),
        Section("method", "How it was done", method(told)),
    ]
    if told.examples:
        sections.append(Section("examples", "Some of the items", examples(told)))
    page = page_of(f"Labelling report: {cut(told.settings.name, 80)}", sections)
    # What only this page has goes to the end of the sheet that every page has.
    return page.replace("</style>", f"{STYLE}</style>", 1)
