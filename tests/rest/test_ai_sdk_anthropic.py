"""Vercel's AI SDK with its provider for Anthropic."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.rest.agents.person import ANNA, WHO
from tests.rest.agents.weather import BOTH_CITIES, IN_PARIS, IN_ROME, WEATHER, sentences
from tests.rest.programs import printed_by_node
from tests.successor import successor_text

if TYPE_CHECKING:
    from tests.rest.conftest import Stack

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def seen(stack: Stack) -> Any:
    """What the SDK made of our answers."""
    asked = json.dumps({"who": WHO, "weather": BOTH_CITIES, "results": WEATHER})
    return printed_by_node("aisdk_anthropic.mjs", f"{stack.url}/v1", asked)


def test_answers_whole_and_streamed(seen: Any) -> None:
    whole = {"text": successor_text("a", 40), "finish": "length", "tokens": 40}

    assert seen["whole"] == seen["streamed"] == whole


def test_it_thinks_whole_and_streamed(seen: Any) -> None:
    assert "carry 1" in seen["thought"]["reasoning"]
    assert seen["thought"]["text"] == "17 + 25 = 42"
    assert seen["streamedThought"] == seen["thought"]


@pytest.mark.parametrize("way", ["steps", "streamedSteps"])
def test_it_runs_tools_until_there_is_an_answer(seen: Any, way: str) -> None:
    calling, answering = seen[way]

    assert calling == {"text": "", "calls": [{"city": "Paris"}, {"city": "Rome"}]}
    assert answering == {"text": sentences(IN_PARIS, IN_ROME), "calls": []}


def test_earlier_answers_are_sent_back(seen: Any) -> None:
    first, _, last = seen["conversation"]

    assert (first, last) == ("17 + 25 = 42", "Your name is Anna.")


def test_answers_are_objects_of_a_schema(seen: Any) -> None:
    assert seen["person"] == seen["streamedPerson"] == ANNA.model_dump()


def test_errors_are_its_own(seen: Any) -> None:
    assert seen["error"] == {
        "name": "AI_APICallError",
        "status": 404,
        "type": "not_found_error",
    }
