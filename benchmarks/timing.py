"""How long something takes: the median of several times."""

import time
from collections.abc import Callable
from statistics import median


def seconds(work: Callable[[], object], times: int = 3, clock: Callable[[], float] = time.perf_counter) -> float:
    taken = []
    for _ in range(times):
        start = clock()
        work()
        taken.append(clock() - start)
    return median(taken)
