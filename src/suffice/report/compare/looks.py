"""How rules look in the figures: told apart by colour, by lightness, and by the shape of their marks."""

from dataclasses import dataclass
from typing import Any, Final

from suffice.report.compare.boards import REFERENCES
from suffice.report.style import INK, MUTED


@dataclass(frozen=True)
class RuleStyle:
    """Colour and marker of a rule in the figures.

    Attributes:
        colour: Of its line and marks.
        marker: Shape of its marks.
        dashes: Of its line.
    """

    colour: str
    marker: str
    dashes: Any = "-"


#: For rules from the best on; they go from dark to light and back, so that neighbours differ without colours too.
_RANKED: Final = (
    RuleStyle("#0b3c6f", "o"),
    RuleStyle("#d55e00", "s"),
    RuleStyle("#00664b", "^"),
    RuleStyle("#e69f00", "D"),
    RuleStyle("#8c2d6e", "v"),
    RuleStyle("#56a4d9", "P"),
    RuleStyle("#5c3d1e", "X"),
    RuleStyle("#d47fb4", "p"),
)
#: The references, all in grey.
_REFERENCES: Final = {
    "Budget": RuleStyle(INK, "", (0, (5, 2))),
    "PoolFraction": RuleStyle(INK, "", (0, (5, 2, 1, 2))),
    "Never": RuleStyle(MUTED, "", (0, (1, 1.5))),
    "RandomStop": RuleStyle(MUTED, "", (0, (3, 1.5, 1, 1.5))),
}
#: How many rules are told apart.
MOST: Final = len(_RANKED)


def rule_style(rule: str, place: int) -> RuleStyle:
    """Return the style of the rule at a place among the best; that of a reference is fixed.

    Examples:
        >>> rule_style("Budget", 3).colour, rule_style("LabelWorth", 0).marker
        ('#1f2933', 'o')
    """
    if rule in REFERENCES:
        return _REFERENCES.get(rule, RuleStyle(MUTED, ""))
    return _RANKED[place % MOST]
