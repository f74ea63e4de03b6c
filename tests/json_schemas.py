"""The schemas of what commands print with ``--json``."""

import json
from functools import cache
from typing import Any

from suffice.cli.json_output import schema_of


@cache
def _validator(command: str) -> Any:
    try:
        import jsonschema_rs
    except ImportError:
        # Environments of other frameworks and of old versions do not have it.
        return None
    return jsonschema_rs.validator_for(schema_of(command))


def problems(command: str, value: Any) -> list[str]:
    """Where JSON values do not fit the schema of a command, at most five of the places."""
    validator = _validator(command)
    found = [] if validator is None else list(validator.iter_errors(value))
    return [f"{'/'.join(map(str, each.instance_path))}: {each.message[:500]}" for each in found[:5]]


def require_fit(command: str, text: str) -> None:
    """Raise an error if a JSON text does not fit the schema of a command."""
    assert problems(command, json.loads(text)) == [], f"suffice {command} --json does not fit its schema"
