"""Requests as each door takes them."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from benchmarks.images import MIME_TYPE
from ovchat.v1 import chat_pb2, format_pb2, message_pb2, tool_pb2

if TYPE_CHECKING:
    from benchmarks.plan import Ask

# Where answers are sampled. Said, because the server's defaults may be others than the bare loop's.
TEMPERATURE, TOP_K, SEED = 1.0, 40, 1
# A model that may think first writes anything, where a schema is to be followed.
TEMPLATE_ARGUMENTS = {"enable_thinking": False}


def rest_body(model: str, ask: Ask) -> dict[str, Any]:
    """A request in OpenAI's form."""
    body: dict[str, Any] = {
        "model": model,
        "messages": _rest_messages(ask),
        "max_completion_tokens": ask.max_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0,
        "chat_template_kwargs": TEMPLATE_ARGUMENTS,
        "ignore_eos": ask.whole,
    }
    if ask.choices > 1:
        body |= {"n": ask.choices, "temperature": TEMPERATURE, "top_k": TOP_K, "seed": SEED}
    if ask.top_logprobs:
        body |= {"logprobs": True, "top_logprobs": ask.top_logprobs}
    if ask.schema is not None:
        schema = {"name": "answer", "schema": ask.schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    if ask.tools:
        body["tools"] = list(ask.tools)
    return body


def _rest_messages(ask: Ask) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [
        {"role": role, "content": text} for role, text in ask.messages
    ]
    if ask.image:
        url = f"data:{MIME_TYPE};base64,{base64.b64encode(ask.image).decode()}"
        image = {"type": "image_url", "image_url": {"url": url}}
        messages[0]["content"] = [{"type": "text", "text": messages[0]["content"]}, image]
    return messages


def grpc_request(model: str, ask: Ask) -> chat_pb2.CreateChatCompletionRequest:
    """The same in the contract's form."""
    request = chat_pb2.CreateChatCompletionRequest(
        model=model,
        messages=messages_of(ask),
        max_completion_tokens=ask.max_tokens,
        stream_options=chat_pb2.StreamOptions(include_usage=True),
        temperature=0,
        chat_template_kwargs=json.dumps(TEMPLATE_ARGUMENTS),
        ignore_eos=ask.whole,
        tools=tools_of(ask),
    )
    if ask.choices > 1:
        request.n, request.temperature = ask.choices, TEMPERATURE
        request.top_k, request.seed = TOP_K, SEED
    if ask.top_logprobs:
        request.logprobs, request.top_logprobs = True, ask.top_logprobs
    if ask.schema is not None:
        form = format_pb2.JsonSchemaFormat(
            name="answer", schema=json.dumps(ask.schema), strict=True
        )
        request.response_format.CopyFrom(format_pb2.ResponseFormat(json_schema=form))
    return request


def messages_of(ask: Ask) -> list[message_pb2.Message]:
    """A request's messages in the contract's form."""
    messages = [
        message_pb2.Message(
            role=message_pb2.Role.Value(f"ROLE_{role.upper()}"),
            content=[message_pb2.ContentPart(text=text)],
        )
        for role, text in ask.messages
    ]
    if ask.image:
        image = message_pb2.Image(data=ask.image, mime_type=MIME_TYPE)
        messages[0].content.append(message_pb2.ContentPart(image=image))
    return messages


def tools_of(ask: Ask) -> list[tool_pb2.Tool]:
    """A request's tools in the contract's form."""
    functions = [tool["function"] for tool in ask.tools]
    return [
        tool_pb2.Tool(
            function=tool_pb2.FunctionDefinition(
                name=function["name"],
                description=function["description"],
                parameters=json.dumps(function["parameters"]),
            )
        )
        for function in functions
    ]
