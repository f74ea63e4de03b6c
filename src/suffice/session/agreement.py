"""How far people agree, where two of them labelled the same item."""

import math
from dataclasses import dataclass

from suffice.criteria.agreement import cohen_kappa
from suffice.session.events import Label
from suffice.session.settings import Settings
from suffice.session.state import LabelledItem, ProjectState


@dataclass(frozen=True)
class Agreement:
    """What two people said of the same items.

    Attributes:
        both: Items that two people labelled.
        same: How many of them got the same label from both.
        kappa: Cohen's kappa, the agreement beyond chance, from -1 to 1; None for numbers.
        difference: Mean of how far apart two numbers are; None for classes.
    """

    both: int
    same: int
    kappa: float | None
    difference: float | None


def agreement(state: ProjectState, settings: Settings) -> Agreement | None:
    """Compare the first two opinions of each item that has them; corrections do not count.

    Args:
        state: Where the project stands.
        settings: What it is about.

    Returns:
        The agreement, or None while no item has the opinions of two people.

    Examples:
        >>> from suffice.session.events import Event, EventKind
        >>> state = ProjectState(1)
        >>> for seq, (name, label) in enumerate([("ann", 2.0), ("bob", 5.0)], start=1):
        ...     state.apply(Event(EventKind.labelled, name, 0, {"label": label}, seq=seq))
        >>> agreement(state, Settings("p", "regression", (), "y", "table", ("a",), None, "gp", {}))
        Agreement(both=1, same=0, kappa=None, difference=3.0)
    """
    pairs = [pair for each in state.labelled() if (pair := pair_of(each)) is not None]
    if not pairs:
        return None
    same = sum(one == other for one, other in pairs)
    if settings.task == "regression":
        apart = math.fsum(abs(float(one) - float(other)) / len(pairs) for one, other in pairs)
        return Agreement(len(pairs), same, None, apart)
    code = {name: at for at, name in enumerate(settings.classes)}
    first, second = ([code[str(pair[at])] for pair in pairs] for at in (0, 1))
    return Agreement(len(pairs), same, cohen_kappa(first, second), None)


def pair_of(labelled: LabelledItem) -> tuple[Label, Label] | None:
    """The labels of the first two people who labelled an item, by their names, or None where it was one.

    Of more than two people all are raters alike: the order of the names makes the same labels give the same kappa,
    whoever came first.
    """
    if len(labelled.opinions) < 2:
        return None
    one, other = sorted(labelled.opinions[:2], key=lambda opinion: opinion.person)
    return one.label, other.label
