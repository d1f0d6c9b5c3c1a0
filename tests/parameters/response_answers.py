"""Responses in the one form of answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.parameters.answers import Answer, Choice, Said

if TYPE_CHECKING:
    from collections.abc import Iterable


def of_response(response: dict[str, Any]) -> Answer:
    """A whole response."""
    choice = Choice()
    for item in response["output"]:
        match item["type"]:
            case "message":
                [part] = item["content"]
                choice.text += part["text"]
                choice.logprobs += _said(part["logprobs"])
            case "reasoning":
                [part] = [*item["summary"], *item.get("content", ())]
                choice.reasoning += part["text"]
            case "function_call":
                choice.calls.append([item["name"], item["arguments"]])
    return _ended(choice, response)


def of_response_events(lines: Iterable[str]) -> Answer:
    """A stream, by what each event adds."""
    data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    assert data.pop() == "[DONE]"
    events = [json.loads(event) for event in data]
    choice = Choice()
    for event in events:
        match event["type"].removeprefix("response."):
            case "output_text.delta":
                choice.text += event["delta"]
                choice.logprobs += _said(event["logprobs"])
            case "reasoning_text.delta" | "reasoning_summary_text.delta":
                choice.reasoning += event["delta"]
            case "output_item.added" if event["item"]["type"] == "function_call":
                choice.calls.append([event["item"]["name"], ""])
            case "function_call_arguments.delta":
                choice.calls[-1][1] += event["delta"]
    answer = _ended(choice, events[-1]["response"])
    deltas = [event for event in events if event["type"].endswith(".delta")]
    answer.usages = [*[None for _ in deltas], answer.usage]
    return answer


def _ended(choice: Choice, response: dict[str, Any]) -> Answer:
    """With a chat's word for its end."""
    if response["status"] == "incomplete":
        choice.finish = "length"
    else:
        assert response["status"] == "completed", response
        choice.finish = "tool_calls" if choice.calls else "stop"
    usage = response["usage"]
    return Answer([choice], (usage["input_tokens"], usage["output_tokens"]))


def _said(logprobs: list[dict[str, Any]]) -> list[Said]:
    return [
        (item["token"], round(item["logprob"], 3), [top["token"] for top in item["top_logprobs"]])
        for item in logprobs
    ]
