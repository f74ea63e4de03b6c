"""Every figure of the paper drawn again, and one more, from the runs at hand."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from suffice.data.protocols import MODELS, PROTOCOLS
from suffice.experiments.paper.groups import grouped, of_model
from suffice.experiments.paper.outcome import RunOutcome
from suffice.report.paper.correlations import correlations
from suffice.report.paper.curves import error_curves
from suffice.report.paper.same_place import same_place
from suffice.report.paper.scatter import scatter
from suffice.report.style import Drawn, Sketch, draw_all, require_matplotlib

__all__ = ["Drawn", "draw_paper", "require_matplotlib", "sketches"]


def draw_paper(outcomes: Iterable[RunOutcome], folder: Path) -> list[Drawn]:
    """Draw what the runs at hand show, each figure as PNG and as PDF. The same runs give the same bytes.

    Args:
        outcomes: Runs of any protocol; those that are missing leave out their panel.
        folder: Where the files go; made if it is not there.

    Raises:
        MissingExtraError: matplotlib is not installed.
        SufficeError: A file cannot be written.
    """
    return draw_all(sketches(outcomes), folder)


def sketches(outcomes: Iterable[RunOutcome]) -> Iterator[Sketch]:
    """The figures one after the other, not yet in files."""
    given = list(outcomes)
    for protocol in PROTOCOLS:
        groups = grouped(given, protocol)
        if not groups:
            continue
        own = (of_model(groups, model) for model in MODELS)
        found = [
            correlations(groups, protocol),
            scatter(groups, protocol),
            *(error_curves(runs, protocol) for runs in own if runs),
            same_place(groups, protocol),
        ]
        yield from (each for each in found if each is not None)
