"""Check that there is enough memory for a run, before it starts."""

import psutil

from suffice.errors import NotEnoughMemoryError


def free_memory() -> int:
    """Return the bytes that can be allocated without swapping."""
    return psutil.virtual_memory().available


def require_memory(needed: int, what: str, *, halved: bool = False) -> None:
    """Refuse to start what does not fit, with the figures.

    Args:
        needed: Bytes.
        what: What they are needed for.
        halved: Whether single precision would halve it.

    Raises:
        NotEnoughMemoryError: More is needed than is free.

    Examples:
        >>> require_memory(10**15, "following the pool")
        Traceback (most recent call last):
        ...
        suffice.errors.NotEnoughMemoryError: following the pool needs 1,000,000.0 GB of memory, and ... GB are free...
    """
    free = free_memory()
    if needed <= free:
        return
    remedy = "dtype='float32', which takes about half, fewer steps" if halved else "fewer steps"
    raise NotEnoughMemoryError(
        f"{what} needs {figure(needed)} of memory, and {figure(free)} are free: {remedy} or a smaller pool would help"
    )


def figure(size: float) -> str:
    """Bytes in words.

    Examples:
        >>> figure(2_500_000_000)
        '2.5 GB'
    """
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.1f} MB"
