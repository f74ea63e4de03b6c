"""What each slip of the paper or of its authors' scripts does, as a table."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

from suffice.data.protocols import PUBLISHED
from suffice.experiments.paper.outcome import Outcome
from suffice.experiments.paper.slips import Slip
from suffice.report.paper.runs import spread
from suffice.report.paper.table import NOTHING, Table


@dataclass(frozen=True)
class SlipEffect:
    """A run as published, and the same run with one slip put right."""

    slip: Slip
    published: Outcome
    righted: Outcome


def slips_table(effects: Iterable[SlipEffect]) -> Table:
    """Correlation, stop and what was still to come at the stop, with each slip and without it.

    Args:
        effects: Runs in pairs; those of several seeds are told by their median.
    """
    groups: dict[tuple[str, str], list[SlipEffect]] = {}
    for each in effects:
        groups.setdefault((each.slip.name, each.published.name), []).append(each)
    by_slip = sorted(groups.values(), key=lambda group: group[0].slip.name)
    several = max((len(group) for group in by_slip), default=1)
    return Table(
        "published-slips",
        "Slips, each put right alone",
        ("slip", "what was done", "what is right", "run", "correlation", "put right", "stop", "put right",
         "excess", "put right"),
        tuple(_row(group) for group in by_slip),
        f"The stop at the paper's second threshold of the model, and the excess there. {_seeds(several)}All else is as "
        "published.",
    )  # fmt: skip


def _seeds(number: int) -> str:
    return f"Medians over {number} seeds. " if number > 1 else ""


def _row(group: Sequence[SlipEffect]) -> tuple[str, ...]:
    slip, name = group[0].slip, group[0].published.name
    threshold = f"{PUBLISHED[name].thresholds[1]:g}"
    sides = [[each.published for each in group], [each.righted for each in group]]
    cells = [
        *(_middle([each.correlation for each in side], ".4f") for side in sides),
        *(_middle([each.stops[threshold] for each in side], ".0f") for side in sides),
        *(_middle([each.excess(threshold) for each in side], ".3f") for side in sides),
    ]
    return slip.name, slip.done, slip.right, name, *cells


def _middle(values: Sequence[float | None], form: str) -> str:
    found = spread(inf if value is None else value for value in values)
    if found is None:
        return NOTHING
    return "never" if found.median == inf else format(found.median, form)
