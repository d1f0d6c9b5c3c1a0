"""Validated requests for embeddings, and their answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.domain.field_path import FieldPath
    from ovchat_server.domain.generation import Truncation
    from ovchat_server.domain.texts_or_tokens import TextOrTokens


class EncodingFormat(StrEnum):
    """How REST writes a vector: as an array of numbers, or as float32s in base64 (OpenAI)."""

    FLOAT = "float"
    BASE64 = "base64"


class InputType(StrEnum):
    """What texts are for, by which a model's prompt is chosen."""

    QUERY = "query"
    DOCUMENT = "document"


@dataclass(frozen=True, slots=True)
class EmbeddingRequest:
    """A request for embeddings.

    Attributes:
        model: The id of the model; "" for the only one that makes embeddings.
        inputs: Texts and token ids, at least one, none empty.
        input_fields: The path of each input.
        dimensions: How many numbers of each vector are kept; None: all.
        truncation: What to do with inputs that are too long; None: they are refused.
        special_tokens: Whether texts get the special tokens of the model's tokenizer.
        normalize: Whether vectors have length 1; None: as the model's files say.
        prompt_name: The name of the model's prompt that texts are put behind
            (sentence-transformers, text-embeddings-inference); None: see `input_type`.
        input_type: What the texts are for; None: the model's default prompt, if it has one.
        priority: Lower goes first (vLLM).
        ignored: The names of unknown fields.
    """

    model: str
    inputs: tuple[TextOrTokens, ...]
    input_fields: tuple[FieldPath, ...]
    encoding_format: EncodingFormat = EncodingFormat.FLOAT
    dimensions: int | None = None
    truncation: Truncation | None = None
    special_tokens: bool = True
    normalize: bool | None = None
    prompt_name: str | None = None
    input_type: InputType | None = None
    priority: int = 0
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Embeddings:
    """The embeddings of the inputs of a request, in their order.

    Attributes:
        id: Of this answer.
        created: In seconds since the Unix epoch.
        model: The id of the model, as it was asked for.
        vectors: Each number as a float32, little-endian.
        prompt_tokens: The number of tokens of all inputs.
    """

    id: str
    created: int
    model: str
    vectors: Sequence[bytes]
    prompt_tokens: int
    encoding_format: EncodingFormat = EncodingFormat.FLOAT
