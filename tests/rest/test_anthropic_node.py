"""Anthropic's SDK for Node must not notice the difference."""

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
    return printed_by_node("messages.mjs", stack.url, asked)


def test_answers_whole_and_streamed(seen: Any) -> None:
    text = successor_text("a", 40)
    whole = {"content": [{"type": "text", "text": text}], "stop": "max_tokens", "tokens": 40}

    assert seen["letter"] == whole
    assert seen["streamedLetter"] == {**whole, "text": text}


def test_it_thinks_whole_and_streamed(seen: Any) -> None:
    thought, said = seen["sum"]["content"]

    assert "carry 1" in thought["thinking"]
    assert thought["signature"]
    assert said == {"type": "text", "text": "17 + 25 = 42"}
    assert seen["streamedSum"] == {**seen["sum"], "text": "17 + 25 = 42"}


def test_its_runner_calls_tools_until_there_is_an_answer(seen: Any) -> None:
    calls = [{"city": "Paris"}, {"city": "Rome"}]

    assert seen["ran"] == [[calls, [sentences(IN_PARIS, IN_ROME)]]] * 2


def test_answers_are_objects_of_a_schema(seen: Any) -> None:
    assert seen["person"] == ANNA.model_dump()


def test_tokens_are_counted(seen: Any) -> None:
    assert seen["counted"] == seen["used"]


def test_errors_are_its_own(seen: Any) -> None:
    wrong = {"name": "BadRequestError", "status": 400, "type": "invalid_request_error"}
    unknown = {"name": "NotFoundError", "status": 404, "type": "not_found_error"}

    assert seen["errors"] == [{**error, "known": True} for error in (unknown, wrong, wrong)]
