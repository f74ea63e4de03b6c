"""Boards as files: JSON as it is, and CSV with one column for each number."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from suffice.files import write_bytes_whole


def write_json(path: Path, value: Any) -> None:
    """Write rows, or anything made of JSON values, whole or not at all.

    Raises:
        SufficeError: It cannot be written.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     write_json(Path(folder, "board.json"), [{"rule": "Budget", "stop": None}])
        ...     json.loads(Path(folder, "board.json").read_text())
        [{'rule': 'Budget', 'stop': None}]
    """
    write_bytes_whole(path, (json.dumps(value, indent=1, allow_nan=False) + "\n").encode())


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as a table, whole or not at all; see :func:`csv_of`.

    Raises:
        SufficeError: It cannot be written.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     write_csv(Path(folder, "board.csv"), [{"rule": "Budget", "labels": 10}])
        ...     Path(folder, "board.csv").read_text().split()
        ['rule,labels', 'Budget,10']
    """
    write_bytes_whole(path, csv_of(rows).encode())


def csv_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as CSV.

    A dictionary ``regret`` becomes a column ``regret_10`` and so on, an interval two columns ``_low`` and ``_high``,
    parameters JSON; None is empty.

    Examples:
        >>> print(csv_of([{"rule": "Budget", "params": {"labels": 10}, "regret": {"10": 0.5}, "interval": [0.1, 0.9]}]))
        rule,params,regret_10,interval_low,interval_high
        Budget,"{""labels"": 10}",0.5,0.1,0.9
        <BLANKLINE>
    """
    flat = [_flat(row) for row in rows]
    names = list(dict.fromkeys(name for row in flat for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return text.getvalue()


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if name == "params":
            flat[name] = json.dumps(value)
        elif isinstance(value, Mapping):
            flat |= {f"{name}_{key}": each for key, each in value.items()}
        elif isinstance(value, list):
            flat |= {f"{name}_{end}": each for end, each in zip(("low", "high"), value, strict=True)}
        else:
            flat[name] = value
    return flat
