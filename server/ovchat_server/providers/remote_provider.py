"""Providers: which models they have, as far as is known, and how those are asked."""

from __future__ import annotations

import asyncio
import logging
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from ovchat_server.backoff import Backoff
from ovchat_server.domain.errors import (
    ApiError,
    DeadlineExceededError,
    UnavailableError,
    shortened,
)
from ovchat_server.domain.models import ProviderStatus
from ovchat_server.providers.kind import BadAnswerError
from ovchat_server.providers.remote_model import RemoteModel, remote_status
from ovchat_server.serving.model_registry import not_found

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.domain.models import ModelStatus
    from ovchat_server.providers.provider_client import ProviderClient
    from ovchat_server.serving.worker_pool import WorkerPool

# Seconds between two questions for its models.
LIST_INTERVAL = 60.0

logger = logging.getLogger(__name__)


class RemoteProvider:
    """A provider, which is asked for its models from `start` to `close`.

    See serving.model_registry.Provider and kinds.base.EngineProcess.
    """

    def __init__(
        self, client: ProviderClient, patterns: Sequence[str] | None, workers: WorkerPool
    ) -> None:
        """Ask nothing yet.

        Args:
            client: Asks the provider.
            patterns: Ids of the models to serve, or patterns of them; None for all.
            workers: Threads for writing requests.
        """
        self._client = client
        self._patterns = patterns
        self._workers = workers
        # Those that are named in full are there before the provider was asked.
        self._named = tuple(item for item in patterns or () if not set(item) & set("*?["))
        self._ids = self._named
        self._available = True
        # Whether it listed its models the last time.
        self._listed = True
        self._task: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        """See Provider."""
        return self._client.name

    @property
    def status(self) -> ProviderStatus:
        """See Provider."""
        count = len(self._ids)
        return ProviderStatus(
            self.name,
            available=self._available,
            model_count=count,
            description=f"{count} known models of the provider {self.name}.",
        )

    def models(self) -> Sequence[ModelStatus]:
        """See Provider."""
        return [remote_status(self.name, item, available=self._available) for item in self._ids]

    def model(self, identifier: str, field: str) -> RemoteModel:
        """See Provider. One that the provider does not list is asked for all the same."""
        if not identifier or not self._serves(identifier):
            asked = shortened(f"{self.name}/{identifier}")
            served = ", ".join(self._patterns or ())
            message = f"The model {asked!r} does not exist. Of this provider are served: {served}."
            raise not_found(field, message)
        return RemoteModel(
            f"{self.name}/{identifier}", identifier, self._client, self._workers, self._available
        )

    def start(self) -> None:
        """Begin to ask for its models; returns at once."""
        self._task = asyncio.create_task(self._keep_asking())

    async def close(self) -> None:
        """End what is under way, and close all connections."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self._client.close()

    def _serves(self, identifier: str) -> bool:
        patterns = self._patterns
        return patterns is None or any(fnmatchcase(identifier, item) for item in patterns)

    async def _keep_asking(self) -> None:
        backoff = Backoff()
        while True:
            error = await self._ask()
            # One that answers is there, whether it lists its models or not.
            available = not isinstance(error, UnavailableError | DeadlineExceededError)
            if error is None and not self._listed:
                logger.info("The provider %r lists its models", self.name)
            elif error is not None and self._listed:
                logger.warning("The provider %r does not list its models: %s", self.name, error)
            self._available, self._listed = available, error is None
            if error is None:
                backoff.reset()
                await asyncio.sleep(LIST_INTERVAL)
            else:
                await backoff.wait()

    async def _ask(self) -> Exception | None:
        """Ask for its models; return what went wrong, if anything."""
        try:
            found = await self._client.model_ids()
        except (ApiError, BadAnswerError) as error:
            return error
        except Exception as error:  # it goes on asking, whatever it is
            logger.exception("An internal error ended a question for models")
            return error
        self._ids = tuple(dict.fromkeys((*filter(self._serves, found), *self._named)))
        return None
