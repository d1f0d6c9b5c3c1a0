"""What is asked for at both doors, and what the answers must be."""

from __future__ import annotations

import json
from typing import Any

import jsonschema

from tests.json_schemas import random_schema

QUESTION = "Give me the data about Anna, 34, from Paris."
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "city": {"enum": ["Paris", "Rome"]},
    },
    "required": ["name", "age", "city"],
    "additionalProperties": False,
}
TAG = {"type": "structural_tag", "format": {"type": "regex", "pattern": "[ab]{3}"}}
RANDOM_SCHEMAS = 500


def assert_valid(text: str, schema: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator(schema).validate(json.loads(text))


__all__ = ["QUESTION", "RANDOM_SCHEMAS", "SCHEMA", "TAG", "assert_valid", "random_schema"]
