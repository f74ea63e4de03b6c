"""The demonstration keeps its promise: no label is seen before it is bought."""

from typing import Any

import numpy as np
import pytest

from suffice import ErrorStability
from suffice.cli.demo_command import INITIAL, label_pool
from suffice.errors import InvalidValueError
from suffice.tables.example_data import Task, demo_task


@pytest.mark.parametrize("kind", ["regression", "classification"])
def test_no_label_is_seen_before_it_is_bought(kind: str) -> None:
    """Labels that are never bought are made NaN: nothing may change."""
    rng = np.random.default_rng(1)
    task = demo_task(kind, rng)  # type: ignore[arg-type]
    state = rng.bit_generator.state

    def run(job: Task, steps: int) -> list[tuple[int, float | None]]:
        rng.bit_generator.state = state
        out = []
        for progress, _ in zip(label_pool(job, ErrorStability(0.1), rng), range(steps), strict=False):
            out.append((progress.n_labelled, progress.verdict.value))
        return out

    bought = _bought(task, state, 30)
    hidden = np.full_like(task.y_pool, np.nan)
    hidden[bought] = task.y_pool[bought]
    blind = Task(task.name, task.kind, task.X_pool, hidden, task.X_test, task.y_test)
    assert run(blind, 30) == run(task, 30)


def _bought(task: Task, state: Any, steps: int) -> list[int]:
    """Indices that the run asks for, by watching which labels it reads."""
    read: list[int] = []

    class Watched(np.ndarray[Any, Any]):
        def __getitem__(self, key: Any) -> Any:
            if isinstance(key, list):
                read.extend(i for i in key if i not in read)
            return np.asarray(self)[key]

    rng = np.random.default_rng(1)
    demo_task(task.kind, rng)
    rng.bit_generator.state = state
    job = Task(task.name, task.kind, task.X_pool, task.y_pool.view(Watched), task.X_test, task.y_test)
    for progress, _ in zip(label_pool(job, ErrorStability(0.1), rng), range(steps), strict=False):
        assert len(read) == progress.n_labelled
    assert len(read) >= INITIAL + steps
    return read


def test_an_unknown_task_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="task must be 'regression' or 'classification'"):
        demo_task("guessing", np.random.default_rng(0))  # type: ignore[arg-type]
