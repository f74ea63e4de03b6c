"""What holds of the paper's claims, as Markdown."""

from collections.abc import Iterable

from suffice.data.protocols import TITLES
from suffice.experiments.paper.claims import ClaimFinding
from suffice.report.table import plain


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
