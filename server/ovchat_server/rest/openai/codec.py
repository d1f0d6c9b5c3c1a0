"""OpenAI's API as a codec: readers, encoders of answers, the encoder of errors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from ovchat_server.domain.chat import ToolMode
from ovchat_server.domain.chat_request import read_chat_request
from ovchat_server.domain.errors import InvalidRequestError
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.generation import StreamOptions
from ovchat_server.domain.text_request import read_text_request
from ovchat_server.rest.codec import RestError
from ovchat_server.rest.openai import objects
from ovchat_server.rest.openai.function_call import with_function_call
from ovchat_server.rest.response_body import PING, event

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.domain.chat import ChatRequest
    from ovchat_server.domain.completion import Chunk, Completion, CompletionInfo
    from ovchat_server.domain.errors import ApiError
    from ovchat_server.domain.json_value import JsonObject, JsonValue
    from ovchat_server.domain.limits import Limits
    from ovchat_server.domain.text import TextRequest

DONE = b"data: [DONE]\n\n"
# vLLM takes schemas and structural tags as objects and as their text.
JSON_TEXTS = ("guided_json", "structural_tag")
NESTED_JSON_TEXTS = ("json", "structural_tag")


@dataclass(frozen=True, slots=True)
class CompletionEncoder:
    """Encodes the answer to a chat or a text; see AnswerEncoder. It needs no state.

    Attributes:
        whole: Makes the object of a whole answer.
        chunk_object: Makes the object of a chunk.
        options: What the stream carries besides deltas.
    """

    whole: Callable[[Completion], JsonObject]
    chunk_object: Callable[[Chunk, StreamOptions], JsonObject]
    options: StreamOptions

    def begin(self, info: CompletionInfo) -> bytes:  # noqa: ARG002  the first chunk opens it
        """Return no event."""
        return b""

    def keep_alive(self) -> bytes:
        """Return a comment: readers skip it."""
        return PING

    def chunk(self, chunk: Chunk) -> bytes:
        """Return one event."""
        return event(self.chunk_object(chunk, self.options))

    def end(self) -> bytes:
        """Return OpenAI's last event."""
        return DONE

    def failure(self, error: ApiError) -> bytes:
        """Return the error as an event of its own, and the last event."""
        return event(objects.error(error)) + DONE


def read_chat(fields: JsonObject, *, strict: bool, limits: Limits) -> ChatRequest:
    """Read a chat; see RequestReader."""
    return read_chat_request(_with_parsed_texts(fields), strict=strict, limits=limits)


def read_text(fields: JsonObject, *, strict: bool, limits: Limits) -> TextRequest:
    """Read a text completion; see RequestReader."""
    return read_text_request(_with_parsed_texts(fields), strict=strict, limits=limits)


def chat_encoder(request: ChatRequest) -> CompletionEncoder:
    """Return the encoder of the answer to a chat."""
    options = request.stream or StreamOptions()
    # As OpenAI's: null where calls may be all that comes, for the SDKs keep it.
    opening = "" if request.tool_choice.mode is ToolMode.NONE else None
    chunk = partial(objects.chat_chunk, opening=opening)
    if not request.tool_choice.older:
        return CompletionEncoder(objects.chat_completion, chunk, options)
    return CompletionEncoder(
        lambda completion: with_function_call(objects.chat_completion(completion)),
        lambda part, asked: with_function_call(chunk(part, asked)),
        options,
    )


def text_encoder(request: TextRequest) -> CompletionEncoder:
    """Return the encoder of a text completion."""
    options = request.stream or StreamOptions()
    return CompletionEncoder(objects.text_completion, objects.text_chunk, options)


def encode_error(error: ApiError) -> RestError:
    """Return OpenAI's error object; see ErrorEncoder."""
    return RestError(objects.error(error), error.http_status)


def _with_parsed_texts(fields: JsonObject) -> JsonObject:
    """Return a request's fields with JSON texts parsed, keys in the text's order.

    Raises:
        InvalidRequestError: A text is no JSON.
    """
    parsed = _parsed(fields, JSON_TEXTS, FieldPath())
    outputs = parsed.get("structured_outputs")
    if isinstance(outputs, dict):
        parsed["structured_outputs"] = _parsed(
            outputs, NESTED_JSON_TEXTS, FieldPath.of("structured_outputs")
        )
    return parsed


def _parsed(fields: JsonObject, names: tuple[str, ...], path: FieldPath) -> JsonObject:
    return {
        key: _value(value, path / key) if key in names and isinstance(value, str) else value
        for key, value in fields.items()
    }


def _value(text: str, path: FieldPath) -> JsonValue:
    try:
        value: JsonValue = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        complaint = f"must be an object, or JSON in a string: {error}."
        raise InvalidRequestError.about(path, complaint, "invalid_json") from error
    return value
