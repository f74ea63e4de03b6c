"""Whether there is memory for a run, told before it starts."""

import os

from suffice.errors import NotEnoughMemoryError


def free_memory() -> int | None:
    """Bytes that can be had without swapping; None where the system does not tell."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


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
    if free is None or needed <= free:
        return
    remedy = "dtype='float32', which takes about half, fewer steps" if halved else "fewer steps"
    raise NotEnoughMemoryError(
        f"{what} needs {_figure(needed)} of memory, and {_figure(free)} are free: {remedy} or a smaller pool would help"
    )


def _figure(size: int) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.1f} MB"
