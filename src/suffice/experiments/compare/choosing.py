"""Which setting of a rule to use on a data set, chosen on other data sets only."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from suffice.special import Floats

# Means of the same regrets in another order may differ by this share.
_REGRET_ROUNDING = 1e-12


class ChosenSettings(NamedTuple):
    """The settings chosen for a data set, as positions in the list of settings.

    Attributes:
        one: The setting for all costs.
        per_cost: The setting for each cost.
    """

    one: int
    per_cost: tuple[int, ...]


def choose(regrets: Mapping[str, Floats], judged: str, *, default: int) -> ChosenSettings:
    """Choose the settings of least mean regret over all data sets but the one judged.

    Each data set counts the same, however many runs it has. Of settings that are equally good the default is taken,
    or else the strictest.

    Args:
        regrets: By data set, ``runs x settings x ratios``; settings from the loosest to the strictest.
        judged: The data set that the choice is for; its regrets are not looked at, but for how many ratios there are.
        default: Place of the default setting: the choice where there is no other data set.

    Examples:
        >>> regrets = {"a": np.array([[[0.5, 0.1], [0.3, 0.4]]]), "b": np.array([[[9.0, 9.0], [0.0, 0.0]]])}
        >>> choose(regrets, "b", default=0)
        ChosenSettings(one=0, per_cost=(1, 0))
    """
    others = [np.asarray(values).mean(axis=0) for data, values in regrets.items() if data != judged]
    if not others:
        return ChosenSettings(default, (default,) * np.shape(regrets[judged])[-1])
    mean = np.mean(others, axis=0)
    return ChosenSettings(_least(mean.mean(axis=1), default), tuple(_least(column, default) for column in mean.T))


def _least(values: Floats, default: int) -> int:
    """Place of the least value; of several the default, or else the last."""
    best = values.min()
    tied = np.flatnonzero(values <= best + _REGRET_ROUNDING * max(abs(best), _REGRET_ROUNDING))
    return default if default in tied else int(tied[-1])
