"""What the compliance tests of Open Responses ask for: every field of a response, every event.

The schema is that of its ResponseResource, as far as this server's answers reach.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from tests.figures import figure

if TYPE_CHECKING:
    import httpx

STRING, NUMBER, INTEGER = {"type": "string"}, {"type": "number"}, {"type": "integer"}
STATUS = {"enum": ["in_progress", "completed", "incomplete"]}


def nullable(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


def every(**properties: Any) -> dict[str, Any]:
    """An object that has all of these."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def array(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


TOP = every(token=STRING, logprob=NUMBER, bytes=array(INTEGER))
TEXT = every(
    type={"const": "output_text"},
    text=STRING,
    annotations={"const": []},
    logprobs=array({**TOP, "required": [*TOP["required"], "top_logprobs"]}),
)
ITEM = {
    "anyOf": [
        every(
            type={"const": "message"},
            id=STRING,
            status=STATUS,
            role={"const": "assistant"},
            content=array(TEXT),
        ),
        every(
            type={"const": "function_call"},
            id=STRING,
            call_id=STRING,
            name=STRING,
            arguments=STRING,
            status=STATUS,
        ),
        every(type={"const": "reasoning"}, id=STRING, summary={"type": "array"}),
    ]
}
TOOL = every(
    type={"const": "function"},
    name=STRING,
    description=nullable(STRING),
    parameters=nullable({"type": "object"}),
    strict=nullable({"type": "boolean"}),
)
RESPONSE = every(
    id=STRING,
    object={"const": "response"},
    created_at=INTEGER,
    completed_at=nullable(INTEGER),
    status={"enum": ["queued", "in_progress", "completed", "incomplete", "failed"]},
    incomplete_details=nullable(every(reason=STRING)),
    model=STRING,
    previous_response_id=nullable(STRING),
    instructions=nullable(STRING),
    output=array(ITEM),
    error=nullable(every(code=STRING, message=STRING)),
    tools=array(TOOL),
    tool_choice={"anyOf": [{"enum": ["none", "auto", "required"]}, every(type=STRING)]},
    truncation={"enum": ["auto", "disabled"]},
    parallel_tool_calls={"type": "boolean"},
    text=every(format=every(type=STRING)),
    top_p=NUMBER,
    presence_penalty=NUMBER,
    frequency_penalty=NUMBER,
    top_logprobs=INTEGER,
    temperature=NUMBER,
    reasoning=nullable(every(effort=nullable(STRING), summary=nullable(STRING))),
    usage=nullable(
        every(
            input_tokens=INTEGER,
            output_tokens=INTEGER,
            total_tokens=INTEGER,
            input_tokens_details=every(cached_tokens=INTEGER),
            output_tokens_details=every(reasoning_tokens=INTEGER),
        )
    ),
    max_output_tokens=nullable(INTEGER),
    max_tool_calls=nullable(INTEGER),
    store={"type": "boolean"},
    background={"type": "boolean"},
    service_tier=STRING,
    metadata={},
    safety_identifier=nullable(STRING),
    prompt_cache_key=nullable(STRING),
)
CITY = {"type": "object", "properties": {"location": STRING}, "required": ["location"]}


def said(role: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": content, **fields}


# What is asked, and the types of items that the answer must have.
CASES: dict[str, tuple[dict[str, Any], set[str]]] = {
    "a text": ({"input": [said("user", "Say hello in exactly 3 words.")]}, {"message"}),
    "a system prompt": (
        {"input": [said("system", "You are a pirate."), said("user", "Say hello.")]},
        {"message"},
    ),
    "phases of an assistant's messages": (
        {
            "input": [
                said("user", "Hello!"),
                said("assistant", "Let me think.", phase="commentary"),
                said("assistant", "Hello!", phase="final_answer"),
                said("user", "What is the capital of France?"),
            ]
        },
        {"message"},
    ),
    "a tool": (
        {
            "input": [said("user", "What's the weather like in Paris?")],
            "tools": [{"type": "function", "name": "get_weather", "parameters": CITY}],
            "tool_choice": "required",
        },
        {"function_call"},
    ),
    "a conversation": (
        {
            "input": [
                said("user", "My name is Anna."),
                said("assistant", "Hello Anna!"),
                said("user", "What is 17 + 25?"),
            ]
        },
        {"message"},
    ),
    "an answer that is cut": ({"input": "Count to 10", "max_output_tokens": 2}, {"message"}),
    "log probabilities": ({"input": "Count to 10", "top_logprobs": 2}, {"message"}),
}


@pytest.mark.parametrize("case", CASES)
async def test_a_response_has_every_field(http: httpx.AsyncClient, case: str) -> None:
    fields, types = CASES[case]
    answer = await http.post("/v1/responses", json={"model": "demo", "temperature": 0, **fields})

    assert answer.status_code == 200, answer.text
    jsonschema.validate(answer.json(), RESPONSE)
    assert types <= {item["type"] for item in answer.json()["output"]}
    cut = "max_output_tokens" in fields
    assert answer.json()["status"] == ("incomplete" if cut else "completed")


@pytest.mark.parametrize("case", CASES)
async def test_a_stream_has_named_and_numbered_events(http: httpx.AsyncClient, case: str) -> None:
    fields, _ = CASES[case]
    answer = await http.post(
        "/v1/responses", json={"model": "demo", "temperature": 0, "stream": True, **fields}
    )

    assert answer.headers["content-type"].startswith("text/event-stream")
    *blocks, done = answer.text.removesuffix("\n\n").split("\n\n")
    assert done == "data: [DONE]"
    events = []
    for number, block in enumerate(blocks):
        name, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        assert event["sequence_number"] == number
        events.append(event)
    responses = [event["response"] for event in events if "response" in event]
    assert [event["type"] for event in events[:2]] == ["response.created", "response.in_progress"]
    assert events[-1]["type"] == f"response.{responses[-1]['status']}"
    for response in responses:
        jsonschema.validate(response, RESPONSE)


async def test_an_image_to_a_model_that_sees_none_is_refused_by_name(
    http: httpx.AsyncClient,
) -> None:
    url = f"data:image/png;base64,{base64.b64encode(figure('circle', 'red')).decode()}"
    parts = [{"type": "input_text", "text": "Hi"}, {"type": "input_image", "image_url": url}]
    answer = await http.post(
        "/v1/responses", json={"model": "demo", "input": [said("user", parts)]}
    )

    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "input[0].content[1].image_url"
