r"""Guarantees for groups of items from one check: by predicted class, by source, by customer, or by month.

Group :math:`g` has :math:`M_g` items of the pool. Given that :math:`m_g` items of the check belong to it, these are a
uniform sample of the group, so that the bound :math:`U(\alpha'; M_g, m_g, k_g)` holds for it. With :math:`G` groups and
:math:`K` columns of predictions, each statement gets :math:`\alpha' = \alpha_j / (K (G + 1))`: one part for each group
and one for all items together. By the union bound all statements hold together.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from suffice.arguments import whole
from suffice.checks.guarantee import Guarantee, UnlabelableAs, known_fields
from suffice.checks.random_check import (
    Check,
    complete_evidence,
    part_guarantee,
    require_fixed_size,
    values_by_item,
)
from suffice.errors import InvalidTypeError, InvalidValueError
from suffice.presentation.html_parts import card
from suffice.presentation.prediction_words import group_line, group_lines


@dataclass(frozen=True)
class GroupGuarantees:
    """Guarantees for all items and for each group of them. They hold together with the stated confidence.

    Attributes:
        total: The guarantee for all items.
        groups: The guarantee for each group by its name, the worst first.

    Examples:
        >>> total = Guarantee.of_error(3, 100, 4600, alpha=0.01)
        >>> news = Guarantee.of_error(3, 60, 3000, alpha=0.01, group="news")
        >>> sport = Guarantee.of_error(0, 40, 1600, alpha=0.01, group="sport")
        >>> print(GroupGuarantees(total, {"sport": sport, "news": news}))
        At most 9.8 % of the predictions for the 4,500 unlabelled items are wrong (99 % confidence).
        Together with this, for each group, the worst first:
        - 'news': at most 16 % of 2,940 unlabelled items are wrong (60 checked, 3 wrong)
        - 'sport': at most 11 % of 1,560 unlabelled items are wrong (40 checked, 0 wrong)
    """

    total: Guarantee
    groups: dict[str, Guarantee]

    def __post_init__(self) -> None:
        for name, each in self.groups.items():
            if each.group != name or (each.alpha, each.confidence) != (self.total.alpha, self.total.confidence):
                raise InvalidValueError(
                    f"the guarantee of group {name!r} must have its name, and the alpha of the total"
                )
        if self.total.group is not None or self.total.allowed is not None:
            raise InvalidValueError("total must be a guarantee for all items, from a check of fixed size")
        for field in ("pool", "checked", "wrong", "unlabelable"):
            found = sum(getattr(each, field) for each in self.groups.values())
            if found != getattr(self.total, field):
                raise InvalidValueError(
                    f"{field} of the groups must add up to {getattr(self.total, field)}, not {found}"
                )
        worst = sorted(self.groups.items(), key=lambda pair: (-_value(pair[1]), -pair[1].remaining, pair[0]))
        object.__setattr__(self, "groups", dict(worst))

    def __str__(self) -> str:
        return "\n".join(group_lines(str(self.total), [_row(each) for each in self.groups.values()]))

    def _repr_html_(self) -> str:
        """The guarantees as a table, for notebooks."""
        rows = [(name, group_line(_row(each))) for name, each in self.groups.items()]
        return card(str(self.total), rows, tone="stop")

    def to_dict(self) -> dict[str, Any]:
        """Return the guarantees as JSON values.

        Examples:
            >>> total = Guarantee.of_error(0, 40, 90, alpha=0.01)
            >>> made = GroupGuarantees(total, {"a": Guarantee.of_error(0, 40, 90, alpha=0.01, group="a")})
            >>> made.to_dict()["groups"][0]["wrong_at_most"]
            7
            >>> GroupGuarantees.from_dict(made.to_dict()) == made
            True
        """
        return {"total": self.total.to_dict(), "groups": [each.to_dict() for each in self.groups.values()]}

    @staticmethod
    def from_dict(saved: Mapping[str, Any]) -> "GroupGuarantees":
        """Restore guarantees from :meth:`to_dict`.

        Args:
            saved: The result of :meth:`to_dict`.

        Raises:
            InvalidValueError: A field is missing, unknown or out of range, or the groups do not add up to the total.
        """
        values = known_fields(GroupGuarantees, saved)
        if not isinstance(values["groups"], Sequence) or isinstance(values["groups"], str):
            raise InvalidValueError("groups of saved GroupGuarantees must be a list of guarantees")
        groups = [Guarantee.from_dict(each) for each in values["groups"]]
        named = {each.group or "": each for each in groups}
        if len(named) < len(groups):
            raise InvalidValueError("groups of saved GroupGuarantees must have different names")
        return GroupGuarantees(Guarantee.from_dict(values["total"]), named)


def by_group(  # noqa: PLR0913 - keyword arguments with defaults
    check: Check,
    predictions: Mapping[int, Any] | Sequence[Any] | ArrayLike,
    groups: Mapping[int, str] | Sequence[str] | ArrayLike,
    sizes: Mapping[str, int],
    *,
    tolerance: float | None = None,
    columns: int = 1,
    unlabelable_as: UnlabelableAs = "wrong",
    model: str = "",
) -> GroupGuarantees:
    r"""Guarantee the share of wrong predictions for all items and for each group of them, from one check.

    The statements hold together: with :math:`G` groups each uses :math:`\alpha_j / (K (G + 1))`. A group is a property
    that is known for every item before the draw, such as the predicted class or the source. Do not use the true class:
    its number of items is not known, and such statements are false too often. Do not leave out groups after the draw.

    Args:
        check: A complete check of fixed size.
        predictions: Predictions that were fixed before the draw: by item, or in the order of ``check.items``.
        groups: Name of the group of each checked item: by item, or in the order of ``check.items``.
        sizes: Number of items of the pool in each group that has any, fixed before the draw. They add up to
            ``check.pool``.
        tolerance: Largest acceptable distance between number and prediction; None for classes.
        columns: ``K``, the number of columns of predictions for which the groups of this check are evaluated. Call this
            function once for each; the best one may be kept. Other kinds of statements from this check count, too.
        unlabelable_as: Whether an item that cannot be labelled counts as ``"wrong"`` or is ``"excluded"``.
        model: Name of the model or of its predictions.

    Returns:
        The guarantee for all items and that of each group. For a group without checked items nothing is guaranteed:
        its bound is all of its items.

    Raises:
        InvalidTypeError: The check, the groups or the sizes are of the wrong type.
        InvalidValueError: The check is sequential or not complete, a prediction or a group is missing, or the sizes do
            not fit the check.

    Examples:
        >>> check = Check(tuple(range(100)), pool=4600).tell(dict.fromkeys(range(100), "ham"))
        >>> groups = ["news"] * 60 + ["sport"] * 40
        >>> sizes = {"news": 2800, "sport": 1790, "weather": 10}
        >>> found = by_group(check, ["spam"] * 3 + ["ham"] * 97, groups, sizes)
        >>> print(found.groups["news"])
        At most 17 % of the predictions for the 2,740 unlabelled items of group 'news' are wrong (95 % confidence).
        >>> print(found.groups["weather"])
        Nothing is guaranteed for the 10 unlabelled items of group 'weather': none of them was checked.
    """
    require_fixed_size(check, "for statements about groups")
    if not isinstance(sizes, Mapping) or not sizes:
        raise InvalidTypeError(
            f"sizes must be a mapping of each group to its number of items, not {sizes!r}; for example "
            '{"news": 812, "sport": 388}'
        )
    counts = {_name(name, "a group in sizes"): whole(size, f"sizes[{name!r}]", least=1) for name, size in sizes.items()}
    if sum(counts.values()) != check.pool:
        raise InvalidValueError(
            f"sizes must add up to the {check.pool:,} items from which the check was drawn, not to "
            f"{sum(counts.values()):,}; count every item of the pool in one group"
        )
    named = {item: _name(name, "a group") for item, name in values_by_item(check, groups, "groups").items()}
    members: dict[str, list[int]] = defaultdict(list)
    for item, name in named.items():
        members[name].append(item)
    for name, items in members.items():
        size = counts.get(name, 0)
        if len(items) > size:
            raise InvalidValueError(
                f"sizes must have at least the {len(items)} checked items of group {name!r}, not {size}; count every "
                "item of the pool in its group"
            )
    parts = whole(columns, "columns", least=1) * (len(counts) + 1)
    total = check.guarantee(predictions, tolerance=tolerance, parts=parts, unlabelable_as=unlabelable_as, model=model)
    _, alpha, stated = complete_evidence(check, predictions, parts, unlabelable_as, model)
    values = values_by_item(check, predictions)
    made = {
        name: part_guarantee(
            check, members[name], size, values, tolerance=tolerance, alpha=alpha, stated={**stated, "group": name}
        )
        for name, size in counts.items()
    }
    return GroupGuarantees(total, made)


def _name(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise InvalidTypeError(f"{what} must be a text, not {value!r}; convert it with str")
    return str(value)


def _value(guarantee: Guarantee) -> float:
    return guarantee.value if guarantee.remaining else guarantee.value_for_all


def _row(guarantee: Guarantee) -> dict[str, Any]:
    """The values of a line of the table."""
    return {
        "group": guarantee.group,
        "value": None if guarantee.without_evidence else _value(guarantee),
        "items": guarantee.remaining or guarantee.pool,
        "unlabelled": guarantee.remaining > 0,
        "checked": guarantee.checked,
        "wrong": guarantee.wrong,
        "unlabelable": guarantee.unlabelable,
        "tolerance": guarantee.tolerance,
    }
