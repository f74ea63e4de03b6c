"""Tables of the effect of each erratum of the paper or of its authors' scripts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

from suffice.data.protocols import PUBLISHED
from suffice.experiments.paper.groups import spread
from suffice.experiments.paper.outcome import RunOutcome
from suffice.experiments.paper.slips import ERRATA, Erratum
from suffice.report.table import NOTHING, ReportTable


@dataclass(frozen=True)
class ErratumEffect:
    """A run as published, and the same run with one erratum corrected."""

    erratum: Erratum
    published: RunOutcome
    corrected: RunOutcome


def errata_tables(effects: Iterable[ErratumEffect]) -> list[ReportTable]:
    """The slips that were put right, and what that changes.

    Args:
        effects: Pairs of runs; several seeds are summarised by their median.
    """
    groups: dict[tuple[str, str], list[ErratumEffect]] = {}
    for each in effects:
        groups.setdefault((each.erratum.name, each.published.name), []).append(each)
    errata = [erratum for erratum in ERRATA if any(name == erratum.name for name, _ in groups)]
    rows = [_row(group) for erratum in errata for (name, _), group in groups.items() if name == erratum.name]
    several = max((len(group) for group in groups.values()), default=1)
    seeds = f"Medians over {several} seeds. " if several > 1 else ""
    return [
        ReportTable(
            "published-slips",
            "Slips of the paper and of its authors' scripts",
            ("slip", "what was done", "what is right"),
            tuple((erratum.name, erratum.done, erratum.right) for erratum in errata),
        ),
        ReportTable(
            "published-slip-effects",
            "What each slip does: put right alone, all else as published",
            (
                "slip",
                "run",
                "correlation",
                "correlation, put right",
                "stop",
                "stop, put right",
                "excess",
                "excess, put right",
            ),
            tuple(rows),
            f"{seeds}Each pair is as published, and with the slip put right. The stop is at the paper's second "
            "threshold of the model, counted in acquisitions from 0; the excess is that at the stop.",
        ),
    ]


def _row(group: Sequence[ErratumEffect]) -> tuple[str, ...]:
    name = group[0].published.name
    threshold = f"{PUBLISHED[name].thresholds[1]:g}"
    sides = [[each.published for each in group], [each.corrected for each in group]]
    stops = [_middle([each.stops[threshold] for each in side], ".0f", "never") for side in sides]
    # Where it stopped, there is no excess only if the error never fell.
    without = ["never" if stop == "never" else NOTHING for stop in stops]
    excesses = [
        _middle([each.excess(threshold) for each in side], ".3f", word)
        for side, word in zip(sides, without, strict=True)
    ]
    correlations = [_middle([each.correlation for each in side], ".3f", "undefined") for side in sides]
    return (group[0].erratum.name, name, *correlations, *stops, *excesses)


def _middle(values: Sequence[float | None], form: str, without: str) -> str:
    found = spread(inf if value is None else value for value in values)
    if found is None:
        return NOTHING
    return without if found.median == inf else format(found.median, form)
