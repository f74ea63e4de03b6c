"""The public names of 1.0.0rc1 with their arguments and attributes exist, or the upgrade note says what to use.

``names_of_1_0_0rc1.json`` has the names in ``__all__`` of its packages and those of its API reference, each with its
members; the arguments of a callable are a list, and the empty text is the name itself.
"""

import importlib
import inspect
import json
import warnings
from pathlib import Path
from typing import Any, Final

import pytest

from tests.structure import ROOT

NAMES: Final = json.loads((Path(__file__).parent / "names_of_1_0_0rc1.json").read_text(encoding="utf-8"))
#: What is gone: members, and arguments in parentheses. The upgrade note has the last word of each.
GONE: Final = {
    "suffice.ActiveLearner": {"decision_about", "plan_for"},
    "suffice.decision.Decision": {"in_doubt", "error_in_doubt"},
    "suffice.project.Project": {"open_to_review(found)"},
    "suffice.project.LearningStatus": {"(decision)"},
    "suffice.checks.CheckPlan": {"(least)"},
    "suffice.checks.GuaranteePlan": {"(probability)"},
    # State of the rule, which only its own methods use.
    "suffice.LabelWorth": {"values", "worths"},
}
#: Arguments that are accepted with a warning; see ``tests/test_deprecation.py``.
DEPRECATED: Final = {
    "suffice.ActiveLearner": {"guarantee_plan(probability)"},
    "suffice.checks.plan_total": {"(probability)"},
}
#: These take the former arguments as keywords of one object.
BY_KEYWORDS: Final = {"suffice.project.create_project"}


def value_of(path: str) -> Any:
    """The object of a name, from a module or an attribute of one, as a program of then gets it."""
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            found = getattr(found, part)
        return found
    raise AssertionError(path)


def arguments_of(value: Any) -> set[str]:
    return set(inspect.signature(value).parameters)


def has_attribute(kind: Any, name: str) -> bool:
    annotated = (inspect.get_annotations(each) for each in kind.__mro__)
    return hasattr(kind, name) or any(name in names for names in annotated)


def missing(path: str) -> set[str]:
    """What a name had in 1.0.0rc1 and has no more."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        value = value_of(path)
    found = set()
    for member, arguments in NAMES[path].items():
        if member and not has_attribute(value, member):
            found.add(member)
        elif arguments is not None and path not in BY_KEYWORDS:
            now = arguments_of(getattr(value, member) if member else value)
            found |= {f"{member}({name})" for name in arguments if name not in now}
    return found


@pytest.mark.parametrize("path", NAMES)
def test_a_name_of_1_0_0rc1_is_there_with_its_arguments_and_attributes(path: str) -> None:
    if ".deep." in path:
        pytest.importorskip("torch")
    assert missing(path) == GONE.get(path, set()) | DEPRECATED.get(path, set())


def test_what_is_gone_is_in_the_upgrade_note() -> None:
    note = (ROOT / "docs" / "upgrading.md").read_text(encoding="utf-8")
    for path, gone in GONE.items():
        kind = path.rpartition(".")[2]
        assert kind == "LabelWorth" or kind in note, path
        for each in gone - GONE["suffice.LabelWorth"]:
            name = each.rstrip(")").rpartition("(")[2]
            assert name in note, each
    assert len(NAMES) > 300
