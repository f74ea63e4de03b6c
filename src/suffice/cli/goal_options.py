"""Options of commands about a goal for all labels of a data set."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

import typer

from suffice.cli.rule_options import RuleOptions, cost, share_of
from suffice.cli.settings_options import Before
from suffice.errors import InvalidValueError

Of = Annotated[
    str | None,
    typer.Option(
        metavar="WHAT",
        help="What --at-most is a share of: rest, the items without a label; or all, all final labels, of which those "
        "of people count as right (with --positive: all items of the class, of which this share may be missed). With "
        "all, the goal alone decides when to stop.",
        show_default="rest",
    ),
    Before("error_cost"),
]
AnnotatorError = Annotated[
    str | None,
    typer.Option(
        metavar="SHARE",
        help="With --of all: the share of people's labels that may be wrong; it is subtracted from --at-most.",
        show_default="0",
    ),
    Before("error_cost"),
]
CorrectionCost = Annotated[
    float | None,
    typer.Option(
        metavar="COST",
        help="With --of all: cost of an answer in the check, relative to a label.",
        show_default="1",
    ),
    Before("error_cost"),
]

Expected = Annotated[
    str | None,
    typer.Option(
        metavar="SHARE",
        help="With --at-most: the share of wrong predictions that you expect, for which the check is planned. A wrong "
        "guess costs answers, and does not change what is proven.",
        show_default="half of --at-most; in a project with a model, its estimate",
    ),
]


def expected_of(text: str | None) -> float | None:
    """The share of ``--expected``, at least 0 and below 1; None if it was not given.

    Raises:
        InvalidValueError: It is not such a share.

    Examples:
        >>> expected_of("2%"), expected_of(None)
        (0.02, None)
    """
    return share_of(text, "--expected", or_none=True)


def target_of(text: str | None) -> str | None:
    """What ``--of`` says: ``"rest"`` or ``"all"``; None if it was not given.

    Raises:
        InvalidValueError: It is something else.

    Examples:
        >>> target_of("all"), target_of(None)
        ('all', None)
    """
    of = None if text is None else text.strip().lower()
    if of not in (None, "rest", "all"):
        raise InvalidValueError(f"--of must be rest or all, not {text!r}")
    return of


# Options about the rule, which does not decide when to stop.
_OF_RULE: Final = tuple(name for name in RuleOptions.__dataclass_fields__ if name not in ("at_most", "tolerance"))


def require_no_rule(rule: RuleOptions, others: Sequence[str] = ()) -> None:
    """Raise an error for options that a goal for all labels does not use.

    Args:
        rule: Options about the rule.
        others: Further options that were given and are not used, such as ``"--figure"``.

    Raises:
        InvalidValueError: One was given.
    """
    given = [f"--{name.replace('_', '-')}" for name in _OF_RULE if getattr(rule, name) is not None]
    given += others
    if given:
        raise InvalidValueError(
            f"{given[0]} is not used with --of all, where the goal decides when to stop; leave it out"
        )


@dataclass(frozen=True, kw_only=True)
class GoalOptions:
    """Options of a project about a goal for all labels; None if an option was not given."""

    of: Of = None
    annotator_error: AnnotatorError = None
    correction_cost: CorrectionCost = None

    @property
    def whole(self) -> bool:
        """Whether the goal is about all labels.

        Raises:
            InvalidValueError: ``--of`` is not known, or another option is of no use without it.
        """
        whole = target_of(self.of) == "all"
        others = [name for name, value in vars(self).items() if value is not None and name != "of"]
        if others and not whole:
            name = others[0].replace("_", "-")
            raise InvalidValueError(f"--{name} is for a goal about all labels; give --of all too")
        return whole

    def arguments(self, at_most: float | None, *, screens: bool = False) -> dict[str, Any]:
        """The settings of a project that were given, besides the share.

        Args:
            at_most: The share, or None.
            screens: Whether a class is looked for.

        Raises:
            InvalidValueError: An option cannot be used, or does not go with the others.

        Examples:
            >>> GoalOptions(of="all", annotator_error="1%").arguments(0.05)
            {'of': 'all', 'annotator_error': 0.01}
        """
        people = share_of(self.annotator_error, "--annotator-error")
        given = {"of": target_of(self.of), "annotator_error": people, "correction_cost": self.correction_cost}
        if self.whole and at_most is None:
            raise InvalidValueError(
                "--of all needs --at-most, the share of wrong labels that is acceptable, such as 5%"
            )
        if screens and (people or self.correction_cost is not None):
            name = "--annotator-error" if people else "--correction-cost"
            raise InvalidValueError(
                f"{name} does not apply to a screening, whose goal is about the rows that nobody reads; leave it out"
            )
        if people is not None and at_most is not None and people >= at_most:
            raise InvalidValueError(
                f"--annotator-error {self.annotator_error} must be below --at-most {100.0 * at_most:g}%: people who "
                "label every row make as many mistakes; raise --at-most, or leave --annotator-error out"
            )
        if self.correction_cost is not None:
            cost(self.correction_cost, "--correction-cost")
        return {name: value for name, value in given.items() if value is not None}
