"""Ranking documents by a query, and scoring pairs of texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ovchat_server.domain.rerank import Ranking, RerankRequest, ScoreRequest, Scores
    from ovchat_server.serving.model_registry import ModelRegistry
    from ovchat_server.serving.worker_pool import WorkerPool


class Reranking:
    """Answers requests to rank and to score."""

    def __init__(self, models: ModelRegistry, workers: WorkerPool, timeout: float | None) -> None:
        """Answer with `models`, each request within `timeout` seconds; None for no limit."""
        self._models = models
        self._workers = workers
        self._timeout = timeout

    async def rerank(self, request: RerankRequest) -> Ranking:
        """Return the documents of a request, the best first.

        Raises:
            ModelNotFoundError: There is no such model.
            InvalidRequestError: It does not rank, or a document is too long.
            ApiError: Its engine cannot answer; see PoolingEngine.pool.
        """
        raise NotImplementedError

    async def score(self, request: ScoreRequest) -> Scores:
        """Return the scores of a request's pairs.

        Raises:
            ModelNotFoundError: There is no such model.
            InvalidRequestError: It does not rank, or a pair is too long.
            ApiError: Its engine cannot answer; see PoolingEngine.pool.
        """
        raise NotImplementedError
