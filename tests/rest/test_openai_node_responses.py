"""The Responses API through OpenAI's SDK for Node."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.rest.agents.person import ANNA, WHO
from tests.rest.agents.weather import BOTH_CITIES, IN_PARIS, IN_ROME, WEATHER, sentences
from tests.rest.programs import errors_of_node, printed_by_node
from tests.successor import successor_text

if TYPE_CHECKING:
    from tests.rest.conftest import Stack

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def seen(stack: Stack) -> Any:
    """What the SDK made of our answers."""
    asked = json.dumps({"who": WHO, "weather": BOTH_CITIES, "results": WEATHER})
    return printed_by_node("responses.mjs", f"{stack.url}/v1", asked)


def test_answers_are_made_and_got_again(seen: Any) -> None:
    created = seen["created"]

    assert created["output_text"] == successor_text("a", 40)
    assert created["incomplete_details"] == {"reason": "max_output_tokens"}
    assert (created["usage"]["input_tokens"], created["usage"]["output_tokens"]) == (1, 40)
    assert seen["retrieved"] == created


def test_its_helper_accumulates_the_whole(seen: Any) -> None:
    assert seen["accumulated"] == seen["whole"]
    assert seen["deltas"] == seen["whole"]["output_text"]


def test_answers_are_parsed(seen: Any) -> None:
    assert seen["parsed"] == seen["accumulatedParsed"] == ANNA.model_dump()


@pytest.mark.parametrize("way", ["whole", "streamed", "continued whole", "continued streamed"])
def test_calls_are_made_until_there_is_an_answer(seen: Any, way: str) -> None:
    calling, answering = seen["turns"][way]

    assert calling == {"text": "", "calls": [{"city": "Paris"}, {"city": "Rome"}]}
    assert answering == {"text": sentences(IN_PARIS, IN_ROME), "calls": []}


def test_errors_are_its_own(seen: Any) -> None:
    assert seen["errors"] == errors_of_node("background")
