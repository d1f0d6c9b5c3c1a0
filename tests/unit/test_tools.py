"""Reading the tools of a request, and whether the model may call them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ovchat_server.api.chat import Tool, ToolMode
from ovchat_server.api.reader import Reader
from ovchat_server.api.tools import read_tool_mode, read_tools

if TYPE_CHECKING:
    from ovchat_server.api.errors import Violation


def function(**fields: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "f"} | fields}


def read(**fields: Any) -> tuple[tuple[Tool, ...], ToolMode, list[Violation]]:
    violations: list[Violation] = []
    reader = Reader(fields, violations)
    tools = read_tools(reader)
    return tools, read_tool_mode(reader, tools), violations


def test_a_tool_is_read_whole_and_its_properties_keep_their_order() -> None:
    parameters = {"type": "object", "properties": {"z": {}, "a": {}, "m": {}}}
    given = function(description="Does", parameters=parameters, strict=True)
    (tool,), mode, violations = read(tools=[given])
    assert violations == []
    assert tool == Tool("f", "Does", parameters, strict=True)
    assert list(tool.parameters["properties"]) == ["z", "a", "m"]  # type: ignore[index, arg-type]
    assert mode is ToolMode.AUTO


@pytest.mark.parametrize("name", ["f", "a" * 64, "get-it_2", "ns.f", "0"])
def test_a_function_may_be_called_so(name: str) -> None:
    (tool,), _, violations = read(tools=[function(name=name)])
    assert (tool.name, violations) == (name, [])


@pytest.mark.parametrize("name", ["", "a" * 65, "a b", "f\n", "é", "<|im_end|>", "a/b"])
def test_a_function_may_not_be_called_so(name: str) -> None:
    _, _, violations = read(tools=[function(name=name)])
    assert [item.field for item in violations] == ["tools[0].function.name"]


@pytest.mark.parametrize(
    ("tool", "path", "code"),
    [
        ("f", "", "invalid_type"),
        ({"function": {"name": "f"}}, ".type", "missing_required_parameter"),
        ({"type": "custom", "custom": {"name": "f"}}, ".type", "unsupported_value"),
        ({"type": 1}, ".type", "unsupported_value"),
        ({"type": "function"}, ".function", "missing_required_parameter"),
        ({"type": "function", "function": []}, ".function", "invalid_type"),
        (function(name=None), ".function.name", "missing_required_parameter"),
        (function(name=1), ".function.name", "invalid_type"),
        (function(description=1), ".function.description", "invalid_type"),
        (function(parameters="{}"), ".function.parameters", "invalid_type"),
        (function(strict="yes"), ".function.strict", "invalid_type"),
        (function(name="g"), ".function.name", "invalid_value"),
    ],
)
def test_a_fault_is_told_by_its_exact_place(tool: Any, path: str, code: str) -> None:
    _, _, violations = read(tools=[function(name="g"), tool])
    assert [(item.field, item.code) for item in violations] == [(f"tools[1]{path}", code)]


def test_an_empty_list_of_tools_is_refused() -> None:
    _, _, violations = read(tools=[])
    assert [item.field for item in violations] == ["tools"]


@pytest.mark.parametrize(
    ("fields", "mode"),
    [
        ({}, ToolMode.NONE),
        ({"tools": [function()]}, ToolMode.AUTO),
        ({"tools": [function()], "tool_choice": None}, ToolMode.AUTO),
        ({"tools": [function()], "tool_choice": "auto"}, ToolMode.AUTO),
        ({"tools": [function()], "tool_choice": "none"}, ToolMode.NONE),
        ({"tool_choice": "none"}, ToolMode.NONE),
        ({"tool_choice": "auto"}, ToolMode.NONE),
    ],
)
def test_the_model_may_call_where_there_are_tools(fields: dict[str, Any], mode: ToolMode) -> None:
    _, read_mode, violations = read(**fields)
    assert (read_mode, violations) == (mode, [])


@pytest.mark.parametrize(
    ("choice", "code"),
    [
        ("required", "unsupported_value"),
        ({"type": "function", "function": {"name": "f"}}, "unsupported_value"),
        ({"type": "allowed_tools"}, "unsupported_value"),
        ("any", "invalid_value"),
        ("", "invalid_value"),
        (1, "invalid_type"),
    ],
)
def test_forcing_a_call_is_refused_by_name(choice: Any, code: str) -> None:
    _, mode, violations = read(tools=[function()], tool_choice=choice)
    assert [(item.field, item.code) for item in violations] == [("tool_choice", code)]
    assert mode is ToolMode.NONE
