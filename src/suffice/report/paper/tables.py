"""The numbers of the paper's experiments as tables. Times are left out: a resumed run gives the same tables."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import isinf

from suffice.data.protocols import MODELS, TITLES
from suffice.experiments.paper.groups import (
    MedianAndRange,
    RunGroup,
    grouped,
    of_model,
    on_several_sets,
    other_arm,
    spread,
)
from suffice.experiments.paper.outcome import RunOutcome
from suffice.report.table import NOTHING, ReportTable

__all__ = ["ReportTable", "paper_tables"]

_ARM = "hyper-parameters from"
_RANGE = "Of several seeds: the median (lowest to highest)."
_NEVER = "A run that never stopped counts as later than all others."
_EXCESS = "Excess: (error at the stop - least error) / (first error - least error), 0 being the best of the run."


def paper_tables(outcomes: Iterable[RunOutcome]) -> list[ReportTable]:
    """Every table that the runs at hand fill, those of the published protocol first."""
    given = list(outcomes)
    published, corrected = grouped(given, "published"), grouped(given, "corrected")
    return [
        *([_published_runs(published)] if published else []),
        *(_published_stops(of_model(published, model)) for model in MODELS if of_model(published, model)),
        *([_same_place(on_several_sets(published), "published")] if on_several_sets(published) else []),
        *([_corrected_correlations(corrected)] if corrected else []),
        *(_corrected_stops(of_model(corrected, model)) for model in MODELS if of_model(corrected, model)),
        *([_same_place(on_several_sets(corrected), "corrected")] if on_several_sets(corrected) else []),
        *([_cost(corrected)] if any(other_arm(corrected, each) for each in corrected) else []),
    ]


def _published_runs(groups: Sequence[RunGroup]) -> ReportTable:
    several = any(len(each.outcomes) > 1 for each in groups)
    rows = [
        (
            each.model.upper(),
            each.title,
            str(each.outcomes[0].pool),
            str(each.outcomes[0].features),
            str(each.outcomes[0].steps),
            *([str(len(each.outcomes))] if several else []),
            *_beside_published(each),
        )
        for each in groups
    ]
    head = ("model", "data", "rows of the pool", "features", "steps", *(["seeds"] if several else []))
    return ReportTable(
        "published-correlations",
        "As published: correlation of error ratio and error",
        (*head, "correlation", "published", "difference"),
        tuple(rows),
        _RANGE if several else "",
    )


def _published_stops(groups: Sequence[RunGroup]) -> ReportTable:
    thresholds = groups[0].thresholds
    first = groups[0].outcomes[0]
    rows = [
        (
            each.title,
            _cell(spread(run.error_first for run in each.outcomes), _error),
            _cell(spread(run.error_best for run in each.outcomes), _error),
            *(
                cell
                for threshold in thresholds
                for cell in (_acquisitions(each, threshold), _error_at_stop(each, threshold))
            ),
        )
        for each in groups
    ]
    a_time = int(groups[0].labels(2)[1] - groups[0].labels(1)[0])
    note = (
        "A stop is the number of the acquisition, counted from 0 as the authors' scripts count. Labels by then: "
        f"{first.initial} from the start, and {a_time} for each acquisition, that of the stop included."
    )
    several = any(len(each.outcomes) > 1 for each in groups)
    return ReportTable(
        f"published-stops-{groups[0].model}",
        f"As published, {groups[0].model.upper()}: where each threshold stops, and the error there",
        (
            *("data", "first error", "least error"),
            *(name for each in thresholds for name in (f"stop at {each}", f"error at {each}")),
        ),
        tuple(rows),
        f"{note} {_RANGE} {_NEVER}" if several else note,
    )


def _corrected_correlations(groups: Sequence[RunGroup]) -> ReportTable:
    rows = [
        (
            *(each.model.upper(), each.title, each.arm or NOTHING),
            *map(str, (each.outcomes[0].pool, each.outcomes[0].features, each.outcomes[0].steps, len(each.outcomes))),
            *_beside_published(each),
        )
        for each in groups
    ]
    return _without_empty_arms(
        ReportTable(
            "corrected-correlations",
            "Corrected: correlation of error ratio and error",
            (
                *("model", "data", _ARM, "rows of the pool", "features", "steps", "seeds"),
                *("correlation", "published", "difference"),
            ),
            tuple(rows),
            f"{_RANGE} The difference is that of the median.",
        )
    )


def _corrected_stops(groups: Sequence[RunGroup]) -> ReportTable:
    thresholds = groups[0].thresholds
    rows = [
        (
            *(each.title, each.arm or NOTHING),
            *(
                cell
                for threshold in thresholds
                for cell in (
                    _cell(spread(each.stops(threshold)), _count),
                    f"{each.stopped(threshold)} of {len(each.outcomes)}",
                    _excess(each, threshold, reach=True),
                )
            ),
        )
        for each in groups
    ]
    return _without_empty_arms(
        ReportTable(
            f"corrected-stops-{groups[0].model}",
            f"Corrected, {groups[0].model.upper()}: labels at each threshold, and what more would have brought",
            (
                *("data", _ARM),
                *(f"{what} at {each}" for each in thresholds for what in ("labels", "stopped", "excess")),
            ),
            tuple(rows),
            f"{_RANGE} {_NEVER} {_EXCESS}",
        )
    )


def _same_place(groups: Sequence[RunGroup], protocol: str) -> ReportTable:
    """Claim (b): whether one threshold stops at the same place on every data set."""
    sets = list(dict.fromkeys(each.title for each in groups))
    arms = list(dict.fromkeys((each.model, each.arm) for each in groups))
    rows = []
    for model, arm in sorted(arms, key=lambda key: list(MODELS).index(key[0])):
        tried = {each.title: each for each in groups if (each.model, each.arm) == (model, arm)}
        for threshold in next(iter(tried.values())).thresholds:
            known = [at for each in tried.values() if (at := _middle_excess(each, threshold)) is not None]
            silent = [
                _missing(each, threshold) for each in tried.values() if each.stopped(threshold) < len(each.outcomes)
            ]
            # Nothing at all under a data set that the model was not tried on.
            cells = [_excess(tried[title], threshold) if title in tried else "" for title in sets]
            apart = _share(max(known) - min(known)) if len(known) > 1 else NOTHING
            if 1 < len(known) < len(tried):
                apart += f" ({len(known)} of {len(tried)} sets)"
            rows.append((model.upper(), arm or NOTHING, threshold, apart, *cells, ", ".join(silent) or "none"))
    return _without_empty_arms(
        ReportTable(
            f"{protocol}-same-place",
            f"{TITLES[protocol]}: does one threshold stop at the same place on every data set?",
            ("model", _ARM, "threshold", "spread", *sets, "never stopped"),
            tuple(rows),
            f"Under each data set: the excess at the stop, the median of all seeds. {_NEVER} {_EXCESS} "
            "Spread: highest - lowest of a line, of the sets that it stops on; the smaller, the more the threshold "
            "means the same everywhere.",
        )
    )


def _missing(runs: RunGroup, threshold: str) -> str:
    count = len(runs.outcomes)
    return runs.title if count == 1 else f"{runs.title} in {count - runs.stopped(threshold)} of {count}"


def _without_empty_arms(table: ReportTable) -> ReportTable:
    """The table without the column of arms if none of its runs has one."""
    at = table.head.index(_ARM)
    if any(row[at] != NOTHING for row in table.rows):
        return table
    head, *rows = (row[:at] + row[at + 1 :] for row in (table.head, *table.rows))
    return replace(table, head=head, rows=tuple(rows))


def _cost(groups: Sequence[RunGroup]) -> ReportTable:
    """What it costs to learn hyper-parameters from labels that have to be bought."""
    rows = []
    for bought in groups:
        outside = other_arm(groups, bought)
        if bought.arm != "bought" or outside is None:
            continue
        threshold = bought.thresholds[1]
        best = {run.seed: run.error_best for run in outside.outcomes}
        times = spread(run.error_best / best[run.seed] for run in bought.outcomes if best.get(run.seed))
        rows.append(
            (
                *(bought.model.upper(), bought.title),
                *(_cell(spread(run.error_best for run in each.outcomes), _error) for each in (bought, outside)),
                _cell(times, _share),
                threshold,
                *(_cell(spread(each.stops(threshold)), _count) for each in (bought, outside)),
            )
        )
    return ReportTable(
        "corrected-cost",
        "Corrected: what it costs to learn hyper-parameters from the labels of the run",
        (
            *("model", "data", "least error, bought", "least error, outside", "bought / outside"),
            *("threshold", "labels, bought", "labels, outside"),
        ),
        tuple(rows),
        f"{_RANGE} {_NEVER} Bought: hyper-parameters from the labels bought so far. Outside: from labels that the run "
        "did not pay for and that are not counted. Bought / outside: least errors of the same seed.",
    )


def _beside_published(runs: RunGroup) -> tuple[str, str, str]:
    found, told = spread(runs.correlations), runs.published
    # A correlation that no run has is said in words: a missing number might be taken for one that was not computed.
    lacking = len(runs.outcomes) - len(runs.correlations)
    return (
        _cell(found, _digits) + f"; {lacking} undefined" * bool(lacking) if found else "undefined",
        NOTHING if told is None else _digits(told),
        NOTHING if found is None or told is None else f"{round(found.median - told, 4) + 0.0:+.4f}",
    )


def _excess(runs: RunGroup, threshold: str, *, reach: bool = False) -> str:
    """The excess in the middle, with its range if asked for; what keeps it from being a number is said in words."""
    found = spread(runs.excesses(threshold))
    without = "never" if runs.stopped(threshold) < len(runs.outcomes) else "no fall"
    number: Callable[[float], str] = lambda value: without if isinf(value) else _share(value)  # noqa: E731
    return NOTHING if found is None else _cell(found, number) if reach else number(found.median)


def _middle_excess(runs: RunGroup, threshold: str) -> float | None:
    found = spread(runs.excesses(threshold))
    return None if found is None or isinf(found.median) else found.median


def _acquisitions(runs: RunGroup, threshold: str) -> str:
    given = (run.stops[threshold] for run in runs.outcomes)
    return _cell(spread(float("inf") if at is None else float(at) for at in given), _count)


def _error_at_stop(runs: RunGroup, threshold: str) -> str:
    given = (run.error_at_stop[threshold] for run in runs.outcomes)
    return _cell(spread(at for at in given if at is not None), _error)


def _cell(found: MedianAndRange | None, number: Callable[[float], str]) -> str:
    if found is None:
        return NOTHING
    middle = number(found.median)
    alone = found.number == 1 or isinf(found.lowest)
    return middle if alone else f"{middle} ({number(found.lowest)} to {number(found.highest)})"


def _digits(value: float) -> str:
    return f"{value:.4f}"


def _share(value: float) -> str:
    return f"{value:.3f}"


def _error(value: float) -> str:
    return f"{value:#.4g}".removesuffix(".")


def _count(value: float) -> str:
    return "never" if isinf(value) else f"{value:.0f}" if value == int(value) else f"{value:.1f}"
