"""What holds of every stopping rule of suffice: it names its source, shows its use, and keeps the contract."""

import dataclasses
import importlib
import inspect
import re
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest

from suffice import criteria
from suffice.criteria import Criterion, Step
from suffice.criteria.rule_info import Family, rule_info, rule_sources
from suffice.testing import check_criterion, example_steps

sys.path.append(str(Path(__file__).parent.parent))
from every_rule import RULES

KINDS: dict[str, type[Criterion]] = {
    name: found
    for name in criteria.__all__
    if isinstance(found := getattr(criteria, name), type) and issubclass(found, Criterion) and found is not Criterion
}
COMPOSED = {"AllOf", "AnyOf", "Patience", "After"}
PRACTICE = {
    name
    for name, kind in criteria.RULES.items()
    if rule_info(kind).origin == "practice" and rule_info(kind).family != "counting"
}
METHODS = {"patience", "after", "copy", "verdict", "reset", "judge", "observe", "needs"}

each_rule = pytest.mark.parametrize("name", sorted(KINDS))


def docstring(name: str) -> str:
    # Not inspect.getdoc, which would take that of a parent.
    return inspect.cleandoc(KINDS[name].__doc__ or "")


def test_the_list_of_rules_is_complete() -> None:
    assert set(RULES) == set(KINDS) == set(criteria.RULES) | COMPOSED
    assert all(type(rule) is KINDS[name] for name, rule in RULES.items())


def test_no_rule_of_the_package_is_missing_from_the_list() -> None:
    """A class that is not in its module's ``__all__``, or a module that is not in the list of rules, would be."""
    found: dict[str, type[Criterion]] = {}
    for path in Path(criteria.__file__).parent.glob("*.py"):
        module = importlib.import_module(
            f"suffice.criteria.{path.stem}" if path.stem != "__init__" else "suffice.criteria"
        )
        found |= {
            name: value
            for name, value in vars(module).items()
            if isinstance(value, type) and issubclass(value, Criterion) and value.__module__ == module.__name__
        }
    assert found.keys() - {"Criterion"} == KINDS.keys()


def test_families_are_together() -> None:
    families = [rule_info(kind).family for kind in criteria.RULES.values()]
    changes = 1 + sum(one != other for one, other in pairwise(families))
    assert changes == len(set(families)) == len(get_args(Family))


@pytest.mark.parametrize("name", sorted(criteria.RULES))
def test_a_rule_without_a_source_says_where_it_comes_from(name: str) -> None:
    kind = criteria.RULES[name]
    assert bool(rule_sources(kind)) != bool(rule_info(kind).origin)


@each_rule
def test_a_rule_names_its_source(name: str) -> None:
    cited = re.findall(r"^Reference: (\[[A-Z]\w+\d{4}\w?\].*)$", docstring(name), flags=re.MULTILINE)
    has_source = name not in COMPOSED and not rule_info(KINDS[name]).origin
    assert len(cited) == (1 if has_source else 0)


@pytest.mark.parametrize("name", sorted(PRACTICE))
def test_a_rule_of_practice_says_so(name: str) -> None:
    assert re.search(r"\b[Bb]y practice\b", docstring(name))


@each_rule
def test_a_rule_shows_its_use(name: str) -> None:
    """The example runs with the other doctests; here it only has to be there, and to be of this rule."""
    _, _, examples = docstring(name).partition("\nExamples:\n")
    shown = {"AllOf": " & ", "AnyOf": " | ", "Patience": ".patience(", "After": ".after("}.get(name, name)
    lines = [line for line in examples.splitlines() if line.strip().startswith((">>>", "..."))]
    assert any(shown in line for line in lines)


@each_rule
def test_a_docstring_begins_with_what_the_rule_does(name: str) -> None:
    first = docstring(name).split("\n\n")[0]
    assert first.startswith("Stop ")
    assert first.endswith(".")
    # A dataclass without a docstring gets one from Python: its signature.
    assert not first.startswith(f"{name}(")


@each_rule
def test_every_parameter_is_described(name: str) -> None:
    _, _, rest = docstring(name).partition("\nArgs:\n")
    described = set(re.findall(r"^    (\w+): ", rest.partition("\n\n")[0], flags=re.MULTILINE))
    kind: Any = KINDS[name]
    assert described == {spec.name for spec in dataclasses.fields(kind) if spec.init}


@each_rule
def test_a_rule_keeps_the_contract(name: str) -> None:
    check_criterion(RULES[name].copy, example_steps(30))


@each_rule
def test_no_field_hides_a_method(name: str) -> None:
    assert set(dir(Criterion)) > METHODS
    kind: Any = KINDS[name]
    names = {spec.name for spec in dataclasses.fields(kind)}
    assert not names & set(dir(Criterion))
    rule = RULES[name].copy()
    assert all(callable(getattr(rule, method)) for method in METHODS)


@each_rule
def test_a_rule_asks_for_fields_that_there_are(name: str) -> None:
    assert RULES[name].needs() <= {spec.name for spec in dataclasses.fields(Step)} - {"n_labelled", "estimated"}
