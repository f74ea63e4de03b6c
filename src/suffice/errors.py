"""Every error that suffice raises on purpose: one base, and children that are also Python's own kinds.

A message names the argument, says what is required and what came, and gives the remedy.
"""


class SufficeError(Exception):
    """Base of all errors raised by suffice on purpose."""


class InvalidValueError(SufficeError, ValueError):
    """A value of the right type that cannot be used."""


class InvalidTypeError(SufficeError, TypeError):
    """A value of a type that is not known here."""


class NotPositiveDefiniteError(InvalidValueError):
    """A matrix given as a covariance or a precision is not (numerically) positive definite."""


class InfiniteDivergenceError(InvalidValueError):
    """A KL divergence is infinite, so it bounds nothing."""


class MissingInputError(InvalidValueError):
    """A stopping rule was not given a quantity that it declares in ``requires``."""


class MissingExtraError(SufficeError, ImportError):
    """An optional dependency is absent; the message holds the pip command that brings it.

    Args:
        package: Name of the package that could not be imported.
        extra: The extra of suffice that brings it.
        purpose: What it is needed for, as the subject of the sentence.
    """

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}, which is not installed. Run: pip install 'suffice[{extra}]'")


class NotEnoughMemoryError(SufficeError, MemoryError):
    """A run needs more memory than there is; the message says how much."""


class TrainingDivergedError(SufficeError, ArithmeticError):
    """A network's loss or weights are no longer finite; what it was before the training is kept."""


class MissingDataError(SufficeError):
    """A data set is not there; the message says where it belongs and how to get it."""


class CorruptDataError(SufficeError):
    """A file of a data set is not what it should be; the message holds both checksums."""
