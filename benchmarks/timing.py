"""How long something takes: the median of several times."""

import time
from collections.abc import Callable
from statistics import median


def seconds(work: Callable[[], object], times: int = 3) -> float:
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return median(taken)
