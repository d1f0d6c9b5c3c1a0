"""Reasoning ends where its budget does, and the answer follows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import httpx

BUDGET = 9
OPENING, CLOSING = "<think>", "</think>"
# The tokens that close it: a line break, and the mark.
MARK = 2
SUM = {"role": "user", "content": "What is 17 + 25?"}
BEGUN = {"role": "assistant", "content": "<think>\nOnes: 7 + 5 = 12, write 2, carry 1.\n"}
GOES_ON = {"continue_final_message": True, "add_generation_prompt": False}
CASES: dict[str, tuple[list[dict[str, str]], dict[str, Any]]] = {
    "many choices": ([SUM], {"n": 30}),
    "unsure": ([SUM], {"n": 30, "temperature": 1.6, "min_tokens": 50}),
    "past the end": ([SUM], {"temperature": 0, "ignore_eos": True}),
    "begun in the prompt": ([SUM, BEGUN], {"n": 10, **GOES_ON}),
    "before a form": (
        [SUM],
        {"n": 10, "reasoning_effort": "low", "structured_outputs": {"regex": "[0-9]{2}"}},
    ),
}


@pytest.mark.parametrize("case", CASES)
async def test_reasoning_ends_where_its_budget_does(http: httpx.AsyncClient, case: str) -> None:
    messages, fields = CASES[case]
    body = {
        "model": "demo",
        "messages": messages,
        "max_tokens": 60,
        "seed": 1,
        "logprobs": True,
        "thinking_token_budget": BUDGET,
        **fields,
    }

    answer = (await http.post("/v3/chat/completions", json=body)).json()

    opened = BEGUN in messages
    counts = [reasoning_tokens(choice, opened=opened) for choice in answer["choices"]]
    # Some of it would be longer by itself.
    assert max(counts) == BUDGET + MARK
    for choice in answer["choices"]:
        assert choice["message"]["content"]
    marks = sum(counts) + sum(count > 0 for count in counts) * (not opened)
    assert answer["usage"]["completion_tokens_details"]["reasoning_tokens"] == marks


def reasoning_tokens(choice: dict[str, Any], *, opened: bool) -> int:
    """The tokens of a choice's reasoning, and of what closes it."""
    text, count = "", 0
    for token in choice["logprobs"]["content"]:
        text += token["token"]
        count += opened
        if text.lstrip().startswith(OPENING):
            opened = True
        if CLOSING in text:
            break
    return count
