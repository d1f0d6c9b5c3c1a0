"""From untrusted fields to requests to rank and to score: the rules, the same for both doors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.domain.errors import Violation
from ovchat_server.domain.field_path import ErrorText, FieldPath
from ovchat_server.domain.generation import TruncationSide
from ovchat_server.domain.generation_request import (
    MAX_INT32,
    MAX_UINT32,
    MIN_INT32,
    read_truncation_at,
)
from ovchat_server.domain.known_keys import unknown_keys
from ovchat_server.domain.limits import DEFAULT_LIMITS
from ovchat_server.domain.pooling_parameters import RERANK, SCORE
from ovchat_server.domain.reader import Reader, kind
from ovchat_server.domain.rerank import RerankRequest, ScoreRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ovchat_server.domain.json_value import JsonObject, JsonValue
    from ovchat_server.domain.limits import Limits

# What the texts of pairs are called: the first of each, and the second.
PAIRS = (
    ("queries", "documents"),
    ("text_1", "text_2"),
    ("queries", "items"),
    ("data_1", "data_2"),
)
ALL_PAIRS = ", ".join(" and ".join(pair) for pair in PAIRS)
TEXT_NAMES = tuple(dict.fromkeys(name for pair in PAIRS for name in pair))
DOCUMENT_KEYS = frozenset({"text"})


def read_rerank_request(
    fields: Mapping[str, JsonValue], *, strict: bool = False, limits: Limits = DEFAULT_LIMITS
) -> RerankRequest:
    """Read a request to rank documents.

    Args:
        fields: Cohere's request object, from JSON or from the set fields of a message.
        strict: Refuse unknown fields instead of ignoring them.
        limits: How much it may hold.

    Raises:
        InvalidRequestError: With every fault found.
    """
    reader = Reader.of_request(fields, limits)
    query = reader.string("query")
    if query is None:
        reader.require("query")
    elif not query:
        reader.refuse("query", "must not be empty")
    documents = _read_documents(reader)
    request = RerankRequest(
        model=reader.string("model") or "",
        query=query or "",
        documents=tuple(documents.values()),
        document_fields=tuple(documents),
        top_n=reader.integer("top_n", 1, MAX_UINT32),
        return_documents=reader.boolean("return_documents") or False,
        truncation=read_truncation_at(reader, TruncationSide.RIGHT),
        max_tokens_per_doc=reader.integer("max_tokens_per_doc", 1, MAX_UINT32),
        priority=reader.integer("priority", MIN_INT32, MAX_INT32) or 0,
        ignored=RERANK.check(reader, strict=strict),
    )
    return reader.checked(request)


def read_score_request(
    fields: Mapping[str, JsonValue], *, strict: bool = False, limits: Limits = DEFAULT_LIMITS
) -> ScoreRequest:
    """Read a request to score pairs of texts.

    Args:
        fields: vLLM's request object, from JSON or from the set fields of a message.
        strict: Refuse unknown fields instead of ignoring them.
        limits: How much it may hold.

    Raises:
        InvalidRequestError: With every fault found.
    """
    reader = Reader.of_request(fields, limits)
    pairs = _read_pairs(reader)
    request = ScoreRequest(
        model=reader.string("model") or "",
        pairs=tuple((first, second) for (_, first), (_, second) in pairs),
        pair_fields=tuple(field for _, (field, _) in pairs),
        first_fields=tuple(field for (field, _), _ in pairs),
        truncation=read_truncation_at(reader, TruncationSide.RIGHT),
        priority=reader.integer("priority", MIN_INT32, MAX_INT32) or 0,
        ignored=SCORE.check(reader, strict=strict),
    )
    return reader.checked(request)


def _read_documents(reader: Reader) -> dict[FieldPath, str]:
    """Read texts, and objects that hold one (Cohere, Jina), each by its path."""
    if not reader.require("documents"):
        return {}
    values = reader.array("documents")
    if values is None or not reader.limit(
        "documents", values, reader.limits.max_documents, "documents"
    ):
        return {}
    if not values:
        reader.refuse("documents", "must not be empty")
    named = {FieldPath.of("documents", index): item for index, item in enumerate(values)}
    return {field: _read_document(reader, field, item) for field, item in named.items()}


def _read_document(reader: Reader, field: FieldPath, value: JsonValue) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return _read_object(reader, field, value)
    complaint = f"must be a string or an object with a text, not {kind(value)}"
    reader.refuse(field, complaint, "invalid_type")
    return ""


def _read_object(reader: Reader, field: FieldPath, value: JsonObject) -> str:
    text = value.get("text")
    reader.unknown += [field / name for name in unknown_keys(value, DOCUMENT_KEYS)]
    if isinstance(text, str):
        return text
    if text is None:
        reader.refuse(field / "text", "is required", "missing_required_parameter")
    else:
        reader.refuse(field / "text", f"must be a string, not {kind(text)}", "invalid_type")
    return ""


def _read_pairs(reader: Reader) -> list[tuple[tuple[FieldPath, str], tuple[FieldPath, str]]]:
    """Read the pairs of texts, each text with its path."""
    names = _pair_names(reader)
    if names is None:
        return []
    firsts, seconds = (_read_texts(reader, name) for name in names)
    if not firsts or not seconds:
        return []
    if len(firsts) not in (1, len(seconds)):
        rule = f" must hold texts 1:1, 1:N or N:N, got {len(firsts)}:{len(seconds)}"
        reader.refuse(names[0], ErrorText.of("and ", FieldPath.of(names[1]), rule))
        return []
    # One is paired with each.
    texts = list(firsts.items()) * (len(seconds) // len(firsts))
    return list(zip(texts, seconds.items(), strict=True))


def _pair_names(reader: Reader) -> tuple[str, str] | None:
    """Return what the texts of a request are called; None where one of a pair is missing."""
    given = [name for name in TEXT_NAMES if reader.present(name)]
    pair = next((pair for pair in PAIRS if set(given) <= set(pair)), None)
    if pair is None:
        message = f"Exactly one pair of {ALL_PAIRS} is required, got {' and '.join(given)}."
        field = FieldPath.of(given[-1])
        reader.violations.append(Violation(field, ErrorText.of(message), "invalid_value"))
        return None
    missing = [name for name in pair if not reader.require(name)]
    return None if missing else pair


def _read_texts(reader: Reader, name: str) -> dict[FieldPath, str]:
    """Read a string or an array of them, each by its path."""
    value = reader.fields[name]
    if isinstance(value, str):
        return {FieldPath.of(name): value}
    if not isinstance(value, list):
        reader.refuse(name, "must be a string or an array of strings", "invalid_type")
        return {}
    if not value:
        reader.refuse(name, "must not be empty")
    if not reader.limit(name, value, reader.limits.max_documents, "strings"):
        return {}
    texts: dict[FieldPath, str] = {}
    for index, item in enumerate(value):
        field = FieldPath.of(name, index)
        if not isinstance(item, str):
            reader.refuse(field, f"must be a string, not {kind(item)}", "invalid_type")
        texts[field] = str(item)
    return texts
