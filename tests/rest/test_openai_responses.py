"""The Responses API through OpenAI's SDK for Python, against the demo model."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import openai
import pytest

from tests.rest.agents.person import ANNA, WHO, Person
from tests.rest.agents.weather import BOTH_CITIES, IN_PARIS, IN_ROME, PARIS, run, sentences
from tests.rest.questions import WEATHER

if TYPE_CHECKING:
    from openai.types.responses import Response

FRANCE = "What is the capital of France?"
SUM = "What is 17 + 25?"
TOOL: Any = {"type": "function", **WEATHER["function"], "strict": None}
SHELL: Any = {"type": "custom", "name": "shell", "description": "Run a command."}


def asked(question: Any, **fields: Any) -> dict[str, Any]:
    return {"model": "demo", "input": question, "temperature": 0, **fields}


def lasting(response: Response) -> dict[str, Any]:
    """What is the same each time that a request is answered."""
    fields = response.to_dict()
    for name in ("id", "created_at", "completed_at", "usage"):
        del fields[name]
    for item in fields["output"]:  # type: ignore[attr-defined]
        item.pop("id")
        item.pop("call_id", None)
    return fields


WAYS = {
    "text": asked(FRANCE),
    "items": asked([{"role": "user", "content": [{"type": "input_text", "text": FRANCE}]}]),
    "instructions": asked(FRANCE, instructions="Be brief.", metadata={"a": "b"}),
    "cut": asked(FRANCE, max_output_tokens=3),
    "reasoning": asked(SUM),
    "summary": asked(SUM, reasoning={"summary": "auto"}),
    "calls": asked(BOTH_CITIES, tools=[TOOL]),
    "a call of a certain tool": asked(
        "Hello!", tools=[TOOL], tool_choice={"type": "function", "name": "get_weather"}
    ),
    "a custom call": asked("Hello!", tools=[SHELL], tool_choice="required", max_output_tokens=200),
    "log probabilities": asked(SUM, top_logprobs=2, include=["message.output_text.logprobs"]),
    "a schema": asked(
        WHO,
        text={
            "format": {
                "type": "json_schema",
                "name": "person",
                "schema": Person.model_json_schema(),
            }
        },
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_stream_is_the_whole_in_parts(sdk: openai.OpenAI, way: str) -> None:
    whole: Response = sdk.responses.create(**WAYS[way])
    events: list[Any] = list(sdk.responses.create(**WAYS[way], stream=True))
    ended = events[-1]

    assert lasting(ended.response) == lasting(whole)
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [event.type for event in events[:2]] == ["response.created", "response.in_progress"]
    done = [event.item for event in events if event.type == "response.output_item.done"]
    assert done == ended.response.output
    assert whole.status == ("incomplete" if way == "cut" else "completed")
    assert whole.output


def test_the_answer_and_its_usage(sdk: openai.OpenAI) -> None:
    response = sdk.responses.create(**WAYS["instructions"])

    assert "Paris" in response.output_text
    assert (response.instructions, response.metadata) == ("Be brief.", {"a": "b"})
    assert response.usage
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens
    without = sdk.responses.create(**WAYS["text"]).usage
    assert without
    assert response.usage.input_tokens > without.input_tokens


def test_reasoning_is_an_item_of_its_own(sdk: openai.OpenAI) -> None:
    thought, said = sdk.responses.create(**WAYS["reasoning"]).output
    summed_up, again = sdk.responses.create(**WAYS["summary"]).output

    assert (thought.type, said.type) == (summed_up.type, again.type) == ("reasoning", "message")
    assert thought.type == summed_up.type == "reasoning"
    assert thought.content
    assert thought.content[0].text == summed_up.summary[0].text
    assert (thought.summary, summed_up.content) == ([], None)


def test_log_probabilities_are_those_of_the_text(sdk: openai.OpenAI) -> None:
    thought, message = sdk.responses.create(**WAYS["log probabilities"]).output

    assert (thought.type, message.type) == ("reasoning", "message")
    [part] = message.content
    assert part.type == "output_text"
    assert part.logprobs
    assert "".join(item.token for item in part.logprobs) == part.text
    assert {len(item.top_logprobs) for item in part.logprobs} == {2}


def test_an_answer_is_parsed(sdk: openai.OpenAI) -> None:
    parsed = sdk.responses.parse(**asked(WHO), text_format=Person)

    assert parsed.output_parsed == ANNA


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("kept", [False, True])
def test_calls_are_made_until_there_is_an_answer(
    sdk: openai.OpenAI, *, streamed: bool, kept: bool
) -> None:
    conversation: list[Any] = [{"role": "user", "content": BOTH_CITIES}]
    previous: str | None = None
    turns = 0
    while True:
        fields = asked(conversation, tools=[TOOL], previous_response_id=previous)
        if streamed:
            with sdk.responses.stream(**fields) as stream:
                response: Any = stream.get_final_response()
        else:
            response = sdk.responses.create(**fields)
        turns += 1
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            break
        results = [
            {
                "type": "function_call_output",
                "call_id": call.call_id,
                "output": run(call.name, call.arguments),
            }
            for call in calls
        ]
        if kept:
            previous, conversation = response.id, results
        else:
            conversation += [*(item.to_dict() for item in response.output), *results]

    assert response.output_text == sentences(IN_PARIS, IN_ROME)
    assert turns == 2


def test_a_custom_tool_gets_a_text(sdk: openai.OpenAI) -> None:
    with sdk.responses.stream(**WAYS["a custom call"]) as stream:
        events = list(stream)
    [call] = [event.item for event in events if event.type == "response.output_item.done"]

    assert call.type == "custom_tool_call"
    assert call.name == "shell"
    deltas = [
        event.delta for event in events if event.type == "response.custom_tool_call_input.delta"
    ]
    assert "".join(deltas) == call.input
    result = {"type": "custom_tool_call_output", "call_id": call.call_id, "output": "Done."}
    given_back: list[Any] = [{"role": "user", "content": "Hello!"}, call.to_dict(), result]
    assert sdk.responses.create(**asked(given_back, tools=[SHELL], max_output_tokens=5)).output


@pytest.mark.parametrize("most", range(8, 13))
@pytest.mark.parametrize("tool", [TOOL, SHELL])
def test_after_a_call_that_is_cut_it_goes_on(
    sdk: openai.OpenAI, tool: dict[str, Any], most: int
) -> None:
    fields = asked("Hello!", tools=[tool], tool_choice="required", max_output_tokens=most)
    cut = sdk.responses.create(**fields)

    calls: list[Any] = [item for item in cut.output if item.type != "reasoning"]
    assert cut.status == "incomplete"
    assert not any(call.input.startswith("{") for call in calls if call.type == "custom_tool_call")
    reference = {"type": "item_reference", "id": cut.output[-1].id}
    on: list[Any] = [{"role": "user", "content": "Hi"}]
    for more in (
        asked(on, previous_response_id=cut.id),
        asked([reference, *on]),
        asked([*(item.to_dict() for item in cut.output), *on]),
    ):
        assert sdk.responses.create(**more, tools=[tool], max_output_tokens=3).output


def matching(pattern: str) -> dict[str, Any]:
    return {**SHELL, "format": {"type": "grammar", "syntax": "regex", "definition": pattern}}


def test_a_custom_tools_text_matches_its_pattern(sdk: openai.OpenAI) -> None:
    fields = asked("Hello!", tools=[matching("^[a-z]{3}$")], tool_choice="required")
    [call] = sdk.responses.create(**fields).output

    assert call.type == "custom_tool_call"
    assert re.fullmatch("[a-z]{3}", call.input)


def test_tools_of_a_namespace_and_hosted_ones(sdk: openai.OpenAI) -> None:
    tools = [
        {"type": "namespace", "name": "sky", "description": "The sky.", "tools": [TOOL]},
        {"type": "web_search", "external_web_access": False},
    ]
    raw = sdk.responses.with_raw_response.create(
        **asked(PARIS, tools=tools, tool_choice="required")
    )
    [call, *_] = raw.parse().output

    assert raw.headers["x-ignored-parameters"] == "tools[1]"
    assert call.type == "function_call"
    assert (call.namespace, call.name) == ("sky", "get_weather")


def test_a_response_is_kept_until_it_is_deleted(sdk: openai.OpenAI) -> None:
    made = sdk.responses.create(**asked(FRANCE, instructions="Be brief."))
    assert sdk.responses.retrieve(made.id).to_dict() == made.to_dict()
    with pytest.raises(openai.BadRequestError, match="stream is not supported"):
        sdk.responses.retrieve(made.id, stream=True)
    [item] = sdk.responses.input_items.list(made.id).data
    assert item.to_dict()["content"] == [{"type": "input_text", "text": FRANCE}]
    with pytest.raises(openai.BadRequestError, match="limit must be between 1 and 100, got 0"):
        sdk.responses.input_items.list(made.id, limit=0)
    sdk.responses.delete(made.id)

    for call in (sdk.responses.retrieve, sdk.responses.delete, sdk.responses.input_items.list):
        with pytest.raises(openai.NotFoundError):
            call(made.id)  # type: ignore[operator]
    with pytest.raises(openai.NotFoundError) as caught:
        sdk.responses.create(**asked("And of Italy?", previous_response_id=made.id))
    assert (caught.value.code, caught.value.param) == (
        "previous_response_not_found",
        "previous_response_id",
    )


def test_what_is_not_to_be_kept_is_not(sdk: openai.OpenAI) -> None:
    made = sdk.responses.create(**asked(FRANCE, store=False))
    with pytest.raises(openai.NotFoundError):
        sdk.responses.retrieve(made.id)


def test_input_is_counted_as_it_is_used(sdk: openai.OpenAI) -> None:
    fields = asked(BOTH_CITIES, tools=[TOOL], instructions="Be brief.")
    usage = sdk.responses.create(**fields).usage
    del fields["temperature"]

    counted = sdk.responses.input_tokens.count(**fields)

    assert usage
    assert counted.input_tokens == usage.input_tokens


def test_what_is_kept_is_counted_without_new_input(sdk: openai.OpenAI) -> None:
    made = sdk.responses.create(**asked(FRANCE))
    assert made.usage

    counted = sdk.responses.input_tokens.count(model="demo", previous_response_id=made.id)

    assert counted.input_tokens > made.usage.input_tokens


def test_repeated_items_are_listed_to_the_end(sdk: openai.OpenAI) -> None:
    call = {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "id": "fc_1", "call_id": "a", "output": "b"}
    made = sdk.responses.create(**asked([call, output] * 2))

    listed = [*sdk.responses.input_items.list(made.id, limit=1, order="asc")]

    assert [item.type for item in listed] == [call["type"], output["type"]] * 2


FAULTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "an item of another type": (asked([{"type": "x"}]), "input[0].type", "must be one of"),
    "an item that is not there": (
        asked([{"type": "item_reference", "id": "msg_1"}]),
        "input[0].id",
        "was not found",
    ),
    "in the background": (asked("Hi", background=True), "background", "is only supported as false"),
    "a choice that is none": (asked("Hi", tool_choice="x"), "tool_choice", "must be one of"),
    "too long an answer": (asked("Hi", max_output_tokens=0), "max_output_tokens", "between 1"),
    "too long an input": (asked("Hi " * 20_000), "input", "is too long"),
    "a pattern that is not supported": (
        asked("Hi", tools=[matching("a$b")]),
        "tools[0].format.definition",
        "definition uses a pattern that has an anchor inside, which cannot be enforced.",
    ),
    "nothing to answer": (
        asked([{"type": "reasoning", "summary": []}]),
        "input",
        "must hold something to answer",
    ),
    "a schema that is none": (
        asked("Hi", text={"format": {"type": "json_schema", "name": "x", "schema": {"type": "y"}}}),
        "text.format.schema",
        "type",
    ),
}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("fault", FAULTS)
def test_errors_name_the_field(sdk: openai.OpenAI, fault: str, *, streamed: bool) -> None:
    fields, param, says = FAULTS[fault]
    with pytest.raises(openai.BadRequestError) as caught:
        sdk.responses.create(**fields, stream=streamed)

    assert caught.value.param == param
    assert says in caught.value.message


def test_an_unknown_model_is_not_found(sdk: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        sdk.responses.create(model="missing", input="Hi")
    assert (caught.value.param, caught.value.code) == ("model", "model_not_found")


def test_a_conversation_that_is_too_long_keeps_its_instructions_and_tools(
    sdk: openai.OpenAI,
) -> None:
    long = [
        {"role": "user", "content": "Hello world. " * 3000},
        {"role": "assistant", "content": "Hello."},
    ]
    question: list[Any] = [{"role": "user", "content": PARIS}]
    fields: dict[str, Any] = {"instructions": "Be brief.", "tools": [TOOL], "temperature": 0}
    short = sdk.responses.create(model="demo", input=question, **fields)

    cut = sdk.responses.create(model="demo", input=long + question, truncation="auto", **fields)

    assert lasting(cut)["output"] == lasting(short)["output"]
    assert cut.usage
    assert short.usage
    assert cut.usage.input_tokens == short.usage.input_tokens
    with pytest.raises(openai.BadRequestError) as caught:
        sdk.responses.create(model="demo", input=long[:1], truncation="auto")  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.param) == ("context_length_exceeded", "input")
