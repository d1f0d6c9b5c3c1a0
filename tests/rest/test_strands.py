"""Strands' agents, in an environment of their own: they need an older OpenAI SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.rest.programs import what_it_saw

if TYPE_CHECKING:
    from tests.rest.conftest import Stack

# The first time, it is installed.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def seen(stack: Stack) -> Any:
    """What the agents answered."""
    return what_it_saw("strands", stack)


def test_an_agent_without_tools_talks_turn_after_turn(seen: Any) -> None:
    assert seen["turns"] == ["The capital of France is Paris.", "1, 2, 3"]
    assert seen["no tools"] == seen["turns"][0]


def test_an_agent_calls_its_tool_and_answers(seen: Any) -> None:
    assert seen["a tool"] == "For Rome, the temperature is 27 and the condition is sunny."
