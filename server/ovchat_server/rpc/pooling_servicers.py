"""The typed services of embeddings and of ranking."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from google.protobuf.wrappers_pb2 import BytesValue

from ovchat.v1 import (
    chat_pb2,
    embedding_service_pb2,
    embedding_service_pb2_grpc,
    rerank_service_pb2,
    rerank_service_pb2_grpc,
)
from ovchat_server.rpc.contract_paths import contract_paths
from ovchat_server.rpc.request import embedding_request, rerank_request, score_request

if TYPE_CHECKING:
    from ovchat_server.domain.embeddings import Embeddings
    from ovchat_server.domain.limits import Limits
    from ovchat_server.domain.rerank import Ranking
    from ovchat_server.rpc.middleware import Context
    from ovchat_server.serving.services import Services

# Copying so many bytes of vectors takes a millisecond.
MAX_BYTES_IN_PLACE = 1 << 20


class EmbeddingServicer(embedding_service_pb2_grpc.EmbeddingServiceServicer):
    """ovchat.v1.EmbeddingService."""

    def __init__(self, services: Services, limits: Limits) -> None:
        """Answer requests that keep to `limits`."""
        self._threads = services.threads
        self._embeddings = services.embeddings
        self._limits = limits

    async def CreateEmbeddings(
        self, request: embedding_service_pb2.CreateEmbeddingsRequest, context: Context
    ) -> embedding_service_pb2.CreateEmbeddingsResponse:
        """Send the embeddings of texts."""
        parse = partial(embedding_request, request, self._limits)
        read = await self._threads.read(parse, request.ByteSize())
        with contract_paths(request):
            result = await self._embeddings.create(read)
        size = sum(map(len, result.vectors))
        return await self._threads.writers.run(
            partial(embeddings_message, result), in_place=size <= MAX_BYTES_IN_PLACE
        )


class RerankServicer(rerank_service_pb2_grpc.RerankServiceServicer):
    """ovchat.v1.RerankService."""

    def __init__(self, services: Services, limits: Limits) -> None:
        """Answer requests that keep to `limits`."""
        self._threads = services.threads
        self._reranking = services.reranking
        self._limits = limits

    async def Rerank(
        self, request: rerank_service_pb2.RerankRequest, context: Context
    ) -> rerank_service_pb2.RerankResponse:
        """Send the documents, the best first."""
        parse = partial(rerank_request, request, self._limits)
        read = await self._threads.read(parse, request.ByteSize())
        with contract_paths(request):
            return ranking_message(await self._reranking.rerank(read))

    async def Score(
        self, request: rerank_service_pb2.ScoreRequest, context: Context
    ) -> rerank_service_pb2.ScoreResponse:
        """Send the scores of pairs."""
        parse = partial(score_request, request, self._limits)
        read = await self._threads.read(parse, request.ByteSize())
        with contract_paths(request):
            scores = await self._reranking.score(read)
        return rerank_service_pb2.ScoreResponse(
            id=scores.id,
            created=scores.created,
            model=scores.model,
            scores=scores.scores,
            usage=_usage(scores.prompt_tokens),
        )


def embeddings_message(result: Embeddings) -> embedding_service_pb2.CreateEmbeddingsResponse:
    """Return the message of embeddings."""
    return embedding_service_pb2.CreateEmbeddingsResponse(
        id=result.id,
        created=result.created,
        model=result.model,
        embeddings=map(_embedding, result.vectors),
        usage=_usage(result.prompt_tokens),
    )


def ranking_message(result: Ranking) -> rerank_service_pb2.RerankResponse:
    """Return the message of ranked documents."""
    return rerank_service_pb2.RerankResponse(
        id=result.id,
        model=result.model,
        results=[
            rerank_service_pb2.RankedDocument(
                index=document.index, relevance_score=document.score, document=document.text
            )
            for document in result.results
        ],
        usage=_usage(result.prompt_tokens),
    )


def _embedding(vector: bytes) -> embedding_service_pb2.Embedding:
    # On the wire packed floats are these bytes: no object has to be made of each number.
    return embedding_service_pb2.Embedding.FromString(BytesValue(value=vector).SerializeToString())


def _usage(tokens: int) -> chat_pb2.Usage:
    return chat_pb2.Usage(prompt_tokens=tokens, total_tokens=tokens)
