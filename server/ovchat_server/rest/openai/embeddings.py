"""OpenAI's object of embeddings, with what vLLM adds."""

from __future__ import annotations

import base64
import struct
from typing import TYPE_CHECKING, Any

import msgspec

from ovchat_server.domain.embeddings import EncodingFormat
from ovchat_server.rest.openai.objects import prompt_usage

if TYPE_CHECKING:
    from ovchat_server.domain.embeddings import Embeddings
    from ovchat_server.domain.json_value import JsonObject, JsonValue

# Writing so many bytes of vectors as numbers takes a millisecond.
MAX_BYTES_IN_PLACE = 1 << 15


def embeddings(result: Embeddings) -> JsonObject:
    """Return OpenAI's list of embeddings, and vLLM's `id` and `created`."""
    write = _base64 if result.encoding_format is EncodingFormat.BASE64 else _numbers
    return {
        "id": result.id,
        "object": "list",
        "created": result.created,
        "model": result.model,
        "data": [
            {"object": "embedding", "index": index, "embedding": write(vector)}
            for index, vector in enumerate(result.vectors)
        ],
        "usage": prompt_usage(result.prompt_tokens),
    }


def are_large(result: Embeddings) -> bool:
    """Return whether it takes long to write them."""
    return sum(map(len, result.vectors)) > MAX_BYTES_IN_PLACE


def _base64(vector: bytes) -> JsonValue:
    return base64.b64encode(vector).decode()


def _numbers(vector: bytes) -> Any:  # noqa: ANN401  what msgspec writes as it is
    # One by one: to write all of them at once would hold the interpreter for a tenth of a second.
    numbers = struct.unpack(f"<{len(vector) // 4}f", vector)
    return msgspec.Raw(msgspec.json.encode(numbers))
