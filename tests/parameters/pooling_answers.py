"""Answers of the models that make vectors and scores, of both doors in one form."""

from __future__ import annotations

import base64
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ovchat.v1.embedding_service_pb2_grpc import EmbeddingServiceStub
from ovchat.v1.rerank_service_pb2_grpc import RerankServiceStub

if TYPE_CHECKING:
    from collections.abc import Callable

    import grpc.aio


@dataclass
class Pooled:
    """Vectors, or scores with the place and the text of what has them.

    Attributes:
        coded: The vectors came as base64.
    """

    tokens: int
    vectors: list[list[float]] = field(default_factory=list)
    coded: bool = False
    scores: list[float] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    documents: list[str] = field(default_factory=list)


def of_json(body: dict[str, Any]) -> Pooled:
    """An answer of the REST door."""
    tokens = body["usage"]["total_tokens"]
    if results := body.get("results"):
        return Pooled(
            tokens,
            scores=[item["relevance_score"] for item in results],
            order=[item["index"] for item in results],
            documents=[item["document"]["text"] for item in results if "document" in item],
        )
    data = body["data"]
    if "score" in data[0]:
        return Pooled(tokens, scores=[item["score"] for item in data])
    given = [item["embedding"] for item in data]
    coded = isinstance(given[0], str)
    return Pooled(tokens, [*map(_decoded, given)] if coded else given, coded)


def _decoded(text: str) -> list[float]:
    data = base64.b64decode(text)
    return [*struct.unpack(f"<{len(data) // 4}f", data)]


def _of_vectors(answer: Any) -> Pooled:
    vectors = [list(item.values) for item in answer.embeddings]
    return Pooled(answer.usage.total_tokens, vectors)


def _of_ranking(answer: Any) -> Pooled:
    results = answer.results
    return Pooled(
        answer.usage.total_tokens,
        scores=[item.relevance_score for item in results],
        order=[item.index for item in results],
        documents=[item.document for item in results if item.HasField("document")],
    )


def _of_scores(answer: Any) -> Pooled:
    return Pooled(answer.usage.total_tokens, scores=list(answer.scores))


# The RPC of an endpoint, and what its answer says.
RPCS: dict[str, tuple[Callable[[grpc.aio.Channel], Any], Callable[[Any], Pooled]]] = {
    "embeddings": (lambda channel: EmbeddingServiceStub(channel).CreateEmbeddings, _of_vectors),
    "rerank": (lambda channel: RerankServiceStub(channel).Rerank, _of_ranking),
    "score": (lambda channel: RerankServiceStub(channel).Score, _of_scores),
}


async def of_call(channel: grpc.aio.Channel, endpoint: str, request: Any) -> Pooled:
    """The answer of the gRPC door."""
    rpc, read = RPCS[endpoint]
    return read(await rpc(channel)(request))
