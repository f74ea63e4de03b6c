"""How many models may be fitted again for the estimate of the error."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from suffice.arguments import real

# Fits that are advanced at the start of a loop, and the number of the user's fits after which all are repaid.
_ADVANCE: Final = 15.0
_REPAID: Final = 40.0
#: Number of parts of the random labels. A model is fitted without each part.
FOLDS: Final = 5


@dataclass
class RefitBudget:
    r"""Limits the refits of a model to a multiple of the fits of its user.

    Fits are counted, not timed, so that estimates do not depend on the machine. Two counts are limited, because the
    time of a fit may depend on the number of labels or not: with :math:`n_i` labels at the user's fit ``i``,
    :math:`m_j` labels at refit ``j`` and the multiple :math:`a`, both

    .. math:: \sum_j 1 \le a \sum_i 1 + A, \qquad \sum_j m_j \le a \sum_i n_i + A n,

    where the advance ``A`` is 15 fits times ``a`` at the start, and falls to 0 at 40 fits of the user. So there are
    about as many refits for each doubling of the labels, in a run of 40 rounds. The first five refits are always
    allowed, if any are.

    Attributes:
        share: The multiple; 0 for no refits.
        fits: Number of the user's fits.
        work: Sum of their labels.
        refits: Number of refits.
        refit_work: Sum of their labels.

    Examples:
        >>> budget = RefitBudget(1.0)
        >>> for n in (100, 200, 300):
        ...     budget.count_fit(n)
        ...     allowed = budget.allowed(n, 5)
        ...     budget.spend(n, allowed)
        ...     print(n, allowed)
        100 5
        200 5
        300 5
    """

    share: float = 1.0
    fits: int = 0
    work: float = 0.0
    refits: int = 0
    refit_work: float = 0.0

    def count_fit(self, n_labels: int) -> None:
        """Count a fit of the user."""
        self.fits += 1
        self.work += n_labels

    def allowed(self, n_labels: int, wanted: int) -> int:
        """Number of refits that are allowed now, at most ``wanted``.

        Args:
            n_labels: Number of labels of each refit.
            wanted: Number of refits that would be useful.
        """
        if not self.share:
            return 0
        advance = self.share * _ADVANCE * max(0.0, 1.0 - (self.fits / _REPAID) ** 2)
        by_count = self.share * self.fits + advance - self.refits
        by_work = (self.share * self.work - self.refit_work) / max(n_labels, 1) + advance
        allowed = max(int(min(by_count, by_work)), FOLDS - self.refits, 0)
        return min(wanted, allowed)

    def spend(self, n_labels: int, refits: int) -> None:
        """Count refits with this number of labels each."""
        self.refits += refits
        self.refit_work += refits * n_labels

    def state_dict(self) -> dict[str, Any]:
        """The counts as JSON values."""
        return dict(self.__dict__)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "RefitBudget":
        """Restore :meth:`state_dict`."""
        return cls(**state)


def checked_estimate_time(value: Any) -> float:
    """Return the refits per fit of the user.

    Args:
        value: As the caller gave it.

    Raises:
        InvalidValueError: It is not a number of at least 0.
    """
    return real(value, "estimate_time", "of at least 0", lambda x: x >= 0.0)
