"""Reading the tools of a request, and whether the model may call them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ovchat_server.domain.chat import Tool, ToolChoice, ToolMode
from ovchat_server.domain.reader import Reader
from ovchat_server.domain.tools import read_tool_choice, read_tools

if TYPE_CHECKING:
    from ovchat_server.domain.errors import Violation


def function(**fields: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "f"} | fields}


NAMED = function()
OLDER = {"name": "f"}


def read(**fields: Any) -> tuple[tuple[Tool, ...], ToolChoice, list[Violation]]:
    violations: list[Violation] = []
    reader = Reader(fields, violations)
    tools = read_tools(reader)
    return tools, read_tool_choice(reader, tools), violations


def test_a_tool_is_read_whole_and_its_properties_keep_their_order() -> None:
    parameters = {"type": "object", "properties": {"z": {}, "a": {}, "m": {}}}
    given = function(description="Does", parameters=parameters, strict=True)
    (tool,), choice, violations = read(tools=[given])
    assert violations == []
    assert tool == Tool("f", "Does", parameters, strict=True)
    assert list(tool.parameters["properties"]) == ["z", "a", "m"]  # type: ignore[index, arg-type]
    assert choice.mode is ToolMode.AUTO


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


@pytest.mark.parametrize(
    ("fields", "faulty"),
    [
        ({"tools": []}, []),
        ({"functions": []}, []),
        ({"tools": [], "functions": []}, []),
        ({"tools": [], "functions": [OLDER]}, []),
        ({"tools": [], "tool_choice": "auto"}, []),
        ({"tools": [], "tool_choice": "none"}, []),
        ({"functions": [], "function_call": "auto"}, []),
        ({"tools": [], "tool_choice": "required"}, ["tool_choice"]),
        ({"tools": [], "tool_choice": NAMED}, ["tool_choice.function.name"]),
        ({"functions": [], "function_call": {"name": "f"}}, ["function_call.name"]),
        ({"tools": [function()], "functions": [OLDER]}, ["functions"]),
    ],
)
def test_an_empty_list_of_tools_is_none(fields: dict[str, Any], faulty: list[str]) -> None:
    _, _, violations = read(**fields)
    assert [item.field for item in violations] == faulty


@pytest.mark.parametrize(
    ("fields", "mode"),
    [
        ({}, ToolMode.NONE),
        ({"tools": [function()]}, ToolMode.AUTO),
        ({"tools": [function()], "tool_choice": None}, ToolMode.AUTO),
        ({"tools": [function()], "tool_choice": "auto"}, ToolMode.AUTO),
        ({"tools": [function()], "tool_choice": "none"}, ToolMode.NONE),
        ({"tools": [function()], "tool_choice": "required"}, ToolMode.REQUIRED),
        ({"tools": [function()], "tool_choice": NAMED}, ToolMode.NAMED),
        ({"tool_choice": "none"}, ToolMode.NONE),
        ({"tool_choice": "auto"}, ToolMode.NONE),
        ({"functions": [OLDER]}, ToolMode.AUTO),
        ({"functions": [OLDER], "function_call": "none"}, ToolMode.NONE),
        ({"functions": [OLDER], "function_call": {"name": "f"}}, ToolMode.NAMED),
    ],
)
def test_whether_the_model_calls_is_the_callers_choice(
    fields: dict[str, Any], mode: ToolMode
) -> None:
    _, choice, violations = read(**fields)
    assert (choice.mode, violations) == (mode, [])


def test_the_older_form_describes_the_same_tools() -> None:
    older = {"name": "f", "description": "Does", "parameters": {"type": "object"}}
    assert read(functions=[older])[0] == read(tools=[{"type": "function", "function": older}])[0]


def test_a_function_by_name_is_called_once() -> None:
    _, choice, _ = read(tools=[function(), function(name="g")], tool_choice=NAMED)
    assert (choice.allowed, choice.parallel, choice.forced) == (("f",), False, True)


@pytest.mark.parametrize("mode", ["auto", "required"])
def test_some_of_the_tools_may_be_allowed(mode: str) -> None:
    allowed = {"mode": mode, "tools": [{"type": "function", "function": {"name": "g"}}]}
    _, choice, violations = read(
        tools=[function(), function(name="g")],
        tool_choice={"type": "allowed_tools", "allowed_tools": allowed},
    )
    assert (choice.mode, choice.allowed, violations) == (mode, ("g",), [])
    assert choice.parallel


def test_several_calls_may_be_too_many() -> None:
    assert read(tools=[function()])[1].parallel
    assert read(tools=[function()], parallel_tool_calls=True)[1].parallel
    assert not read(tools=[function()], parallel_tool_calls=False)[1].parallel


def allowed(**fields: Any) -> dict[str, Any]:
    return {
        "type": "allowed_tools",
        "allowed_tools": {"mode": "auto", "tools": [NAMED], **fields},
    }


@pytest.mark.parametrize(
    ("choice", "path", "code"),
    [
        ("any", "", "invalid_value"),
        ("", "", "invalid_value"),
        ("named", "", "invalid_value"),
        (1, "", "invalid_type"),
        ([], "", "invalid_type"),
        ({}, ".type", "missing_required_parameter"),
        ({"type": "custom", "custom": {"name": "f"}}, ".type", "invalid_value"),
        ({"type": "function"}, ".function", "missing_required_parameter"),
        ({"type": "function", "function": "f"}, ".function", "invalid_type"),
        ({"type": "function", "function": {}}, ".function.name", "missing_required_parameter"),
        ({"type": "function", "function": {"name": 1}}, ".function.name", "invalid_type"),
        ({"type": "function", "function": {"name": "g"}}, ".function.name", "invalid_value"),
        ({"type": "allowed_tools"}, ".allowed_tools", "missing_required_parameter"),
        (allowed(mode=None), ".allowed_tools.mode", "missing_required_parameter"),
        (allowed(mode="none"), ".allowed_tools.mode", "invalid_value"),
        (allowed(tools=None), ".allowed_tools.tools", "missing_required_parameter"),
        (allowed(tools=[]), ".allowed_tools.tools", "invalid_value"),
        (allowed(tools=["f"]), ".allowed_tools.tools[0]", "invalid_type"),
        (allowed(tools=[{**NAMED, "type": "x"}]), ".allowed_tools.tools[0].type", "invalid_value"),
        (
            allowed(tools=[{"type": "function", "function": {"name": "g"}}]),
            ".allowed_tools.tools[0].function.name",
            "invalid_value",
        ),
    ],
)
def test_a_fault_of_the_choice_is_told_by_its_exact_place(
    choice: Any, path: str, code: str
) -> None:
    _, _, violations = read(tools=[function()], tool_choice=choice)
    assert [(item.field, item.code) for item in violations] == [(f"tool_choice{path}", code)]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": NAMED}, "tool_choice.function.name"),
        ({"functions": [OLDER], "tools": [function()]}, "functions"),
        ({"functions": [OLDER, OLDER]}, "functions[1].name"),
        ({"functions": [{"name": ""}]}, "functions[0].name"),
        ({"functions": [OLDER], "function_call": "required"}, "function_call"),
        ({"functions": [OLDER], "function_call": {"name": "g"}}, "function_call.name"),
        ({"functions": [OLDER], "function_call": {}}, "function_call.name"),
        (
            {"functions": [OLDER], "function_call": "auto", "tool_choice": "auto"},
            "function_call",
        ),
        ({"tools": [function()], "parallel_tool_calls": 0}, "parallel_tool_calls"),
    ],
)
def test_what_cannot_be_together_is_refused_by_name(fields: dict[str, Any], field: str) -> None:
    _, _, violations = read(**fields)
    assert [item.field for item in violations] == [field]
