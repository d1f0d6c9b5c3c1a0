"""The least of a request of each kind, with other fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ovchat_server.domain.chat_request import read_chat_request
from ovchat_server.domain.text_request import read_text_request

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.domain.chat import ChatRequest
    from ovchat_server.domain.text import TextRequest


def read_chat(**fields: Any) -> ChatRequest:
    messages = [{"role": "user", "content": "Hi"}]
    return read_chat_request({"model": "demo", "messages": messages} | fields)


def read_text(**fields: Any) -> TextRequest:
    return read_text_request({"model": "demo", "prompt": "Hi"} | fields)


READERS: dict[str, Callable[..., ChatRequest | TextRequest]] = {
    "chat": read_chat,
    "text": read_text,
}
