"""The fields that commands of 1.0.0rc1 printed with ``--json`` exist, or the upgrade note names them.

``json_fields_of_1_0_0rc1.json`` has the paths in results of 1.0.0rc1: of three projects, of a project with a target,
and of tables with classes and with numbers. An asterisk is an element of a list.
"""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from suffice.cli.json_output import schema_of
from tests.structure import ROOT

FIELDS: Final = json.loads((Path(__file__).parent / "json_fields_of_1_0_0rc1.json").read_text(encoding="utf-8"))
#: Fields with another name now, with what the upgrade note says about them.
RENAMED: Final = {
    "status": {"/agreement/kappa": "agreement.alpha", "/decision/plan/probability": "plan.success"},
    "check": {"/offers/planned": "target_check"},
}


def has_field(schema: Any, path: list[str], root: Any) -> bool:
    """Whether a JSON Schema describes the value at a path, or allows any value there."""
    if "$ref" in schema:
        target = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        return has_field(target, path, root)
    if any(has_field(each, path, root) for kind in ("anyOf", "oneOf") for each in schema.get(kind, ())):
        return True
    if not path:
        return True
    first, *rest = path
    if first == "*":
        return "items" in schema and has_field(schema["items"], rest, root)
    if first in schema.get("properties", {}):
        return has_field(schema["properties"][first], rest, root)
    others = schema.get("additionalProperties", schema.get("type") == "object")
    return others is True or (isinstance(others, dict) and has_field(others, rest, root))


def gone(command: str) -> set[str]:
    schema = schema_of(command)
    return {path for path in FIELDS[command] if not has_field(schema, path.split("/")[1:], schema)}


@pytest.mark.parametrize("command", FIELDS)
def test_the_fields_of_1_0_0rc1_are_there_or_in_the_upgrade_note(command: str) -> None:
    renamed = RENAMED.get(command, {})
    assert gone(command) == set(renamed)
    note = (ROOT / "docs" / "upgrading.md").read_text(encoding="utf-8")
    for path, current in renamed.items():
        assert f"{path.rpartition('/')[2]}`" in note
        assert f"`{current}`" in note


def test_a_field_that_no_schema_has_is_noticed() -> None:
    schema = schema_of("status")
    assert has_field(schema, ["decision", "answer"], schema)
    assert not has_field(schema, ["decision", "replies"], schema)
    assert sum(map(len, FIELDS.values())) > 500
