"""A public API that nobody else speaks: numbered events, and errors of a shape of its own.

{"model": "demo", "say": "Hello", "most": 5, "live": true}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat_server.domain.chat_request import read_chat_request
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.rest.apis import GenerationApi
from ovchat_server.rest.codec import RestError
from ovchat_server.rest.response_body import event

if TYPE_CHECKING:
    from ovchat_server.domain.chat import ChatRequest
    from ovchat_server.domain.completion import Chunk, Completion, CompletionInfo
    from ovchat_server.domain.errors import ApiError
    from ovchat_server.domain.json_value import JsonObject
    from ovchat_server.domain.limits import Limits
    from ovchat_server.serving.chat import ChatCompletions

NAMES = {"most": "max_tokens", "live": "stream"}


def read(fields: JsonObject, *, strict: bool, limits: Limits) -> ChatRequest:
    chat: JsonObject = {NAMES.get(name, name): value for name, value in fields.items()}
    if "say" in chat:
        chat["messages"] = [{"role": "user", "content": chat.pop("say")}]
    return read_chat_request(chat, strict=strict, limits=limits)


def spelled(path: FieldPath) -> FieldPath:
    match path.steps:
        case ("messages", *_):
            return FieldPath.of("say")
        case (name, *inner):
            known = {theirs: ours for ours, theirs in NAMES.items()}
            return FieldPath.of(known.get(str(name), name), *inner)
    return path


def encode_error(error: ApiError) -> RestError:
    error.respell(spelled)
    return RestError({"trouble": error.message, "where": error.param}, 418)


@dataclass
class Numbered:
    """Encodes one answer; each event has a number, and a chunk any number of events."""

    number: int = 0

    def whole(self, completion: Completion) -> JsonObject:
        return {"said": completion.choices[0].message.text}

    def begin(self, info: CompletionInfo) -> bytes:
        return self._event("begin", info.model)

    def keep_alive(self) -> bytes:
        return self._event("silence")

    def chunk(self, chunk: Chunk) -> bytes:
        content = chunk.choices[0].delta.content
        return self._event("word", content) if content else b""

    def end(self) -> bytes:
        return self._event("end", str(self.number))

    def failure(self, error: ApiError) -> bytes:
        return self._event("broken", error.message)

    def _event(self, name: str, text: str = "") -> bytes:
        self.number += 1
        return event({"number": self.number, "text": text}, name)


def toy_api(chat: ChatCompletions, silence: float = 15.0) -> GenerationApi[ChatRequest]:
    return GenerationApi(read, chat.answer, lambda _: Numbered(), encode_error, silence)
