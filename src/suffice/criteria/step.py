"""What a stopping rule is told about one step of labelling."""

import math
from dataclasses import dataclass

from suffice.arguments import whole
from suffice.bounds import nonnegative
from suffice.divergence import Divergence, kl
from suffice.errors import InvalidTypeError


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of a labelling loop, after its label (or batch of labels) has been learned from.

    Each rule names the fields it ``requires``; a loop provides those and leaves the others out. A rule of your own that
    needs another number takes it from a subclass: a frozen dataclass with one more field.

    Args:
        n_labelled: Number of labels bought so far, the initial ones included.
        kl_new_old: ``KL[new||old]``, new and old being the posteriors after and before this step's labels.
        kl_old_new: ``KL[old||new]``.
        estimated: How the divergences were estimated, if they are neither exact nor upper bounds; else empty. A
            certificate built on an estimate says that it guarantees nothing.

    Raises:
        InvalidValueError: ``n_labelled`` is not a whole number of at least 0, or a divergence is negative or NaN.
        InfiniteDivergenceError: A divergence is infinite.

    Examples:
        >>> Step(n_labelled=31, kl_new_old=0.021, kl_old_new=0.024).n_labelled
        31
    """

    n_labelled: int
    kl_new_old: float | None = None
    kl_old_new: float | None = None
    estimated: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_labelled", whole(self.n_labelled, "n_labelled", least=0))
        if not self.estimated:
            object.__setattr__(self, "estimated", _how_estimated((self.kl_new_old, self.kl_old_new)))
        for name in ("kl_new_old", "kl_old_new"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, _divergence(value, name))

    @classmethod
    def between(cls, old: object, new: object, *, n_labelled: int) -> "Step":
        """Make the step from the posteriors before and after it.

        Args:
            old: Posterior before this step's labels: anything that :func:`suffice.kl` knows.
            new: Posterior after them.
            n_labelled: Number of labels bought so far.

        Returns:
            A step with both divergences.

        Examples:
            >>> from suffice.posteriors import Gaussian
            >>> Step.between(Gaussian(0.0, 1.0), Gaussian(0.5, 1.0), n_labelled=31).kl_new_old
            0.125
        """
        return cls(n_labelled=n_labelled, kl_new_old=kl(new, old), kl_old_new=kl(old, new))


def _how_estimated(divergences: tuple[float | None, ...]) -> str:
    return "; ".join(sorted({d.how for d in divergences if isinstance(d, Divergence) and d.kind == "estimate"}))


def _divergence(value: float, name: str) -> float:
    """Return a divergence as a float, with rounding below 0 taken for 0, or say by its name what is wrong with it."""
    if isinstance(value, float) and 0.0 <= value < math.inf:
        return float(value)
    clean = nonnegative(value, name)
    if clean.ndim:
        raise InvalidTypeError(f"{name} must be one number, not an array of shape {clean.shape}")
    return float(clean)
