"""What generators of JSON Schemas write is enforced."""

from __future__ import annotations

import json
import random
import re
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from ovchat_server.grammar.schema.nodes import Chars, Choice, Node, Repeat, Sequence, matches
from ovchat_server.grammar.schema.reading import SchemaReader
from ovchat_server.grammar.schema.shapes import String
from ovchat_server.grammar.schema.strings import Strings
from tests.generated_schemas import GENERATED, PRINTED, REFUSED, check
from tests.grammars import unenforced

if TYPE_CHECKING:
    from collections.abc import Iterator

ZOD = GENERATED["Zod 4.6.7"]
SAMPLES = 12
# Python's is found before the end of the last line, too.
END = re.compile(r"\$(?=\)*(?:\||$))")


@pytest.mark.parametrize("generator", GENERATED)
def test_what_generators_write_is_enforced(generator: str) -> None:
    for feature, schema in GENERATED[generator].items():
        reason = REFUSED.get((generator, feature))
        found = unenforced(schema)
        assert reason in found if reason else not found, (feature, found)


def strings() -> Iterator[tuple[str, Any, Node]]:
    """The strings of schemas that have patterns or formats."""
    for generator, feature, schema in PRINTED:
        if (generator, feature) in REFUSED:
            continue
        for shape in SchemaReader(schema).shapes(schema):
            if isinstance(shape, String) and (shape.patterns or shape.formats):
                yield f"{generator}: {feature}", shape, Strings().node(shape)


def sample(node: Node, rng: random.Random) -> str:
    """A string of a tree."""
    match node:
        case Chars(ranges):
            return chr(rng.randint(*rng.choice(ranges)))
        case Sequence(parts):
            return "".join(sample(part, rng) for part in parts)
        case Choice(options):
            return sample(rng.choice(options), rng)
        case Repeat(part, fewest, most):
            count = rng.randint(fewest, min(fewest + 3, fewest + 3 if most is None else most))
            return "".join(sample(part, rng) for _ in range(count))
    raise AssertionError(node)


def test_strings_match_their_patterns_and_have_their_formats() -> None:
    rng = random.Random(1)
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    for name, shape, node in strings():
        for _ in range(SAMPLES):
            text = sample(node, rng)
            for pattern in shape.patterns:
                assert re.search(END.sub(r"\\Z", pattern), text), (name, text)
            for form in shape.formats:
                assert checker.conforms(text, form), (name, text)
            assert shape.shortest <= len(text), (name, text)
            assert shape.longest is None or len(text) <= shape.longest, (name, text)


@pytest.mark.parametrize(
    ("schema", "possible", "impossible"),
    [
        (
            ZOD["email"],
            "anna@example.com o'neil+news@mail.my-shop.example.co.uk a_b.c-d@x.io",
            "anna .anna@example.com an..na@example.com anna'@example.com a@b-.com a@example",
        ),
        (GENERATED["Zod 4.3.6"]["email"], "anna.b@example.com", "a..b@example.com .a@example.com"),
        ({**ZOD["email"], "maxLength": 255}, "o.neil+news@mail.example.com", "a..b@example.com"),
        (ZOD["email_ends"], "anna.b@example.com", "anna@example.org a..b@example.com"),
        (
            ZOD["uuid"],
            "4fb7e2d0-9f3c-4a51-8a11-0123456789ab 00000000-0000-0000-0000-000000000000",
            "4fb7e2d0-9f3c-0a51-8a11-0123456789ab",
        ),
        (
            ZOD["uuidv7"],
            "019a1b2c-9f3c-7a51-8a11-0123456789AB",
            "019a1b2c-9f3c-4a51-8a11-0123456789ab",
        ),
        (ZOD["datetime"], "2024-02-28T23:59:59Z 2024-12-31T00:00:00.123Z", "2024-12-31T00:00:00"),
        (ZOD["datetime_offset"], "2024-02-28T23:59:59+02:00", "2024-02-30T23:59:59Z"),
        (ZOD["datetime_3"], "2024-12-31T00:00:00.123Z", "2024-12-31T00:00:00Z"),
        (GENERATED["Zod 4.1.12"]["time"], "09:30 09:30:00.5", "9:30 24:00"),
        (GENERATED["Zod 4.3.6"]["datetime_m1"], "2024-12-31T09:30Z", "2024-12-31T09:30:00Z"),
        (ZOD["duration"], "P1Y2M3D PT5M P3W P1DT2H", "P PT P1W2D 5M"),
        (ZOD["hostname"], "example.com a-b", "-a a..b"),
        (ZOD["ipv4"], "192.168.0.1", "192.168.0.256"),
        (ZOD["ipv6"], "::1 2001:db8::1 fe80::1", ":::1 12345::"),
        (ZOD["base64"], "aGk= aGVsbG8=", "aGk aGk=="),
        (ZOD["start_end"], "ab axxb", "a b ba"),
        (GENERATED["Zod 4.3.6"]["url_starts"], "https://example.com/a?b=c", "http://example.com"),
        (ZOD["two_regex"], "b aab", "aa B"),
        (
            {"type": "string", "pattern": "^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$"},
            "12.50 -3 .5",
            "- . +.",
        ),
        ({"type": "string", "pattern": "^(?:(?!foo)[a-z])*$"}, "bar fo fofo", "foo afoob"),
        (
            {"type": "string", "pattern": "^(?=.*[A-Z])(?=.*\\d)[A-Za-z\\d]{4,}$"},
            "Abc1 123X",
            "abc1 ABCD A1",
        ),
        (
            {"type": "string", "pattern": "^[a-z]+(?:-[a-z]+)*$", "minLength": 3, "maxLength": 63},
            "abc ab-c a-b-c-d",
            f"ab a-- {'ab-' * 20}abcd",
        ),
        ({"type": "string", "pattern": "foo", "minLength": 5}, "foobar food1 a-foo-b", "foo afoo"),
        (
            {"type": "string", "pattern": r"^(\d{1,3}\.){3}\d{1,3}$", "maxLength": 9},
            "1.2.3.4 10.20.3.4",
            "10.20.30.4",
        ),
        ({"type": "string", "format": "date", "pattern": "-01$"}, "2024-05-01", "2024-05-02"),
        (
            {"type": "string", "allOf": [{"pattern": "a"}, {"pattern": "b"}], "maxLength": 3},
            "ab ba cab",
            "a b aabb",
        ),
    ],
)
def test_what_strings_are_possible(schema: Any, possible: str, impossible: str) -> None:
    [shape] = SchemaReader(schema).shapes(schema)
    assert isinstance(shape, String)
    node = Strings().node(shape)
    for text in possible.split():
        assert matches(node, text), text
        check(json.dumps(text), {key: schema[key] for key in schema if key != "format"})
    for text in impossible.split():
        assert not matches(node, text), text
