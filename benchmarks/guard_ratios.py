"""Whether a call has become slower: measured ratios against stored ones. Nothing is timed here."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

#: The ratios of the last ``guard.py --update``.
STORED: Final = Path(__file__).with_suffix(".json")
#: A ratio below the stored one over this factor is a failure.
FACTOR: Final = 2.0


def too_slow(measured: Mapping[str, float], stored: Mapping[str, float], factor: float = FACTOR) -> list[str]:
    """Names of the rows whose ratio is more than a factor worse than stored, in the order measured.

    Args:
        measured: Time of the reference over the time of the call, by row.
        stored: The same of an earlier run.
        factor: Largest acceptable factor between them.

    Raises:
        KeyError: A measured row is not stored.
    """
    return [name for name, ratio in measured.items() if ratio * factor < stored[name]]


def load(path: Path = STORED) -> dict[str, float]:
    """The stored ratios by row."""
    return {name: float(ratio) for name, ratio in json.loads(path.read_text()).items()}


def save(ratios: Mapping[str, float], path: Path = STORED) -> None:
    """Store ratios by row, with three digits."""
    rounded = {name: float(f"{ratio:.3g}") for name, ratio in ratios.items()}
    path.write_text(json.dumps(rounded, indent=2) + "\n")
