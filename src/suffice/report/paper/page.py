"""The report: one page to be read from top to bottom, with everything that it shows inside."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from suffice.data.protocols import PROTOCOLS, TITLES
from suffice.experiments.paper.claims import ClaimFinding
from suffice.report.page import PageFigure, page_figure, rendered, write_page
from suffice.report.style import Drawn
from suffice.report.table import ReportTable

_NAMES: Final = {**TITLES, "further": "Further"}
_ABOUT: Final = {
    "published": (
        "What the authors ran, slips of their scripts included. It shows whether the computations here are theirs: "
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
        "Decided by rules of our own, the same for every run: a claim holds if all cases that it speaks of agree, in "
        "part if at least half do, else it does not hold. A high correlation is one above 0.9; one place is an excess "
        "within 0.1; an error has risen again if it ends more than 5 % above its least; a published number is met to "
        "its last digit by GPR and BRR, and within 0.05 by BLR and BDNN, whose picks depend on a solver's tolerance or "
        "on a training.",
    ),
    (
        "Bought, outside",
        "Whether hyper-parameters were learned from the labels bought so far, as in life, or from other labels that "
        "the run did not pay for. The second shows what learning them costs.",
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
    """What was found on one claim of the paper.

    Attributes:
        claim: The claim.
        where: Where the paper makes it.
        findings: What was found, protocol by protocol.
    """

    claim: str
    where: str
    findings: list[ClaimFinding]


class ReportPart(NamedTuple):
    """What belongs to one protocol, or to none.

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
    """What the page holds.

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
    """How many of the claims that were tested hold under a protocol; empty where none was judged."""
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
