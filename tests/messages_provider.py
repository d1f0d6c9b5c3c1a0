"""A provider with Anthropic's Messages API: it calls a tool that it is given, and repeats results.

Requests have to be what Anthropic's SDK sends, and answers are what it reads.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from anthropic.types import TextBlock, ThinkingBlock, ToolUseBlock
from pydantic import ValidationError

from tests.http_server import http_server, read_request, response
from tests.messages_api import check_request, events, message
from tests.ports import unused_port

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator

    from anthropic.types import Message

KEY = "sk-ant-the-operators-own"
MODEL = "claude-test-5"


@dataclass
class MessagesProvider:
    """Where it listens, and what it was asked."""

    port: int
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    @property
    def table(self) -> str:
        """Its table of a config file."""
        return f"""
[[providers]]
name = "anthropic"
base_url = "http://127.0.0.1:{self.port}/v1"
"""


@contextlib.asynccontextmanager
async def messages_provider() -> AsyncIterator[MessagesProvider]:
    """Serve it."""
    provider = MessagesProvider(unused_port())

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        request = await read_request(reader)
        provider.asked.append((request.line, request.headers))
        writer.write(_answer(request.body))
        return True

    async with http_server(provider.port, answer):
        yield provider


def _answer(text: bytes) -> bytes:
    if not text:
        models = {"data": [{"type": "model", "id": MODEL}], "has_more": False}
        return response(200, json.dumps(models))
    body = json.loads(text)
    try:
        check_request(body)
    except (AssertionError, ValidationError) as error:
        return response(400, _error("invalid_request_error", str(error)))
    if body["model"] != MODEL:
        return response(404, _error("not_found_error", f"model: {body['model']}"))
    answer = _said(body)
    if not body.get("stream"):
        return response(200, answer.to_json())
    stream = "".join(f"event: {event.type}\ndata: {_line(event)}\n\n" for event in events(answer))
    return response(200, stream, "text/event-stream")


def _line(event: Any) -> str:
    line: str = event.to_json(indent=None)
    return line


def _said(body: dict[str, Any]) -> Message:
    last = body["messages"][-1]["content"][-1]
    if last["type"] == "tool_result":
        text = TextBlock(type="text", text="It is " + last["content"][0]["text"])
        return message(text, cache_read_input_tokens=5)
    if "tools" in body:
        name = body["tools"][0]["name"]
        return message(
            ThinkingBlock(type="thinking", thinking="Let us see.", signature="s"),
            ToolUseBlock(type="tool_use", id="toolu_1", name=name, input={"city": "Rome"}),
            stop="tool_use",
        )
    return message(TextBlock(type="text", text="Hello"))


def _error(kind: str, text: str) -> str:
    return json.dumps({"type": "error", "error": {"type": kind, "message": text}})
