"""Ranking documents by a query, and scoring pairs of texts."""

from __future__ import annotations

import itertools
import time
import uuid
from typing import TYPE_CHECKING

from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.rerank import RankedDocument, Ranking, Scores
from ovchat_server.serving.pair_scorers import PairBounds, Pairs
from ovchat_server.serving.pooling import PoolingParams, kept_tokens
from ovchat_server.serving.pooling_models import PoolingModel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.domain.rerank import RerankRequest, ScoreRequest
    from ovchat_server.engine.contract.pooling_engine import TokenizedText
    from ovchat_server.serving.model_registry import ModelRegistry
    from ovchat_server.serving.pooling import Pooler

QUERY = FieldPath.of("query")


class Reranking:
    """Answers requests to rank and to score, with rerankers, and by likeness of embeddings."""

    def __init__(self, models: ModelRegistry, pooler: Pooler) -> None:
        """Answer with `models`, by way of `pooler`."""
        self._models = models
        self._pooler = pooler

    async def rerank(self, request: RerankRequest) -> Ranking:
        """Return the documents of a request, the best first.

        Raises:
            ModelNotFoundError: There is no such model.
            InvalidRequestError: It does not rank, or a document is too long.
            ApiError: Its engine cannot answer; see PoolingEngine.pool.
        """
        model = self._model(request.model)
        kept = kept_tokens(request.truncation, model.files.context_length)
        pairs = Pairs(request.query, request.documents, request.document_fields, QUERY)
        bounds = PairBounds(kept, request.max_tokens_per_doc)
        scores, tokens = await self._scores(model, [pairs], bounds, request.priority)
        # Stable: of equal scores the first one stays first.
        order = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
        shown = request.return_documents
        return Ranking(
            id=f"rerank-{uuid.uuid4().hex}",
            model=request.model or model.id,
            results=tuple(
                RankedDocument(index, scores[index], request.documents[index] if shown else None)
                for index in order[: request.top_n]
            ),
            prompt_tokens=tokens,
        )

    async def score(self, request: ScoreRequest) -> Scores:
        """Return the scores of a request's pairs.

        Raises:
            ModelNotFoundError: There is no such model.
            InvalidRequestError: It does not rank, or a pair is too long.
            ApiError: Its engine cannot answer; see PoolingEngine.pool.
        """
        created = int(time.time())
        model = self._model(request.model)
        bounds = PairBounds(kept_tokens(request.truncation, model.files.context_length))
        named = zip(request.pairs, request.pair_fields, request.first_fields, strict=True)
        groups = [
            _pairs([*together])
            for _, together in itertools.groupby(named, key=lambda item: item[2])
        ]
        scores, tokens = await self._scores(model, groups, bounds, request.priority)
        return Scores(
            id=f"score-{uuid.uuid4().hex}",
            created=created,
            model=request.model or model.id,
            scores=tuple(scores),
            prompt_tokens=tokens,
        )

    def _model(self, identifier: str) -> PoolingModel:
        # mypy takes abstract classes for what cannot be asked for: its issue 4717.
        return self._models.asked(PoolingModel, "rerank", identifier)  # type: ignore[type-abstract]

    async def _scores(
        self, model: PoolingModel, groups: Sequence[Pairs], bounds: PairBounds, priority: int
    ) -> tuple[list[float], int]:
        """Return the scores of all pairs, and how many tokens they have."""
        sizes: list[int] = []

        def tokenize() -> list[TokenizedText]:
            texts = [model.scorer.tokenize(model.files, pairs, bounds) for pairs in groups]
            sizes.extend(map(len, texts))
            return [*itertools.chain.from_iterable(texts)]

        pooled = await self._pooler.pool(
            model,
            tokenize,
            PoolingParams(priority, model.scorer.normalize),
            (text for pairs in groups for text in (pairs.first, *pairs.seconds)),
        )
        vectors = iter(pooled.vectors)
        scores = [
            score
            for size in sizes
            for score in model.scorer.scores([*itertools.islice(vectors, size)])
        ]
        return scores, pooled.prompt_tokens


def _pairs(named: Sequence[tuple[tuple[str, str], FieldPath, FieldPath]]) -> Pairs:
    """Return pairs of one first text, each given with the paths of its second and its first."""
    [((first, _), _, first_field), *_] = named
    seconds = [second for (_, second), _, _ in named]
    return Pairs(first, seconds, [field for _, field, _ in named], first_field)
