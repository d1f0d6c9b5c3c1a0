"""Embeddings: vectors of texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ovchat_server.domain.embeddings import EmbeddingRequest, Embeddings
    from ovchat_server.serving.model_registry import ModelRegistry
    from ovchat_server.serving.worker_pool import WorkerPool


class TextEmbeddings:
    """Answers requests for embeddings."""

    def __init__(self, models: ModelRegistry, workers: WorkerPool, timeout: float | None) -> None:
        """Answer with `models`, each request within `timeout` seconds; None for no limit."""
        self._models = models
        self._workers = workers
        self._timeout = timeout

    async def create(self, request: EmbeddingRequest) -> Embeddings:
        """Return the embeddings of a request's inputs.

        Raises:
            ModelNotFoundError: There is no such model.
            InvalidRequestError: It makes no embeddings, or an input is too long or no input of it.
            ApiError: Its engine cannot answer; see PoolingEngine.pool.
        """
        raise NotImplementedError
