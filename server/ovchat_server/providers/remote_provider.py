"""Providers: which models they have, as far as is known, and how those are asked."""

from __future__ import annotations

import asyncio
import contextlib
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

    Attributes:
        client: Asks the provider.
        workers: Threads for writing requests.
        available: Whether it could be reached the last time.
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
        self.client = client
        self._patterns = patterns
        self.workers = workers
        # Those that are named in full are there before the provider was asked.
        self._named = tuple(item for item in patterns or () if not set(item) & set("*?["))
        self._ids = self._named
        self.available = True
        self._changed = asyncio.Event()
        # Whether it listed its models the last time.
        self._listed = True
        self._task: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        """See Provider."""
        return self.client.name

    @property
    def status(self) -> ProviderStatus:
        """See Provider."""
        return ProviderStatus(
            self.name,
            available=self.available,
            model_count=len(self._ids),
            description=f"Models of the provider {self.name}.",
        )

    def models(self) -> Sequence[ModelStatus]:
        """See Provider."""
        return [remote_status(self.name, item, available=self.available) for item in self._ids]

    def model(self, identifier: str, field: str) -> RemoteModel:
        """See Provider. One that the provider does not list is asked for all the same."""
        if not identifier or not self._serves(identifier):
            asked = shortened(f"{self.name}/{identifier}")
            served = ", ".join(self._patterns or ("all that it has",))
            message = f"The model {asked!r} does not exist. Of this provider are served: {served}."
            raise not_found(field, message)
        return RemoteModel(f"{self.name}/{identifier}", identifier, self)

    def start(self) -> None:
        """Begin to ask for its models; returns at once."""
        self._task = asyncio.create_task(self._keep_asking())

    async def close(self) -> None:
        """End what is under way, and close all connections."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self.client.close()

    def _serves(self, identifier: str) -> bool:
        patterns = self._patterns
        return patterns is None or any(fnmatchcase(identifier, item) for item in patterns)

    def heard(self, *, answers: bool) -> None:
        """Note whether it can be reached; ask for its models at once if that has changed."""
        if answers is not self.available:
            how = "answers" if answers else "cannot be used now"
            logger.info("The provider %r %s", self.name, how)
            self.available = answers
            self._changed.set()

    async def _keep_asking(self) -> None:
        backoff = Backoff(self._wait)
        while True:
            error = await self._ask()
            if error is None and not self._listed:
                logger.info("The provider %r lists its models", self.name)
            elif error is not None and self._listed:
                logger.warning("The provider %r does not list its models: %s", self.name, error)
            self._listed = error is None
            # One that answers is there, whether it lists its models or not.
            self.available = not isinstance(error, UnavailableError | DeadlineExceededError)
            if error is None:
                backoff.reset()
                await self._wait(LIST_INTERVAL)
            else:
                await backoff.wait()

    async def _wait(self, seconds: float) -> None:
        """Wait for so long, or until it was heard that it comes or goes."""
        self._changed.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()

    async def _ask(self) -> Exception | None:
        """Ask for its models; return what went wrong, if anything."""
        try:
            found = await self.client.model_ids()
        except (ApiError, BadAnswerError) as error:
            return error
        except Exception as error:  # it goes on asking, whatever it is
            logger.exception("An internal error ended a question for models")
            return error
        self._ids = tuple(dict.fromkeys((*filter(self._serves, found), *self._named)))
        return None
