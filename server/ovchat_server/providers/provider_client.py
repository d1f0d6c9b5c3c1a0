"""Calls of one provider's API."""

from __future__ import annotations

import contextlib
import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ovchat_server.providers import errors

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from ovchat_server.providers.egress import Egress, ProviderResponse
    from ovchat_server.providers.kind import ProviderKind

OK = 200
HIDDEN_KEY = "[API key]"


@dataclass(frozen=True, slots=True)
class ProviderClient:
    """Calls a provider by its API, through Envoy.

    Attributes:
        name: The provider's name.
        kind: The API that it speaks.
        egress: The way out.
        key: The API key; "" for none. It is never part of an error or a log.
    """

    name: str
    kind: ProviderKind
    egress: Egress
    key: str = field(default="", repr=False)

    @contextlib.asynccontextmanager
    async def post(self, path: str, body: bytes) -> AsyncGenerator[ProviderResponse, None]:
        """Post a request; on exit what is left of its answer is given up.

        Raises:
            ApiError: The provider cannot be reached, or answers with an error.
        """
        async with self._request(path, body) as response:
            yield response

    async def model_ids(self) -> Sequence[str]:
        """Ask which models it has.

        Raises:
            ApiError: It cannot be reached, or answers with an error.
            BadAnswerError: Its answer is no list of models.
        """
        async with self._request(self.kind.models_path) as response:
            return self.kind.model_ids(await response.body())

    @contextlib.asynccontextmanager
    async def _request(
        self, path: str, body: bytes | None = None
    ) -> AsyncGenerator[ProviderResponse, None]:
        headers = self.kind.headers(self.key)
        async with self.egress.request(self.name, path, headers, body) as response:
            if response.status != OK:
                said = self.kind.error(await response.error_body())
                if self.key:
                    said = dataclasses.replace(
                        said, message=said.message.replace(self.key, HIDDEN_KEY)
                    )
                raise errors.of_status(self.name, response.status, said, response.retry_after)
            yield response
