"""What holds of the paper's claims, as Markdown."""

from collections.abc import Iterable

from suffice.experiments.paper.claims import Finding

_HEADINGS = {"published": "As published", "corrected": "Corrected"}


def findings_markdown(findings: Iterable[Finding]) -> str:
    """The findings as a list, those on each protocol under a heading of their own.

    Examples:
        >>> print(findings_markdown([Finding("It stops", "figure 7", "published", "holds", "At 67.")]))
        **As published**
        <BLANKLINE>
        - *It stops* (figure 7): **holds**. At 67.
        <BLANKLINE>
    """
    given, lines = list(findings), []
    for protocol, heading in _HEADINGS.items():
        own = [each for each in given if each.protocol == protocol]
        if own:
            told = (f"- *{each.claim}* ({each.where}): **{each.verdict}**. {each.words}" for each in own)
            lines += [f"**{heading}**", "", *told, ""]
    # Data sets have underscores in their names, which Markdown might take for emphasis.
    return "\n".join(lines).replace("_", "\\_")
