"""Anthropic's SDK for Python must not notice the difference."""

from __future__ import annotations

import json
from itertools import cycle
from typing import TYPE_CHECKING, Any

import anthropic
import pytest

from tests.rest.agents.person import ANNA, WHO, Person
from tests.rest.agents.weather import (
    BOTH_CITIES,
    DESCRIPTIONS,
    IN_PARIS,
    IN_ROME,
    TOOLS,
    run,
    sentences,
)
from tests.successor import successor_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anthropic.types import Message

    from tests.rest.conftest import Stack

SUM = "What is 17 + 25?"
THINKING = {"type": "enabled", "budget_tokens": 1024}
# As Anthropic's API has them.
FUNCTIONS = [
    {
        "name": function["name"],
        "description": function["description"],
        "input_schema": function["parameters"],
    }
    for function in (tool["function"] for tool in TOOLS)
]


@pytest.fixture(scope="module")
def client(stack: Stack) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=stack.url, api_key="unused", max_retries=0) as client:
        yield client


def asked(*contents: Any, model: str = "demo", **fields: Any) -> dict[str, Any]:
    """A request; the contents are the user's and the assistant's in turn."""
    turns = zip(cycle(("user", "assistant")), contents, strict=False)
    messages = [{"role": role, "content": content} for role, content in turns]
    # The SDK knows no temperature any more.
    greedy = {"extra_body": {"temperature": 0}}
    return {"model": model, "messages": messages, "max_tokens": 2000, **greedy, **fields}


def letter(**fields: Any) -> dict[str, Any]:
    return asked("a", model="successor", **fields)


def prompt_tokens(message: Message) -> int:
    assert message.usage.cache_creation_input_tokens == 0
    return message.usage.input_tokens + (message.usage.cache_read_input_tokens or 0)


def lasting(message: Any) -> dict[str, Any]:
    """What is the same each time that a request is answered."""
    blocks = [block.model_dump(exclude={"parsed_output"}) for block in message.content]
    for block in blocks:
        if block["type"] == "tool_use":
            assert block.pop("id").startswith("toolu_")
    stopped = message.stop_reason, message.stop_sequence
    usage = prompt_tokens(message), message.usage.output_tokens
    return {"content": blocks, "stopped": stopped, "usage": usage}


def text(message: Any) -> str:
    [block] = message.content
    return str(block.text)


@pytest.mark.parametrize(
    ("request_", "said", "stopped"),
    [
        (asked("Hello!"), "Hello! How can I help you?", ("end_turn", None)),
        (
            asked("What is your name?", system="Your name is Zorb."),
            "My name is Zorb.",
            ("end_turn", None),
        ),
        (asked("Hello!", "Hello! How"), " can I help you?", ("end_turn", None)),
        (letter(stop_sequences=["zz", "fg"]), "bcde", ("stop_sequence", "fg")),
        (letter(max_tokens=40), successor_text("a", 40), ("max_tokens", None)),
    ],
    ids=["text", "system", "begun", "stopped", "cut"],
)
def test_answers(
    client: anthropic.Anthropic,
    request_: dict[str, Any],
    said: str,
    stopped: tuple[str, str | None],
) -> None:
    whole = client.messages.create(**request_)
    with client.messages.stream(**request_) as stream:
        streamed = "".join(stream.text_stream)

    assert text(whole) == streamed == said
    assert (whole.stop_reason, whole.stop_sequence) == stopped
    assert (whole.model, whole.role) == (request_["model"], "assistant")
    assert whole._request_id
    assert lasting(stream.get_final_message()) == lasting(whole)


def test_claude_codes_billing_header_does_not_end_prefix_caching(
    client: anthropic.Anthropic,
) -> None:
    def answer(header: str) -> Message:
        header = f"x-anthropic-billing-header: cc_version=2.1.332; cch={header};"
        system = [{"type": "text", "text": item} for item in (header, "Answer kindly. " * 60)]
        return client.messages.create(**asked("Hello!", system=system))

    first, again = answer("0a1b2"), answer("3c4d5")
    assert prompt_tokens(again) == prompt_tokens(first)
    assert (again.usage.cache_read_input_tokens or 0) > 100


@pytest.mark.parametrize(
    ("request_", "kinds"),
    [
        (asked(SUM, thinking=THINKING), ["thinking", "text"]),
        (asked(BOTH_CITIES, tools=FUNCTIONS), ["tool_use", "tool_use"]),
    ],
    ids=["thinking", "calls"],
)
def test_a_stream_accumulates_to_the_whole_message(
    client: anthropic.Anthropic, request_: dict[str, Any], kinds: list[str]
) -> None:
    whole = client.messages.create(**request_)
    with client.messages.stream(**request_) as stream:
        events = list(stream)

    assert [block.type for block in whole.content] == kinds
    assert [
        event.content_block.type for event in events if event.type == "content_block_start"
    ] == kinds
    assert (events[0].type, events[-1].type) == ("message_start", "message_stop")
    assert lasting(stream.get_final_message()) == lasting(whole)


