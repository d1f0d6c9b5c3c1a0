"""What callers chose, in headers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovchat_server.domain.field_path import FieldPath, SchemaPath
from ovchat_server.header_text import (
    MAX_NAME_CHARACTERS,
    MAX_NAMES,
    MAX_PATHS_CHARACTERS,
    MORE,
    ascii_json,
    name_list,
    path_list,
)

# What JSON, and so a caller, can say: all but halves of surrogate pairs.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
FIELD = FieldPath.of("tools", 0, "function", "parameters")


def fit_for_a_header(text: str) -> bool:
    """What gRPC sends in metadata, and HTTP allows: printable ASCII."""
    return all(" " <= char <= "~" for char in text)


def test_names_are_listed_plainly() -> None:
    assert name_list(["foo", "bar_2"]) == "foo, bar_2"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\r\nx-evil: 1", "a\\r\\nx-evil: 1"),
        ('say "x"', 'say \\"x\\"'),
        ("\x00\x7f", "\\u0000\\u007f"),
        ("é😀", "\\u00e9\\ud83d\\ude00"),
        ("", ""),
    ],
)
def test_a_hostile_name_is_escaped(name: str, shown: str) -> None:
    assert name_list([name]) == shown
    assert name_list(["a", name, "b"]) == f"a, {shown}, b"


@given(st.lists(TEXT, max_size=5))
def test_any_names_fit_into_a_header(names: list[str]) -> None:
    assert fit_for_a_header(name_list(names))


def test_a_header_holds_only_so_many_names_and_so_much_of_each() -> None:
    shown = name_list(["x" * 1000] * 1000)
    assert shown == ", ".join(["x" * MAX_NAME_CHARACTERS] * MAX_NAMES)


def path(pointer: str) -> SchemaPath:
    return SchemaPath(FIELD, pointer)


def test_paths_are_those_of_the_field_and_in_its_schema() -> None:
    shown = path_list([path("/properties/email/pattern"), path(""), path("/if")])
    assert shown == (
        "tools[0].function.parameters/properties/email/pattern, "
        "tools[0].function.parameters, tools[0].function.parameters/if"
    )


def test_a_long_path_keeps_the_tool_and_what_is_left_out() -> None:
    shown = path_list([path("/properties/a" * 1000 + "/pattern")])
    assert shown.startswith("tools[0].function.parameters/properties")
    assert shown.endswith("/properties/a/properties/a/pattern")
    assert MORE in shown
    assert len(shown) < 200


def test_a_header_holds_only_so_many_paths() -> None:
    shown = path_list([path(f"/properties/n{number}/not") for number in range(1000)])
    assert len(shown) <= MAX_PATHS_CHARACTERS * 1.1
    assert shown.endswith(f"/not, {MORE}")
    # Escaped, a character is six.
    assert len(path_list([path("/" + "\u20ac" * 1000)] * 1000)) <= MAX_PATHS_CHARACTERS * 1.1


@given(st.lists(TEXT, min_size=1, max_size=5))
def test_paths_of_any_names_can_be_told_apart(names: list[str]) -> None:
    shown = path_list([path(f"/{name}") for name in names])
    assert fit_for_a_header(shown)
    assert [json.loads(f'"{item}"') for item in shown.split(", ")] == [
        f"{FIELD}/{name}" for name in names
    ]


@given(TEXT)
def test_json_for_a_header_is_ascii_and_says_the_same(text: str) -> None:
    value: Any = {"error": {"message": text, text: None}}
    shown = ascii_json(value)
    assert fit_for_a_header(shown)
    assert json.loads(shown) == value


@pytest.mark.parametrize("text", ["😀", "a\r\nx-evil: 1", "\x00\x1f\x7f\x80", '"\\', "é\u2028"])
def test_hostile_text_is_escaped_in_a_header(text: str) -> None:
    shown = ascii_json({"m": text})
    assert fit_for_a_header(shown)
    assert json.loads(shown) == {"m": text}
