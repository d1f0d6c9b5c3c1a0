"""Requests that many tests send."""

from __future__ import annotations

from typing import Any

from ovchat.v1 import chat_pb2, completion_pb2, message_pb2, tool_pb2


def user(text: str) -> message_pb2.Message:
    return message_pb2.Message(
        role=message_pb2.ROLE_USER, content=[message_pb2.ContentPart(text=text)]
    )


def ask(text: str, model: str = "demo", **fields: Any) -> chat_pb2.CreateChatCompletionRequest:
    return chat_pb2.CreateChatCompletionRequest(model=model, messages=[user(text)], **fields)


def successor(
    text: str, max_tokens: int | None, **fields: Any
) -> chat_pb2.CreateChatCompletionRequest:
    return ask(text, "successor", max_tokens=max_tokens, temperature=0, **fields)


def prompt(text: str) -> completion_pb2.Prompt:
    return completion_pb2.Prompt(text=text)


def go_on(*texts: str, **fields: Any) -> completion_pb2.CreateCompletionRequest:
    """Texts for the successor model to go on with."""
    wanted: dict[str, Any] = {"model": "successor", "prompt": map(prompt, texts), "temperature": 0}
    return completion_pb2.CreateCompletionRequest(**wanted | fields)


def text_of(completion: chat_pb2.ChatCompletion) -> str:
    return "".join(part.text for part in completion.choices[0].message.content)


def joined(chunks: list[chat_pb2.ChatCompletionChunk]) -> str:
    return "".join(choice.delta.content for chunk in chunks for choice in chunk.choices)


WEATHER = tool_pb2.Tool(
    function=tool_pb2.FunctionDefinition(
        name="get_weather",
        description="Get the current weather in a city.",
        parameters=(
            '{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}'
        ),
    )
)
