"""Comparison of models with a smaller forest: all trees take up to a second, and few tests are about them."""

from importlib import import_module
from typing import Final

from suffice.cli import main

#: Where the number of trees is.
NAME: Final = "suffice.learner.model_comparison._TREES"
TREES: Final = 10


def main_with_smaller_forest() -> None:
    """Do what the command ``suffice`` does, with a smaller forest."""
    module, _, name = NAME.rpartition(".")
    setattr(import_module(module), name, TREES)
    main()
