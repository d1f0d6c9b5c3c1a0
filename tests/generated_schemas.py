"""What generators of JSON Schemas write for each of their features.

`data/generated_schemas.json` has the schemas by generator, with its version, and by feature. They
were printed by the generators themselves (`z.toJSONSchema(...)`, `TypeAdapter(...).json_schema()`);
what another one, or an earlier version, writes alike is left out.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import jsonschema

from tests.conftest import ROOT

GENERATED: dict[str, dict[str, Any]] = json.loads(
    (ROOT / "tests/data/generated_schemas.json").read_text()
)
# What cannot be enforced, or what no value satisfies, as the generators mean it or not; and why, in
# part.
ZOD_3 = "zod-to-json-schema 3.25.2 (Zod 3.25.76)"
REFUSED = {
    ("Zod 4.6.7", "emoji"): "an unknown escape",
    ("Zod 4.6.7", "null openapi-3.0"): "no value satisfies",
    ("Zod 4.6.7", "never"): "no value satisfies",
    ("Zod 4.3.6", "emoji"): "an unknown escape",
    # Both sides are closed to the properties of the other.
    ("Zod 4.3.6", "intersection"): "no value satisfies",
    (ZOD_3, "emoji"): "an unknown escape",
    (ZOD_3, "cidr"): "no string matches",
    (ZOD_3, "undefined openAi 0"): "uses not",
    (ZOD_3, "set_str"): "uses uniqueItems",
    ("TypeBox 0.34.52", "array"): "uses uniqueItems",
    ("TypeBox 0.34.52", "not"): "uses not",
    ("TypeBox 0.34.52", "regexp"): "uses the unknown type",
    ("Valibot 1.5.0 (to-json-schema 1.8.0)", "emoji"): "an unknown escape",
    ("ArkType 2.2.9", "iso"): "an unknown escape",
    ("Pydantic 2.14.4", "set"): "uses uniqueItems",
    ("Pydantic 2.14.4", "fset"): "uses uniqueItems",
    ("msgspec 0.22.0", "st"): "uses uniqueItems",
}
PRINTED = [
    (generator, feature, schema)
    for generator, features in GENERATED.items()
    for feature, schema in features.items()
]


def check(text: str, schema: Any) -> None:
    """Check that JSON follows a schema of any draft, multiples exactly.

    Raises:
        jsonschema.ValidationError: It does not.
    """
    written = json.dumps(schema)
    draft = jsonschema.Draft202012Validator
    if '"items": [' in written:
        draft = jsonschema.Draft7Validator
    if '"exclusiveMinimum": true' in written or '"exclusiveMaximum": true' in written:
        draft = jsonschema.Draft4Validator
    exactly = json.loads(written, parse_float=_exact)
    draft(exactly, format_checker=draft.FORMAT_CHECKER).validate(
        json.loads(text, parse_float=_exact)
    )


def _exact(text: str) -> int | Decimal:
    number = Decimal(text)
    return int(number) if number == int(number) else number
