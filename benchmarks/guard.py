"""Whether a public call has become slower: seven ratios to plain references, compared with stored ones.

Each ratio is the processor time of a plain reference over that of the call, one thread, the best of three times each,
in turn. A row that is more than a factor of 2 worse than ``guard_ratios.json`` is measured again, and if it is worse
again, this exits with 1. ``--update`` stores the ratios. `make guard` and continuous integration run it.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from guard_ratios import FACTOR, STORED, load, save, too_slow
from guard_rows import GuardRow, guard_rows
from tables import table

HEADER = ["call", "takes", "reference takes", "ratio", "stored", ""]
TIMES = 3


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def measured(row: GuardRow) -> tuple[float, float]:
    """Least times of the call and of the reference; the first run of each is not counted, and compares the results."""
    row.agree(row.call(), row.reference())
    ours, theirs = zip(*((timed(row.call)[0], timed(row.reference)[0]) for _ in range(TIMES)), strict=True)
    return min(ours), min(theirs)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--update", action="store_true", help=f"store the ratios in {STORED.name}")
    update = parser.parse_args(argv).update
    rows, stored = guard_rows(), {} if not STORED.exists() else load()
    times = {name: measured(row) for name, row in rows.items()}
    ratios = {name: theirs / ours for name, (ours, theirs) in times.items()}
    slow: list[str] = []
    if update:
        save(ratios)
    else:
        for name in too_slow(ratios, stored):
            # Once more, because other work on the machine can disturb a measurement.
            ours, theirs = times[name] = measured(rows[name])
            ratios[name] = theirs / ours
        slow = too_slow(ratios, stored)
    cells = [
        [
            name,
            f"{times[name][0]:.3f} s",
            f"{times[name][1]:.3f} s",
            f"{ratio:.2f}x",
            f"{stored[name]:.2f}x" if name in stored else "",
            "too slow" if name in slow else "",
        ]
        for name, ratio in ratios.items()
    ]
    print(table(HEADER, cells))
    if slow:
        print(f"More than a factor of {FACTOR:g} slower than stored: {', '.join(slow)}.", file=sys.stderr)
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
