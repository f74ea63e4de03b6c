"""The results of the paper's experiments as tables and as one self-contained HTML page."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import isinf
from pathlib import Path
from typing import Final, NamedTuple

from suffice.report.figures import Drawn
from suffice.report.html_page import NOTHING, PageFigure, ReportTable, page_figure, plain, rendered, write_page
from suffice.research.data.catalogue import SETS
from suffice.research.data.protocols import MODELS, PROTOCOLS, TITLES, Experiment
from suffice.research.paper.claims import ClaimFinding
from suffice.research.paper.outcome import (
    MedianAndRange,
    RunGroup,
    RunOutcome,
    grouped,
    of_model,
    on_several_sets,
    other_arm,
    spread,
)


def settings_table(experiments: Iterable[Experiment]) -> ReportTable:
    """Columns, splits and settings of some experiments of one protocol, a row for each.

    Args:
        experiments: At least one.
    """
    given = list(experiments)
    return ReportTable(
        f"{given[0].protocol}-settings",
        "What was run",
        ("run", "target", "inputs", "rows", "test", "pool", "initial", "steps", "thresholds", "settings"),
        tuple(_row(each) for each in given),
        "Inputs are standardised, and so is a numeric target unless it says otherwise. Thresholds are the paper's, "
        "then those of the script. Gamma, the scale of the ratio, is the minimum over so many steps.",
    )


def _row(each: Experiment) -> tuple[str, ...]:
    sizes = (each.rows, each.test, each.pool_size, each.initial, each.step_count)
    rows, test, pool, initial, steps = map(str, sizes)
    thresholds = " ".join(f"{value:g}" for value in each.thresholds)
    return each.name, _target(each), _inputs(each), rows, test, pool, initial, steps, thresholds, _settings(each)


def _target(each: Experiment) -> str:
    view = each.view
    if view.positive is not None:
        return f"{view.target} = {view.positive:g}"
    return view.target if view.standardised else f"{view.target}, as it is"


def _inputs(each: Experiment) -> str:
    """Number of inputs, and columns that are neither inputs nor target."""
    columns, view = SETS[each.data].columns, each.view
    if not columns:
        return "28 x 28 pixels"
    left = [name for name in columns if name not in (*view.inputs, view.target)]
    leak = f"; {view.target} is one of them" if view.target in view.inputs else ""
    return f"{len(view.inputs)}, all{f' but {_joined(left)}' if left else ' others'}{leak}"


def _joined(names: list[str]) -> str:
    return " and ".join(names)


def _settings(each: Experiment) -> str:
    words = {"pool": "the pool, before the run", "bought": "labels bought, or outside", "outside": "labels outside"}
    parts = [] if each.model == "bdnn" else [f"hyper-parameters from {words[each.hyperparameters]}"]
    if each.inverse_precision is not None:
        parts = [f"C = {each.inverse_precision:g}"]
    if each.centres:
        parts.append(f"{each.centres} centres, {each.bandwidth:g} of a step wide")
    if each.noise_floor is not None:
        parts.append(f"noise at least {each.noise_floor:g}")
    if each.model == "bdnn":
        parts.append(f"{each.batch} labels an acquisition")
    parts.append(f"gamma over {each.calibration}")
    return "; ".join(parts) or NOTHING


def findings_markdown(findings: Iterable[ClaimFinding]) -> str:
    """The findings as a list, those on each protocol under a heading of their own.

    Examples:
        >>> print(findings_markdown([ClaimFinding("It stops", "figure 7", "published", "holds", "At 67.")]))
        **As published**
        <BLANKLINE>
        - *It stops* (figure 7): **holds**. At 67.
        <BLANKLINE>
    """
    given, lines = list(findings), []
    for protocol, heading in TITLES.items():
        own = [each for each in given if each.protocol == protocol]
        if own:
            told = (f"- *{plain(each.claim)}* ({each.where}): **{each.verdict}**. {plain(each.words)}" for each in own)
            lines += [f"**{heading}**", "", *told, ""]
    return "\n".join(lines)


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
    """Cost of learning hyper-parameters from bought labels."""
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


_NAMES: Final = {**TITLES, "further": "Further"}
_ABOUT: Final = {
    "published": (
        "What the authors ran, with the errors of their scripts. It shows whether our computations equal theirs: "
        "the correlations should come out as printed in the paper."
    ),
    "corrected": (
        "What the paper says, on the columns that it means, with hyper-parameters learned from labels that the run has "
        "paid for, and over several seeds. It shows what holds up."
    ),
    "further": "What belongs to neither of the two.",
}
#: The verdicts from good to bad: how each looks, what it begins with, and how it is counted for one and for several.
_VERDICTS: Final = {
    "holds": ("holds", "✓", "holds", "hold"),
    "holds in part": ("in-part", "◐", "holds in part", "hold in part"),
    "does not hold": ("fails", "✗", "does not hold", "do not hold"),
    "not tested": ("untested", "–", "was not tested", "were not tested"),  # noqa: RUF001 - a dash is meant
}
_TERMS: Final = (
    (
        "Error ratio",
        "A bound on how much the last label can have changed the model's expected error, divided by the least such "
        "bound among the first labels of the run. It is 1 until there are enough of those, and falls as labels change "
        "less.",
    ),
    (
        "Threshold, stop",
        "A threshold λ stops a run at the first label at which the error ratio is at most λ. "
        "Never: the ratio did not come down to it before the run ended.",
    ),
    (
        "Error",
        "The expected error on rows set aside for the test: the mean squared error plus the model's own variance for a "
        "number, the cross entropy for a class. Under the published protocol: what the authors' scripts recorded.",
    ),
    (
        "Correlation",
        "Of error ratio and error, at those labels only at which the ratio was lower than ever before: elsewhere it "
        "cannot stop a run. It is undefined with fewer than three of them.",
    ),
    (
        "Excess",
        "How far the error at the stop is above the least of the run: (error at the stop - least error) / (first error "
        "- least error). 0 is the best of the run, 1 no better than the first error, more than 1 worse. The least may "
        "come before the stop or after it; where the error rises at first, the share is larger than it looks.",
    ),
    (
        "Verdict",
        "Decided by our rules, the same for every run: a claim holds if all cases that it speaks of agree, in "
        "part if at least half do, else it does not hold. A high correlation is one above 0.9; one place is an excess "
        "within 0.1; an error has risen again if it ends more than 5 % above its least; a published number is met to "
        "its last digit by GPR and BRR, and within 0.05 by BLR and BDNN, whose picks depend on a solver's tolerance or "
        "on a training.",
    ),
    (
        "Bought, outside",
        "Whether hyper-parameters were learned from the labels bought so far, as in practice, or from other labels "
        "that the run did not pay for. The second shows what learning them costs.",
    ),
    (
        "Median (lowest to highest)",
        "Over the seeds, which change the test rows, the pool and the first labels. A run that never stopped counts as "
        "later than all others.",
    ),
)


_PAPER: Final = (
    "The paper: H. Ishibashi and H. Hino, Stopping criterion for active learning based on error stability, 2021 "
    "(arXiv:2104.01836). GPR is Gaussian process regression, BRR Bayesian ridge regression, BLR Bayesian logistic "
    "regression, BDNN a Bayesian deep neural network."
)


class ClaimFindings(NamedTuple):
    """Findings on one claim of the paper.

    Attributes:
        claim: The claim.
        where: Where the paper makes it.
        findings: What was found, protocol by protocol.
    """

    claim: str
    where: str
    findings: list[ClaimFinding]


class ReportPart(NamedTuple):
    """Part of the report for one protocol, or for none.

    Attributes:
        about: What the protocol shows.
        figures: Its figures.
        tables: Its tables.
    """

    about: str
    figures: list[PageFigure]
    tables: list[ReportTable]


@dataclass(frozen=True)
class PaperReportContents:
    """Contents of the page.

    Attributes:
        title: Its heading.
        findings: Claims of the paper with what was found.
        scope: What the findings are judged from, in sentences; nothing if from everything.
        tables: Tables; the first word of a name, up to the hyphen, is the protocol, or it comes after both.
        figures: Figures in their files, named likewise.
        skipped: Runs that are missing, each with the reason.
        provenance: How it was made, name by name: the command, versions, the device. No date, so that the same runs
            give the same page.
    """

    title: str
    findings: Sequence[ClaimFinding] = ()
    scope: Sequence[str] = ()
    tables: Sequence[ReportTable] = ()
    figures: Sequence[Drawn] = ()
    skipped: Sequence[tuple[str, str]] = ()
    provenance: Sequence[tuple[str, str]] = ()


def write_report(path: Path, contents: PaperReportContents) -> None:
    """Write the page, whole or not at all.

    Raises:
        SufficeError: It cannot be written, or a figure's file cannot be read.
    """
    write_page(path, report(contents))


def report(contents: PaperReportContents) -> str:
    """The page as text."""
    parts = {
        name: ReportPart(
            _ABOUT[name],
            [page_figure(each) for each in contents.figures if _part(each.name) == name],
            [each for each in contents.tables if _part(each.name) == name],
        )
        for name in _NAMES
    }
    filled = {name: part for name, part in parts.items() if part.figures or part.tables}
    claims: dict[tuple[str, str], list[ClaimFinding]] = {}
    for each in contents.findings:
        claims.setdefault((each.claim, each.where), []).append(each)
    return rendered(
        "paper_report.html.jinja",
        package="suffice.research",
        title=contents.title,
        headings={
            "summary": "Summary",
            **{name: _NAMES[name] for name in filled},
            "reading": "How to read it",
            **({"skipped": "Left out"} if contents.skipped else {}),
            **({"provenance": "How this page was made"} if contents.provenance else {}),
        },
        paper=_PAPER,
        counts=[(_NAMES[name], counted) for name in PROTOCOLS if (counted := _counted(contents.findings, name))],
        scope=contents.scope,
        claims=[ClaimFindings(claim, where, found) for (claim, where), found in claims.items()],
        protocol_names=_NAMES,
        badges={verdict: (look, sign) for verdict, (look, sign, _, _) in _VERDICTS.items()},
        parts=filled,
        terms_of_page=_TERMS,
        skipped=contents.skipped,
        provenance=contents.provenance,
    )


def _counted(findings: Sequence[ClaimFinding], protocol: str) -> str:
    """Number of tested claims that hold under a protocol; empty if none was tested."""
    given = [each.verdict for each in findings if each.protocol == protocol]
    tested = [verdict for verdict in given if verdict != "not tested"]
    if not given:
        return ""
    parts = []
    for verdict, (_, _, one, several) in _VERDICTS.items():
        number = given.count(verdict)
        of_all = f" of {len(tested)} claims" if verdict == "holds" else ""
        if number or of_all:
            parts.append(f"{number}{of_all} {one if number == 1 else several}")
    return f"{', '.join(parts)}."


def _part(name: str) -> str:
    protocol = name.partition("-")[0]
    return protocol if protocol in PROTOCOLS else "further"
