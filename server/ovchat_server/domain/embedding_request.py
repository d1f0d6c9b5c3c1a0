"""From untrusted fields to a request for embeddings: the rules, the same for both doors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.domain.embeddings import EmbeddingRequest, EncodingFormat, InputType
from ovchat_server.domain.field_path import ErrorText, FieldPath
from ovchat_server.domain.generation import TruncationSide
from ovchat_server.domain.generation_request import (
    MAX_INT32,
    MAX_UINT32,
    MIN_INT32,
    read_truncation,
)
from ovchat_server.domain.limits import DEFAULT_LIMITS
from ovchat_server.domain.pooling_parameters import EMBEDDINGS
from ovchat_server.domain.reader import Reader
from ovchat_server.domain.texts_or_tokens import read_texts_or_tokens

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ovchat_server.domain.json_value import JsonValue
    from ovchat_server.domain.limits import Limits
    from ovchat_server.domain.texts_or_tokens import TextOrTokens

# Two, and what NVIDIA and Cohere call them.
INPUT_TYPES: Mapping[str, InputType] = {
    "query": InputType.QUERY,
    "document": InputType.DOCUMENT,
    "passage": InputType.DOCUMENT,
    "search_query": InputType.QUERY,
    "search_document": InputType.DOCUMENT,
}


def read_embedding_request(
    fields: Mapping[str, JsonValue], *, strict: bool = False, limits: Limits = DEFAULT_LIMITS
) -> EmbeddingRequest:
    """Read a request for embeddings.

    Args:
        fields: OpenAI's request object, from JSON or from the set fields of a message.
        strict: Refuse unknown fields instead of ignoring them.
        limits: How much it may hold.

    Raises:
        InvalidRequestError: With every fault found.
    """
    reader = Reader.of_request(fields, limits)
    inputs = _read_inputs(reader)
    encoding = reader.choice("encoding_format", [*EncodingFormat])
    request = EmbeddingRequest(
        model=reader.string("model") or "",
        inputs=tuple(inputs.values()),
        input_fields=tuple(inputs),
        encoding_format=EncodingFormat(encoding or EncodingFormat.FLOAT),
        dimensions=reader.integer("dimensions", 1, MAX_UINT32),
        # The end that sentence-transformers cuts.
        truncation=read_truncation(reader, TruncationSide.RIGHT),
        special_tokens=reader.boolean("add_special_tokens") is not False,
        normalize=_read_normalize(reader),
        prompt_name=reader.string("prompt_name"),
        input_type=_read_input_type(reader),
        priority=reader.integer("priority", MIN_INT32, MAX_INT32) or 0,
        ignored=EMBEDDINGS.check(reader, strict=strict),
    )
    return reader.checked(request)


def _read_inputs(reader: Reader) -> dict[FieldPath, TextOrTokens]:
    if not reader.require("input"):
        return {}
    return read_texts_or_tokens(reader, "input", reader.limits.max_texts, "inputs")


def _read_normalize(reader: Reader) -> bool | None:
    """Read vLLM's parameter by its older name and by its newer one."""
    older, newer = reader.boolean("normalize"), reader.boolean("use_activation")
    if older is None:
        return newer
    if newer not in (None, older):
        complaint = ErrorText.of("contradicts ", FieldPath.of("normalize"), ", its older name")
        reader.refuse("use_activation", complaint)
    return older


def _read_input_type(reader: Reader) -> InputType | None:
    word = reader.choice("input_type", INPUT_TYPES)
    if word is not None and reader.present("prompt_name"):
        # Either names the prompt.
        other = FieldPath.of("prompt_name")
        reader.refuse("input_type", ErrorText.of("cannot be combined with ", other))
    return None if word is None else INPUT_TYPES[word]
