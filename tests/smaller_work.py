"""What the tests make smaller because few of them are about it and it takes up to a second each time.

The forests that models are compared with and that rank labels have fewer trees, and the comparison has fewer folds,
except in slow tests that use the fixture ``all_trees``; the demonstration has fewer items where a test asks for it.
"""

from dataclasses import replace
from importlib import import_module
from typing import Final

import numpy as np

from suffice.cli import main
from suffice.models.factory import ModelTask
from suffice.tables import example_data
from suffice.tables.example_data import Task

#: Where the numbers of trees and folds are, what they are here, and what they are in the package.
SMALLER: Final = {
    "suffice.models.factory._TREES": 20,
    "suffice.session.model_comparison._FOLDS": 5,
    "suffice.session.model_comparison._TREES": 10,
    "suffice.session.suspicious_labels._TREES": 25,
}
USUAL: Final = {
    "suffice.models.factory._TREES": 100,
    "suffice.session.model_comparison._FOLDS": 10,
    "suffice.session.model_comparison._TREES": 50,
    "suffice.session.suspicious_labels._TREES": 200,
}
#: Whether the processes that a test starts have all trees and folds.
all_trees = False
#: Where the demonstration gets its data from, and how many items there are to label.
DEMO_NAME: Final = "suffice.cli.demo_command.demo_task"
DEMO_ITEMS: Final = 90


def small_demo_task(kind: ModelTask, rng: np.random.Generator) -> Task:
    """The task of the demonstration with fewer items to label."""
    task = example_data.demo_task(kind, rng)
    return replace(task, X_pool=task.X_pool[:DEMO_ITEMS], y_pool=task.y_pool[:DEMO_ITEMS])


def main_with_smaller_forests() -> None:
    """Do what the command ``suffice`` does, with smaller forests."""
    for place, number in SMALLER.items():
        _set(place, number)
    main()


def main_with_small_demo() -> None:
    """Do what the command ``suffice`` does, with smaller forests and a smaller demonstration."""
    _set(DEMO_NAME, small_demo_task)
    main_with_smaller_forests()


def _set(place: str, value: object) -> None:
    module, _, name = place.rpartition(".")
    setattr(import_module(module), name, value)
