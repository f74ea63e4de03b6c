"""What the report of a project is made from, read at one moment."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from suffice.criteria import Verdict
from suffice.presentation.messages import RATIO_RULE, as_sentence
from suffice.session.events import moment
from suffice.session.insight import LearningStatus
from suffice.session.items import Item
from suffice.session.settings import Settings
from suffice.session.state import LabelledItem
from suffice.session.summary import status

if TYPE_CHECKING:
    from suffice.session.project import Project

#: Items that are shown with their labels.
EXAMPLES: Final = 10
#: A pause longer than this, in seconds, is none of the work; shorter than the other, no person did it.
_PAUSE: Final = 300.0
_QUICKEST: Final = 0.3
_FEWEST_GAPS: Final = 10


@dataclass(frozen=True, eq=False)
class ProjectReportContents:
    """What the page tells.

    Attributes:
        settings: What the project is about.
        made: When it was made.
        status: What :func:`suffice.session.summary.status` says.
        labelled: All labels, in order.
        examples: The first of these, with their items.
        verdict: What the rule says, or None before it says something.
        enough: Labels at which it was enough, or None while it is not.
        pace: Seconds that a label took, typically; None where that cannot be told.
    """

    settings: Settings
    made: str
    status: dict[str, Any]
    labelled: list[LabelledItem]
    examples: list[tuple[Item, LabelledItem]]
    verdict: Verdict | None = None
    enough: int | None = None
    pace: float | None = None

    @property
    def share(self) -> bool:
        """Whether the error of the model is a share of the items."""
        return self.settings.task == "classification"

    @property
    def rule(self) -> str:
        """Name of the stopping rule."""
        return str(self.settings.rule["rule"]).rpartition(".")[2]

    @property
    def ratio(self) -> float | None:
        """The error ratio, where the rule compares that and judges."""
        verdict = self.status["verdict"]
        ready = verdict is not None and verdict["ready"] and self.rule == RATIO_RULE
        ratio: float | None = verdict["value"] if ready else None
        return ratio

    @property
    def reason(self) -> str:
        """Why the rule says what it says, in a sentence."""
        verdict = self.verdict
        if verdict is None or not verdict.ready:
            return str(self.status["words"][0]) if self.status["words"] else ""
        return as_sentence(verdict.reason)

    @property
    def change(self) -> float | None:
        """The certified change of the expected error as a share of its range, where there is one."""
        certificate = None if self.verdict is None else self.verdict.certificate
        return None if certificate is None else certificate.change

    @property
    def stop(self) -> bool:
        """Whether the rule says that it is enough."""
        return self.enough is not None

    @property
    def given(self) -> list[LabelledItem]:
        """Labels that people gave; the others came with the data."""
        return [each for each in self.labelled if each.person != self.settings.source]


def project_report_contents(project: "Project", insight: LearningStatus) -> ProjectReportContents:
    """Read what the page tells.

    Args:
        project: The project.
        insight: What the model makes of its labels.
    """
    with project.lock:
        state = project.state()
        told, labelled, made = status(project, insight), state.labelled(), state.made
    verdict, advice = insight.verdict, told["advice"]
    enough = None
    if verdict is not None and verdict.stop:
        enough = verdict.n_labelled if advice is None else advice["n_labelled"]
    first = labelled[:EXAMPLES]
    items = project.items([each.item for each in first])
    return ProjectReportContents(
        settings=project.settings,
        made="" if made is None else moment(made.at),
        status=told,
        labelled=labelled,
        examples=list(zip(items, first, strict=True)),
        verdict=verdict,
        enough=enough,
        pace=pace([each for each in labelled if each.person != project.settings.source]),
    )


def pace(labelled: Sequence[LabelledItem]) -> float | None:
    """Seconds that a label typically took: the median between two labels of one person, pauses left out.

    Args:
        labelled: Labels that people gave.

    Returns:
        Seconds; None where there are too few labels to tell, or a program gave them.

    Examples:
        >>> from suffice.session.state import Opinion
        >>> made = [LabelledItem(n, "a", "ann", 0.0, False, (Opinion("ann", "a", 4.0 * n),)) for n in range(20)]
        >>> pace(made), pace(made[:5])
        (4.0, None)
    """
    moments: dict[str, list[float]] = {}
    for each in labelled:
        for opinion in each.opinions:
            moments.setdefault(opinion.person, []).append(opinion.at)
    gaps = [later - before for times in moments.values() for before, later in pairwise(sorted(times))]
    work = [gap for gap in gaps if gap <= _PAUSE]
    typical = median(work) if len(work) >= _FEWEST_GAPS else 0.0
    return typical if typical >= _QUICKEST else None
