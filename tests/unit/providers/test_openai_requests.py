"""Requests in OpenAI's API: another ovchat reads of them what the caller asked for."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from openai.types import completion_create_params
from openai.types.chat import completion_create_params as chat_create_params

from ovchat_server.domain.chat import ChatRequest, Message, Role, ToolChoice
from ovchat_server.domain.content import Image
from ovchat_server.domain.errors import InvalidRequestError
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.generation import SpeculationParams, StreamOptions
from ovchat_server.domain.structured_output import ConstraintKind
from ovchat_server.providers.openai.kind import OpenAiKind
from tests.parameters.case import said
from tests.unit.providers.cases import CASES, CONVERSATION, VLLMS, read

if TYPE_CHECKING:
    from ovchat_server.domain.generation import GenerationParams
    from ovchat_server.domain.text import TextRequest
    from tests.parameters.case import Fields

PLAIN = OpenAiKind("plain", "max_completion_tokens", vllm_parameters=False)
VLLM = OpenAiKind("vllm", "max_tokens", vllm_parameters=True)
SDK = {
    "chat": {"stream", *chat_create_params.CompletionCreateParamsBase.__annotations__},
    "text": {"stream", *completion_create_params.CompletionCreateParamsBase.__annotations__},
}
ENDPOINTS = {"/chat/completions": "chat", "/completions": "text"}
# What is refused where only OpenAI's parameters are known.
REFUSED = VLLMS | {
    "top_k",
    "continue_final_message",
    "add_special_tokens",
    "return_token_ids",
    # Of forms that OpenAI's do not know, and of texts any.
    "response_format.schema",
    "response_format.json_schema.schema",
    "structured_outputs.json",
    "guided_json",
}


def sent(kind: OpenAiKind, request: ChatRequest | TextRequest) -> tuple[str, Fields]:
    """The endpoint and the body as a provider parses it."""
    wire = kind.request(request, "m")
    body: Fields = msgspec.json.decode(msgspec.json.encode(wire.body))
    return ENDPOINTS[wire.path], body


def as_meant(request: ChatRequest | TextRequest) -> ChatRequest | TextRequest:
    """A request without what the provider need not know, and what differs in its spelling only."""
    same = dataclasses.replace(
        request,
        model="m",
        generation=_generation(request.generation),
        stream=request.stream and dataclasses.replace(request.stream, include_usage=True),
    )
    if not isinstance(same, ChatRequest):
        return same
    choice = dataclasses.replace(same.tool_choice, older=False) if same.tools else ToolChoice()
    messages = tuple(map(_message, same.messages))
    return dataclasses.replace(same, messages=messages, tool_choice=choice, call_tags=None)


def _message(message: Message) -> Message:
    # OpenAI takes no message that says nothing at all, and others no developer's.
    content = message.content if message.tool_calls else message.content or ("",)
    role = Role.SYSTEM if message.role is Role.DEVELOPER else message.role
    return dataclasses.replace(message, role=role, content=content)


def _generation(params: GenerationParams) -> GenerationParams:
    constraint, beams = params.constraint, params.beams
    if constraint and constraint.kind is ConstraintKind.JSON_SCHEMA:
        asked = {"strict": True} if constraint.described is None else constraint.described
        constraint = dataclasses.replace(constraint, described={"name": "answer", **asked})
    field = FieldPath()
    return dataclasses.replace(
        params,
        ending=dataclasses.replace(params.ending, max_tokens_field=field),
        beams=beams and dataclasses.replace(beams, field=field),
        constraint=constraint and dataclasses.replace(constraint, field=field),
        speculation=SpeculationParams(prediction=params.speculation.prediction or None),
    )


@pytest.mark.parametrize(("endpoint", "fields"), CASES)
def test_another_ovchat_reads_the_same_request(endpoint: str, fields: Fields) -> None:
    request = read(endpoint, fields)

    written_for, body = sent(VLLM, request)

    assert written_for == endpoint
    assert as_meant(read(endpoint, body)) == as_meant(request)


def test_without_vllms_parameters_those_are_refused_by_the_callers_names() -> None:
    refused: set[str] = set()
    for case in CASES:
        endpoint, fields = case.values
        assert isinstance(endpoint, str)
        assert isinstance(fields, dict)
        request = read(endpoint, fields)
        try:
            _, body = sent(PLAIN, request)
        except InvalidRequestError as error:
            refused |= _refused(error, fields)
        else:
            assert body.keys() <= SDK[endpoint]
            assert as_meant(read(endpoint, body)) == as_meant(_unreasoned(request))

    assert refused == REFUSED


def _refused(error: InvalidRequestError, fields: Fields) -> set[str]:
    """The fields that an error is about, which are the caller's."""
    names = {violation.field for violation in error.violations}
    assert {name.split(".")[0] for name in names} <= fields.keys()
    assert error.code == "unsupported_parameter"
    assert "is not supported by the provider 'plain'." in error.message
    return names


