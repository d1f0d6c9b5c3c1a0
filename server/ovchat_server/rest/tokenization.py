"""Tokenize and detokenize, in OVMS's and vLLM's JSON at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ovchat_server.api.tokenization_request import (
    read_detokenize_request,
    read_tokenize_request,
)
from ovchat_server.rest.body import json_pieces, name_ignored

if TYPE_CHECKING:
    from collections.abc import Iterator

    import grpc.aio
    from google.api import httpbody_pb2

    from ovchat_server.api.json_value import JsonObject, JsonValue
    from ovchat_server.api.tokenization import Tokenized
    from ovchat_server.rest.reading import BodyReader
    from ovchat_server.serving.tokenization import Tokenization


async def tokenize(
    tokenization: Tokenization,
    body: httpbody_pb2.HttpBody,
    context: grpc.aio.ServicerContext[Any, Any],
    bodies: BodyReader,
) -> Iterator[httpbody_pb2.HttpBody]:
    """The tokens of texts or of a conversation."""
    request = await bodies.request(read_tokenize_request, body)
    tokenized = await tokenization.tokenize(request)
    await name_ignored(request.ignored, context)
    return json_pieces(_tokenized(tokenized))


async def detokenize(
    tokenization: Tokenization,
    body: httpbody_pb2.HttpBody,
    context: grpc.aio.ServicerContext[Any, Any],
    bodies: BodyReader,
) -> Iterator[httpbody_pb2.HttpBody]:
    """The text of tokens."""
    request = await bodies.request(read_detokenize_request, body)
    text = await tokenization.detokenize(request)
    await name_ignored(request.ignored, context)
    return json_pieces({"prompt": text})


def _tokenized(tokenized: Tokenized) -> JsonObject:
    """The object of vLLM, in which several texts have what OVMS gives them: an array each.

    A single text has its tokens flat, also where it came in an array, as with OVMS.
    """
    tokens: list[JsonValue] = [list(sequence.tokens) for sequence in tokenized.sequences]
    strings: list[JsonValue] = [
        None if sequence.strings is None else list(sequence.strings)
        for sequence in tokenized.sequences
    ]
    single = len(tokens) == 1
    return {
        "count": tokenized.count,
        "max_model_len": tokenized.context_length,
        "tokens": tokens[0] if single else tokens,
        "token_strs": strings[0] if single or strings[0] is None else strings,
    }
