"""Small projects of each model, for those who follow labels."""

from typing import Any, Final, NamedTuple

import numpy as np

from suffice import ErrorStability
from suffice.criteria import Criterion
from suffice.numerics import Floats
from suffice.project.events import Label
from suffice.project.settings import Settings
from suffice.project.state import Answer


def settings_of(
    task: Any, model: str, rule: Criterion | None = None, classes: tuple[str, ...] | None = None
) -> Settings:
    """Settings of a project; the classes are not in the order of the alphabet."""
    names = ("eel", "cat", "dog") if classes is None else classes
    return Settings(
        name="small",
        task=task,
        classes=names if task == "classification" else (),
        target="y",
        shown="table",
        columns=("x",),
        main=None,
        model=model,
        rule=(rule or ErrorStability(calibration=3)).state_dict(),
    )


class Case(NamedTuple):
    """A project and what its labels are."""

    settings: Settings
    X: Floats
    labels: list[Label]

    def answers(self, n: int, *, skips: int = 0) -> list[Answer]:
        """The first so many of all items in a random order, of which some are skipped."""
        order = np.random.default_rng(5).permutation(len(self.X))[:n].tolist()
        left_out = set(order[3 : 3 + 4 * skips : 4])
        return [Answer(item, None if item in left_out else self.labels[item]) for item in order]

    def first(self, n: int) -> "Case":
        """The first items of it."""
        return Case(self.settings, self.X[:n], self.labels[:n])


def labels_of(case: Case) -> list[Label]:
    """Labels that an item could have."""
    return sorted(set(case.labels), key=str)


def _of_classes(names: tuple[str, ...]) -> Case:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 3))
    scores = X @ rng.normal(size=(3, len(names))) + rng.gumbel(size=(80, len(names)))
    settings = settings_of("classification", "logistic", classes=names)
    return Case(settings, X, [names[k] for k in scores.argmax(axis=1)])


def _of_numbers(model: str) -> Case:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(80, 2))
    y = 30.0 + 5.0 * np.sin(X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=80)
    return Case(settings_of("regression", model), X, [float(value) for value in y])


CASES: Final = {
    "two classes": _of_classes(("yes", "no")),
    "three classes": _of_classes(("eel", "cat", "dog")),
    "process": _of_numbers("gp"),
    "ridge": _of_numbers("ridge"),
}
