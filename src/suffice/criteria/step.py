"""What a stopping rule is told about one step of labelling."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from suffice.arguments import whole
from suffice.bounds import nonnegative
from suffice.divergence import Divergence, kl
from suffice.errors import InvalidTypeError, InvalidValueError


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

    @classmethod
    def sequence(
        cls, n_labelled: ArrayLike, kl_new_old: ArrayLike, kl_old_new: ArrayLike, *, estimated: str = ""
    ) -> "list[Step]":
        """Make the steps of a whole run from arrays, which are checked as a whole.

        Args:
            n_labelled: Labels bought after each step.
            kl_new_old: ``KL[new||old]`` of each step.
            kl_old_new: ``KL[old||new]``.
            estimated: As for one step.

        Returns:
            One step for each entry.

        Examples:
            >>> [step.n_labelled for step in Step.sequence([11, 12], [0.5, 0.4], [0.6, 0.4])]
            [11, 12]
        """
        counts = np.asarray(n_labelled)
        if counts.dtype.kind not in "iu" or counts.ndim != 1 or counts.min(initial=0) < 0:
            raise InvalidValueError("n_labelled must hold whole numbers, 0 or more")
        columns = [counts, nonnegative(kl_new_old, "kl_new_old"), nonnegative(kl_old_new, "kl_old_new")]
        if len({column.shape for column in columns}) > 1:
            raise InvalidValueError(
                f"one entry a step is needed; the shapes are {[column.shape for column in columns]}"
            )
        steps = []
        for n, a, b in zip(*(column.tolist() for column in columns), strict=True):
            # Checked above, so the constructor need not do it again for each.
            step = object.__new__(cls)
            step.__dict__.update(n_labelled=n, kl_new_old=a, kl_old_new=b, estimated=estimated)
            steps.append(step)
        return steps


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
