"""The form of answers, typed."""

from __future__ import annotations

import asyncio
import json
import random
import re
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import pytest

from ovchat.v1 import chat_pb2, completion_pb2, completion_service_pb2_grpc, format_pb2
from tests.effort import scaled
from tests.grpc.requests import ask, joined, text_of
from tests.structured_output import (
    QUESTION,
    RANDOM_SCHEMAS,
    SCHEMA,
    TAG,
    assert_valid,
    random_schema,
)

if TYPE_CHECKING:
    from tests.grpc.conftest import Client

SCHEMA_TEXT = json.dumps(SCHEMA)
FORMS: dict[str, tuple[dict[str, Any], str]] = {
    "regex": (
        {"structured_outputs": format_pb2.StructuredOutputs(regex="[0-9]{2}-[a-z]{2}")},
        "[0-9]{2}-[a-z]{2}",
    ),
    "choice": (
        {
            "structured_outputs": format_pb2.StructuredOutputs(
                choice=format_pb2.StringList(values=["yes", "no"])
            )
        },
        "yes|no",
    ),
    "grammar": (
        {"structured_outputs": format_pb2.StructuredOutputs(grammar='root ::= "x" | "yy"')},
        "x|yy",
    ),
    "structural tag": (
        {"structured_outputs": format_pb2.StructuredOutputs(structural_tag=json.dumps(TAG))},
        "[ab]{3}",
    ),
    "response format's tag": (
        {"response_format": format_pb2.ResponseFormat(structural_tag=json.dumps(TAG))},
        "[ab]{3}",
    ),
}
SCHEMAS: dict[str, dict[str, Any]] = {
    "json": {"structured_outputs": format_pb2.StructuredOutputs(json=SCHEMA_TEXT)},
    "json_schema": {
        "response_format": format_pb2.ResponseFormat(
            json_schema=format_pb2.JsonSchemaFormat(name="person", schema=SCHEMA_TEXT, strict=True)
        )
    },
}


def question(**fields: Any) -> chat_pb2.CreateChatCompletionRequest:
    """Without reasoning: at some temperature the demo model may never end it."""
    fields = {"chat_template_kwargs": '{"enable_thinking": false}', **fields}
    return ask(QUESTION, max_tokens=200, temperature=1, seed=1, **fields)


@pytest.mark.parametrize("form", FORMS)
async def test_answers_have_the_form_whole_and_streamed(client: Client, form: str) -> None:
    fields, pattern = FORMS[form]

    whole = await client.chat.CreateChatCompletion(question(**fields))
    chunks = [chunk async for chunk in client.chat.StreamChatCompletion(question(**fields))]

    assert re.fullmatch(pattern, text_of(whole))
    assert re.fullmatch(pattern, joined(chunks))


@pytest.mark.parametrize("form", SCHEMAS)
async def test_json_follows_its_schema_whole_and_streamed(client: Client, form: str) -> None:
    # Greedy, for an answer that ends.
    request = question(**SCHEMAS[form])
    request.temperature = 0

    whole = await client.chat.CreateChatCompletion(request)
    chunks = [chunk async for chunk in client.chat.StreamChatCompletion(request)]

    assert whole.choices[0].finish_reason == chat_pb2.FINISH_REASON_STOP
    assert_valid(text_of(whole), SCHEMA)
    assert joined(chunks) == text_of(whole)


async def test_any_object_is_an_object(client: Client) -> None:
    form = format_pb2.ResponseFormat(json_object=format_pb2.JsonObjectFormat())

    completion = await client.chat.CreateChatCompletion(question(response_format=form))

    assert text_of(completion).startswith("{")


async def test_reasoning_is_free_and_the_answer_is_not(client: Client) -> None:
    request = ask(
        "What is 12 + 30?",
        max_tokens=300,
        temperature=0,
        reasoning_effort="low",
        structured_outputs=format_pb2.StructuredOutputs(regex="[0-9]{2}"),
    )

    message = (await client.chat.CreateChatCompletion(request)).choices[0].message

    assert message.reasoning_content
    assert re.fullmatch("[0-9]{2}", message.content[0].text)


async def test_without_thinking_all_is_answer_that_has_the_form(client: Client) -> None:
    request = question(structured_outputs=format_pb2.StructuredOutputs(regex="<think>[a-z]{5}"))

    message = (await client.chat.CreateChatCompletion(request)).choices[0].message

    assert not message.reasoning_content
    assert re.fullmatch("<think>[a-z]{5}", message.content[0].text)


async def test_text_completions_have_the_form(client: Client) -> None:
    stub = completion_service_pb2_grpc.CompletionServiceStub(client.channel)
    completion = await stub.CreateCompletion(
        completion_pb2.CreateCompletionRequest(
            model="demo",
            prompt=[completion_pb2.Prompt(text="The colour is")],
            structured_outputs=format_pb2.StructuredOutputs(regex="[a-z]{5}"),
        )
    )

    assert re.fullmatch("[a-z]{5}", completion.choices[0].text)


@pytest.mark.parametrize(
    ("fields", "field", "part"),
    [
        (
            {"structured_outputs": format_pb2.StructuredOutputs(regex="[a")},
            "structured_outputs.regex",
            "Unclosed '['",
        ),
        (
            {"structured_outputs": format_pb2.StructuredOutputs(json="{")},
            "structured_outputs.json",
            "must be JSON in a string",
        ),
        (
            {"structured_outputs": format_pb2.StructuredOutputs()},
            "structured_outputs",
            "requires one of",
        ),
        (
            {"response_format": format_pb2.ResponseFormat(structural_tag="[]")},
            "response_format",
            "must have a format",
        ),
        (
            {
                "response_format": format_pb2.ResponseFormat(
                    json_schema=format_pb2.JsonSchemaFormat(schema='{"type": "nonsense"}')
                )
            },
            "response_format.json_schema.schema",
            "unknown type 'nonsense'",
        ),
    ],
)
async def test_what_cannot_be_enforced_is_refused_by_name(
    client: Client, fields: dict[str, Any], field: str, part: str
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await client.chat.CreateChatCompletion(question(**fields))

    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    message = caught.value.details() or ""
    assert message.startswith(field)
    assert part in message


@pytest.mark.slow
async def test_random_schemas_hold_or_are_refused(client: Client) -> None:
    at_once = asyncio.Semaphore(16)

    async def outcome(seed: int) -> str:
        schema = random_schema(random.Random(seed))
        form = format_pb2.ResponseFormat(
            json_schema=format_pb2.JsonSchemaFormat(name="x", schema=json.dumps(schema))
        )
        request = ask(
            QUESTION,
            max_tokens=100,
            temperature=1,
            seed=seed,
            response_format=form,
            chat_template_kwargs=json.dumps({"enable_thinking": seed % 2 == 0}),
        )
        async with at_once:
            try:
                completion = await client.chat.CreateChatCompletion(request)
            except grpc.aio.AioRpcError as error:
                # Anything else is none of the outcomes below.
                return "refused" if "cannot be enforced" in (error.details() or "") else repr(error)
        choice = completion.choices[0]
        if choice.finish_reason != chat_pb2.FINISH_REASON_STOP:
            return "length"
        assert_valid(text_of(completion), schema)
        return "valid"

    count = scaled(RANDOM_SCHEMAS)
    outcomes = await asyncio.gather(*map(outcome, range(count)))

    assert set(outcomes) == {"valid", "length", "refused"}
    # Most are schemas that people write.
    assert outcomes.count("valid") > count / 4
    assert outcomes.count("refused") < count / 2
