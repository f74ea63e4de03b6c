"""Small projects that check predictions made elsewhere."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from suffice.project.checked_predictions import PredictionOptions, make_prediction_project
from suffice.project.labelling_project import Project
from suffice.project.read_items import ReadingOptions

#: A word that occurs in hidden columns only.
SECRET = "zebrafinch"


def rows(n: int = 200, error: float = 0.05, seed: int = 0) -> tuple[list[str], dict[str, list[Any]]]:
    """True classes, and a table with texts and predictions."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(["ham", "spam", SECRET], n, p=[0.5, 0.4, 0.1])
    doubt = rng.random(n).round(6)
    llm = np.where(rng.random(n) < 2 * error * doubt, np.where(truth == "ham", "spam", "ham"), truth)
    llm[:3] = ["ham", "spam", SECRET]
    return truth.tolist(), {
        "id": [f"row-{seed}-{k}" for k in range(n)],
        "body": [f"The message with number {k} of {seed} has some words." for k in range(n)],
        "llm": llm.tolist(),
        "p": (1.0 - doubt / 2).round(6).tolist(),
        "topic": [("news", "sport")[k % 2] for k in range(n)],
    }


def made(
    place: Path | str,
    data: Any,
    *,
    at_most: float | None = 0.1,
    of: str = "rest",
    tolerance: float | None = None,
    text: str | None = "body",
    seed: int | None = 0,
    overlap: float = 0.0,
    first_check: Mapping[str, Any] | None = None,
    **options: Any,
) -> Project:
    """A project that checks the column ``llm``, or others."""
    target = {"at_most": at_most, "of": of, "tolerance": tolerance}
    reading = ReadingOptions(text=text, id="id")
    chosen = PredictionOptions(**{"columns": ("llm",), **options})
    more: dict[str, Any] = {"seed": seed, "person": "ann", "overlap": overlap, "first_check": first_check}
    return make_prediction_project(place, data, reading, chosen, target=target, **more)


def answer_all(
    project: Project,
    answer: Callable[[int], Any],
    *,
    person: str = "ann",
    most: int = 10_000,
    **more: Mapping[int, Any],
) -> int:
    """Answer what is asked for, None for a skip, and return the number of answers."""
    given = 0
    while given < most and (asked := project.next(person)):
        for each in asked[: most - given]:
            label = answer(each.position)
            if label is None:
                project.skip(each.position, person=person)
            else:
                about = {name: values[each.position] for name, values in more.items() if each.position in values}
                project.label(each.position, label, person=person, **about)
            given += 1
    return given
