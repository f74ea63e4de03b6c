"""What holds of every stopping rule of suffice: it names its source, shows its use, and keeps the contract."""

import dataclasses
import importlib
import inspect
import re
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest

from suffice import criteria
from suffice.criteria import Criterion, Step
from suffice.criteria.base import Family, rule_info, rule_sources
from suffice.testing import check_criterion
from tests.every_rule import RULES, made_up_steps

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


def test_every_rule_without_a_source_says_where_it_comes_from() -> None:
    kinds = criteria.RULES
    assert [name for name, kind in kinds.items() if bool(rule_sources(kind)) == bool(rule_info(kind).origin)] == []


def test_every_rule_names_its_source() -> None:
    def sources(name: str) -> int:
        return len(re.findall(r"^Reference: (\[[A-Z]\w+\d{4}\w?\].*)$", docstring(name), flags=re.MULTILINE))

    cited = {name: name not in COMPOSED and not rule_info(KINDS[name]).origin for name in KINDS}
    assert {name: sources(name) for name in KINDS} == {name: int(has_source) for name, has_source in cited.items()}


def test_every_rule_of_practice_says_so() -> None:
    assert [name for name in sorted(PRACTICE) if not re.search(r"\b[Bb]y practice\b", docstring(name))] == []


def test_every_rule_shows_its_use() -> None:
    """The examples run with the other doctests. Here each only has to exist and to use its rule."""

    def shows_its_use(name: str) -> bool:
        _, _, examples = docstring(name).partition("\nExamples:\n")
        shown = {"AllOf": " & ", "AnyOf": " | ", "Patience": ".patience(", "After": ".after("}.get(name, name)
        lines = [line for line in examples.splitlines() if line.strip().startswith((">>>", "..."))]
        return any(shown in line for line in lines)

    assert [name for name in KINDS if not shows_its_use(name)] == []


def test_every_docstring_begins_with_what_the_rule_does() -> None:
    # A dataclass without a docstring gets one from Python, its signature, which does not start like this.
    first = {name: docstring(name).split("\n\n")[0] for name in KINDS}
    assert [name for name, text in first.items() if not (text.startswith("Stop ") and text.endswith("."))] == []


def test_every_parameter_is_described() -> None:
    def described(name: str) -> set[str]:
        _, _, rest = docstring(name).partition("\nArgs:\n")
        return set(re.findall(r"^    (\w+): ", rest.partition("\n\n")[0], flags=re.MULTILINE))

    def parameters(kind: Any) -> set[str]:
        return {spec.name for spec in dataclasses.fields(kind) if spec.init}

    assert {name: described(name) for name in KINDS} == {name: parameters(kind) for name, kind in KINDS.items()}


@pytest.mark.no_cover
@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_rule_keeps_the_contract(name: str) -> None:
    check_criterion(RULES[name].copy, made_up_steps(24))


def test_no_field_hides_a_method() -> None:
    assert set(dir(Criterion)) > METHODS
    for name, rule in RULES.items():
        fields: Any = dataclasses.fields(rule.copy())  # type: ignore[arg-type]
        assert not {spec.name for spec in fields} & set(dir(Criterion)), name
        assert [method for method in METHODS if not callable(getattr(rule.copy(), method))] == [], name


def test_every_rule_asks_for_fields_that_exist() -> None:
    known = {spec.name for spec in dataclasses.fields(Step)} - {"n_labelled", "estimated"}
    assert {name: rule.needs() - known for name, rule in RULES.items() if not rule.needs() <= known} == {}