async def test_answers_and_streams_asynchronously(stack: Stack) -> None:
    async with anthropic.AsyncAnthropic(
        base_url=stack.url, api_key="unused", max_retries=0
    ) as client:
        whole = await client.messages.create(**letter(max_tokens=5))
        async with client.messages.stream(**letter(max_tokens=5)) as stream:
            streamed = [piece async for piece in stream.text_stream]

    assert text(whole) == "".join(streamed) == "bcdef"


def test_a_tool_is_called_and_its_result_told(client: anthropic.Anthropic) -> None:
    calling = client.messages.create(**asked(BOTH_CITIES, tools=FUNCTIONS))
    calls = [block for block in calling.content if block.type == "tool_use"]
    results = [
        {
            "type": "tool_result",
            "tool_use_id": call.id,
            "content": run(call.name, json.dumps(call.input)),
        }
        for call in calls
    ]
    answer = client.messages.create(**asked(BOTH_CITIES, calling.content, results, tools=FUNCTIONS))

    assert calling.stop_reason == "tool_use"
    assert [(call.name, call.input["city"]) for call in calls] == [IN_PARIS, IN_ROME]
    assert text(answer) == sentences(IN_PARIS, IN_ROME)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_its_runner_calls_tools_until_there_is_an_answer(
    client: anthropic.Anthropic, *, stream: bool
) -> None:
    @anthropic.beta_tool(description=DESCRIPTIONS["get_weather"])
    def get_weather(city: str) -> str:
        return run("get_weather", json.dumps({"city": city}))

    # It asks for a thread first, and is told that there is none.
    runner: Any = client.beta.messages.tool_runner(
        **asked(BOTH_CITIES, tools=[get_weather]), stream=stream
    )
    calling, answer = [item.get_final_message() if stream else item for item in runner]

    assert [block.input for block in calling.content] == [{"city": "Paris"}, {"city": "Rome"}]
    assert text(answer) == sentences(IN_PARIS, IN_ROME)


def test_tokens_are_counted_as_they_are_used(client: anthropic.Anthropic) -> None:
    for fields in ({}, {"system": "Be brief."}, {"tools": FUNCTIONS}, {"thinking": THINKING}):
        request_ = asked(SUM, **fields)
        answer = client.messages.create(**request_)
        del request_["max_tokens"], request_["extra_body"]
        assert client.messages.count_tokens(**request_).input_tokens == prompt_tokens(answer)


def test_thinking_comes_back_shown_or_not(client: anthropic.Anthropic) -> None:
    contents: list[list[Any]] = [
        client.messages.create(
            **asked(SUM, thinking={"type": "adaptive", "display": display})
        ).content
        for display in ("summarized", "omitted")
    ]
    (shown, said), (hidden, _) = contents
    # It stays in the prompt until the user speaks again.
    use = {"type": "tool_use", "id": "toolu_1", "name": "get_time", "input": {"city": "Rome"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "12:30"}
    tokens = [
        prompt_tokens(client.messages.create(**asked(SUM, [*content, use], [result])))
        for content in (*contents, [said])
    ]

    assert "carry 1" in shown.thinking
    assert shown.signature
    assert hidden.thinking == ""
    assert tokens[0] == tokens[1] > tokens[2]


def test_answers_are_objects_of_a_schema(client: anthropic.Anthropic) -> None:
    parsed = client.messages.parse(**asked(WHO), output_format=Person)
    with client.messages.stream(**asked(WHO), output_format=Person) as stream:
        streamed = stream.get_final_message()
    form = {"type": "json_schema", "schema": Person.model_json_schema()}
    written = client.messages.create(**asked(WHO, output_config={"format": form}))

    assert parsed.parsed_output == streamed.parsed_output == ANNA
    assert Person.model_validate_json(text(written)) == ANNA


def test_errors_are_its_own(client: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.NotFoundError, match="'nobody' does not exist") as unknown:
        client.messages.create(**asked("Hello!", model="nobody"))
    with pytest.raises(anthropic.BadRequestError, match=r"stop_sequences\[0\] must not be empty"):
        client.messages.create(**letter(stop_sequences=[""]))
    with (
        pytest.raises(anthropic.BadRequestError, match="prompt is too long"),
        client.messages.stream(**asked("word " * 5000)) as stream,
    ):
        stream.until_done()

    assert unknown.value.type == "not_found_error"
    assert unknown.value.request_id


def test_raw_responses_carry_our_headers(client: anthropic.Anthropic) -> None:
    response = client.messages.with_raw_response.create(
        **letter(max_tokens=2, extra_body={"sparkle": True}, extra_headers={"x-request-id": "7"})
    )
    message = response.parse()

    assert response.headers["x-ignored-parameters"] == "sparkle"
    assert response.request_id == message._request_id == "7"
    assert text(message) == "bc"
