"""OpenAI's SDK for Node must not notice the difference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.rest.programs import errors_of_node, printed_by_node
from tests.successor import successor_text

if TYPE_CHECKING:
    from tests.rest.conftest import Stack

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def seen(stack: Stack) -> Any:
    """What the SDK made of our answers."""
    return printed_by_node("chat.mjs", f"{stack.url}/v3")


def test_answers_whole_and_streamed(seen: Any) -> None:
    text = successor_text("a", 40)

    assert seen["whole"] == {"role": "assistant", "text": text, "finish": "length"}
    assert seen["accumulated"] == seen["whole"]
    assert seen["contentEvents"] == text
    assert seen["streamed"] == {
        "text": text,
        "usage": {
            "prompt_tokens": 1,
            "completion_tokens": 40,
            "total_tokens": 41,
            "prompt_tokens_details": {"cached_tokens": 0},
        },
    }


def test_its_helper_accumulates_three_choices_and_their_log_probabilities(seen: Any) -> None:
    stories = seen["stories"]

    assert len({story["text"] for story in stories}) == 3
    assert all("".join(story["tokens"]) == story["text"] for story in stories)
    assert seen["accumulatedStories"] == stories


def test_completes_texts(seen: Any) -> None:
    assert seen["completed"] == {"whole": ["bcde", "gh"], "streamed": ["bcde", "gh"]}


def test_errors_are_its_own(seen: Any) -> None:
    assert seen["errors"] == errors_of_node("modalities")


def test_models_are_listed_and_found(seen: Any) -> None:
    assert seen["models"] == ["demo", "successor"]
    assert seen["model"] == "demo"
