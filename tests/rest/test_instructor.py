"""instructor gets its models, in an environment of its own: it needs an older OpenAI SDK."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from tests.rest.programs import what_it_saw

if TYPE_CHECKING:
    from tests.rest.conftest import Stack

ANNA = {"name": "Anna", "age": 31}
MODES = ["TOOLS", "TOOLS_STRICT", "JSON", "JSON_SCHEMA", "MD_JSON"]

# The first time, it is installed.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def seen(stack: Stack) -> Any:
    """What instructor made of our answers."""
    return what_it_saw("instructor", stack)


@pytest.mark.parametrize("mode", MODES)
def test_answers_are_models(seen: Any, mode: str) -> None:
    assert seen["whole"][mode] == seen["later"][mode] == ANNA


@pytest.mark.parametrize("mode", MODES)
def test_a_stream_shows_the_model_as_it_grows(seen: Any, mode: str) -> None:
    growing = seen["growing"][mode]

    assert growing[0] == {"name": None, "age": None}
    assert growing[-1] == ANNA
    names = [part["name"] or "" for part in growing]
    assert all(later.startswith(name) for name, later in pairwise(names))
    assert all(part["name"] == "Anna" for part in growing if part["age"])


def test_parallel_calls_are_models(seen: Any) -> None:
    assert seen["parallel"] == [["get_weather", "Paris"], ["get_time", "Rome"]]


@pytest.mark.parametrize("mode", ["TOOLS", "JSON_SCHEMA"])
def test_an_answer_that_it_refuses_is_asked_for_again(seen: Any, mode: str) -> None:
    corrected = seen["corrected"][mode]

    first, second = corrected["requests"]
    assert corrected["refused"] == [31]
    assert second[: len(first)] == first
    [said, told] = second[len(first) :]
    assert said["role"] == "assistant"
    assert "look again" in told["content"]
    assert set(corrected["answer"]) == {"name", "age"}


def test_it_is_told_so_as_the_result_of_the_call(seen: Any) -> None:
    [*_, said, told] = seen["corrected"]["TOOLS"]["requests"][1]

    [call] = said["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == ANNA
    assert (told["role"], told["tool_call_id"]) == ("tool", call["id"])
