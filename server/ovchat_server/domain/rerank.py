"""Validated requests to rank documents and to score pairs of texts, and their answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ovchat_server.domain.field_path import FieldPath
    from ovchat_server.domain.generation import Truncation


@dataclass(frozen=True, slots=True)
class RerankRequest:
    """A request to rank documents by how well they answer a query.

    Attributes:
        model: The id of the model; "" for the only one that ranks.
        documents: At least one.
        document_fields: The path of each document.
        top_n: How many of the best are returned; None: all.
        return_documents: Whether they are returned with their texts.
        truncation: How many tokens of the query and a document together are kept, by cutting the
            document; None: those that are too long are refused.
        max_tokens_per_doc: How many tokens of each document are kept (Cohere); None: all.
        priority: Lower goes first (vLLM).
        ignored: The names of unknown fields.
    """

    model: str
    query: str
    documents: tuple[str, ...]
    document_fields: tuple[FieldPath, ...]
    top_n: int | None = None
    return_documents: bool = False
    truncation: Truncation | None = None
    max_tokens_per_doc: int | None = None
    priority: int = 0
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RankedDocument:
    """A document and how well it answers the query.

    Attributes:
        index: Its place in the request.
        score: Higher is better.
        text: The document; None: it was not asked for.
    """

    index: int
    score: float
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Ranking:
    """Documents, the best first; of equal ones those that came first.

    Attributes:
        id: Of this answer.
        model: The id of the model, as it was asked for.
        prompt_tokens: The number of tokens of all pairs of query and document.
    """

    id: str
    model: str
    results: tuple[RankedDocument, ...]
    prompt_tokens: int


@dataclass(frozen=True, slots=True)
class ScoreRequest:
    """A request to score pairs of texts (vLLM).

    Attributes:
        model: The id of the model; "" for the only one that ranks.
        pairs: At least one.
        pair_fields: The path of each pair's second text, which no other pair has.
        first_fields: The path of each pair's first text.
        truncation: How many tokens of a pair are kept, by cutting its second text; None: pairs that
            are too long are refused.
        priority: Lower goes first (vLLM).
        ignored: The names of unknown fields.
    """

    model: str
    pairs: tuple[tuple[str, str], ...]
    pair_fields: tuple[FieldPath, ...]
    first_fields: tuple[FieldPath, ...]
    truncation: Truncation | None = None
    priority: int = 0
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of pairs, in their order.

    Attributes:
        id: Of this answer.
        created: In seconds since the Unix epoch.
        model: The id of the model, as it was asked for.
        prompt_tokens: The number of tokens of all pairs.
    """

    id: str
    created: int
    model: str
    scores: tuple[float, ...]
    prompt_tokens: int
