"""OpenAI's SDK for Node must not notice the difference."""

from __future__ import annotations

import json
import subprocess
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.successor import successor_text

if TYPE_CHECKING:
    from tests.rest.conftest import Stack

HERE = Path(__file__).resolve().parent / "node"
NODE = Path(sysconfig.get_path("scripts")) / "node"


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def seen(stack: Stack) -> Any:
    """What the SDK made of our answers."""
    result = subprocess.run(
        [NODE, HERE / "chat.mjs", f"{stack.url}/v3"],
        capture_output=True,
        check=False,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


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
    wrong = {"name": "BadRequestError", "status": 400, "known": True}
    assert seen["errors"] == [
        {
            "name": "NotFoundError",
            "status": 404,
            "code": "model_not_found",
            "param": "model",
            "known": True,
        },
        {**wrong, "code": "invalid_value", "param": "temperature"},
        {**wrong, "code": "unsupported_parameter", "param": "modalities"},
    ]


def test_models_are_listed_and_found(seen: Any) -> None:
    assert seen["models"] == ["demo", "successor"]
    assert seen["model"] == "demo"