def _unreasoned(request: ChatRequest | TextRequest) -> ChatRequest | TextRequest:
    """What OpenAI's API cannot say is left to the reader of the answer, or ignored."""
    if not isinstance(request, ChatRequest):
        return request
    messages = [dataclasses.replace(item, reasoning_content=None) for item in request.messages]
    return dataclasses.replace(request, messages=tuple(messages), include_reasoning=True)


@pytest.mark.parametrize(
    ("kind", "fields", "ignored"),
    [
        (PLAIN, {"messages": CONVERSATION}, ["messages[2].reasoning_content"]),
        (VLLM, {"messages": CONVERSATION}, []),
        (
            VLLM,
            {"num_assistant_tokens": 3, "max_ngram_size": 2},
            ["num_assistant_tokens", "max_ngram_size"],
        ),
        (PLAIN, {"assistant_confidence_threshold": 0.5}, ["assistant_confidence_threshold"]),
    ],
)
def test_what_cannot_change_the_answer_is_ignored(
    kind: OpenAiKind, fields: Fields, ignored: list[str]
) -> None:
    assert kind.request(read("chat", {**said("Hi"), **fields}), "m").ignored == ignored


def test_of_what_is_not_set_nothing_is_sent() -> None:
    message: Fields = {"role": "user", "content": "Hi"}
    request = read("chat", {"model": "x", "messages": [message]})

    assert sent(PLAIN, request) == ("chat", {"model": "m", "messages": [message]})


@pytest.mark.parametrize("thinking", [True, False])
def test_whether_to_reason_is_said_where_there_are_templates(*, thinking: bool) -> None:
    request = ChatRequest("x", (Message(Role.USER, ("Hi",)),), thinking=thinking)
    both = {"enable_thinking": thinking, "thinking": thinking}
    assert sent(VLLM, request)[1]["chat_template_kwargs"] == both
    wire = PLAIN.request(request, "m")
    assert wire.body.keys() == {"model", "messages"}
    assert wire.ignored == ["thinking"]


def test_a_developers_message_is_the_systems() -> None:
    developer = Message(Role.DEVELOPER, ("Be brief.",))
    _, body = sent(VLLM, ChatRequest("x", (developer,)))

    assert body["messages"] == [{"role": "system", "content": "Be brief."}]


def _image(**fields: Any) -> ChatRequest:
    path = FieldPath.of("messages", 0, "content", 0, "image_url")
    return ChatRequest("x", (Message(Role.USER, (Image(field=path, **fields),)),))


def test_images_that_are_bytes_are_sent_in_urls() -> None:
    _, body = sent(PLAIN, _image(data=b"\xff\xd8\xff\xe0"))

    part = {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,/9j/4A=="}}
    assert body["messages"][0]["content"] == [part]


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (_image(url="file:///a.png"), "messages[0].content[0].image_url"),
        (_image(url="/a.png"), "messages[0].content[0].image_url"),
        (ChatRequest("x", (), drops_oldest=True), "truncation"),
    ],
)
def test_what_no_provider_can_do_is_refused(request_: ChatRequest, field: str) -> None:
    with pytest.raises(InvalidRequestError, match="by the provider 'vllm'") as caught:
        VLLM.request(request_, "m")
    assert [violation.field for violation in caught.value.violations] == [field]


def test_streams_have_their_usage() -> None:
    request = ChatRequest("x", (), stream=StreamOptions())

    assert sent(PLAIN, request)[1]["stream_options"] == {"include_usage": True}
