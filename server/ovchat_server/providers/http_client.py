"""Calls of one provider's API over HTTP."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ovchat_server.providers import errors
from ovchat_server.providers.http_exchange import HttpExchange
from ovchat_server.serving.record import current_record

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from ovchat_server.domain.chat import ChatRequest
    from ovchat_server.domain.text import TextRequest
    from ovchat_server.providers.egress import Egress, ProviderResponse
    from ovchat_server.providers.kind import ProviderKind
    from ovchat_server.serving.worker_pool import WorkerPool

OK = 200


@dataclass(frozen=True, slots=True)
class HttpClient:
    """Calls a provider by its API, through Envoy; see ProviderClient.

    Attributes:
        name: The provider's name.
        kind: The API that it speaks.
        egress: The way out.
        workers: Threads for reading large answers.
        key: The API key; "" for none. It is never part of an error or a log.
    """

    name: str
    kind: ProviderKind
    egress: Egress
    workers: WorkerPool
    key: str = field(default="", repr=False)

    def exchange(self, request: ChatRequest | TextRequest, model: str) -> HttpExchange:
        """See ProviderClient."""
        wire, reader = self.kind.request(request, model), self.kind.reader(request)
        return HttpExchange(self, wire, reader, streams=request.stream is not None)

    async def model_ids(self) -> Sequence[str]:
        """See ProviderClient."""
        async with self.ask(self.kind.models_path) as response:
            return self.kind.model_ids(await response.body())

    async def close(self) -> None:
        """See ProviderClient."""
        await self.egress.close()

    @contextlib.asynccontextmanager
    async def ask(
        self, path: str, body: bytes | None = None
    ) -> AsyncGenerator[ProviderResponse, None]:
        """Send a request; on exit what is left of its answer is given up.

        Args:
            path: The path below the base URL.
            body: What is posted, as JSON; None: it is a GET.

        Raises:
            ApiError: The provider cannot be reached, or answers with an error.
        """
        headers = {**self.kind.headers(self.key), **current_record().trace_headers}
        async with self.egress.request(self.name, path, headers, body) as response:
            if response.status != OK:
                told = (await response.error_body()).decode(errors="replace")
                said = self.kind.error(errors.without_key(told, self.key).encode())
                raise errors.of_status(self.name, response.status, said, response.retry_after)
            yield response
