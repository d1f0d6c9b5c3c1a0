"""All providers that the settings name."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from ovchat_server.providers.anthropic.kind import AnthropicKind
from ovchat_server.providers.egress import Egress
from ovchat_server.providers.http_client import HttpClient
from ovchat_server.providers.openai.kind import OpenAiKind
from ovchat_server.providers.ovchat.client import OvchatClient
from ovchat_server.providers.remote_provider import RemoteProvider

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ovchat_server.provider_settings import ProviderSettings
    from ovchat_server.providers.kind import ProviderKind
    from ovchat_server.providers.provider_client import ProviderClient
    from ovchat_server.serving.worker_pool import WorkerPool


def _openai(settings: ProviderSettings) -> ProviderKind:
    return OpenAiKind(settings.name, settings.max_tokens_field, settings.vllm_parameters)


def _anthropic(settings: ProviderSettings) -> ProviderKind:
    return AnthropicKind(settings.name, settings.default_max_tokens)


# Those that speak HTTP, by the names that they have in the config file.
KINDS: Mapping[str, Callable[[ProviderSettings], ProviderKind]] = {
    "openai": _openai,
    "anthropic": _anthropic,
}


@dataclass(frozen=True, slots=True)
class Providers:
    """Providers, each with its way out.

    They are asked for their models from `start` to `close`; see kinds.base.EngineProcess.
    """

    each: Sequence[RemoteProvider]

    @classmethod
    def of(
        cls, settings: Iterable[ProviderSettings], address: str | None, workers: WorkerPool
    ) -> Self:
        """Return providers, of which nothing was asked yet.

        Args:
            settings: What the config file says of them.
            address: Where Envoy's egress listener is; None only where there are no providers.
            workers: Threads for writing requests and reading large answers.
        """
        return cls(
            [
                RemoteProvider(_client(item, address or "", workers), item.models, workers)
                for item in settings
            ]
        )

    def start(self) -> None:
        """Begin to ask for models; returns at once."""
        for provider in self.each:
            provider.start()

    async def close(self) -> None:
        """End what is under way, and close all connections."""
        await asyncio.gather(*(provider.close() for provider in self.each))


def _client(settings: ProviderSettings, address: str, workers: WorkerPool) -> ProviderClient:
    key = os.environ.get(settings.api_key_env, "").strip() if settings.api_key_env else ""
    if settings.kind == "ovchat":
        return OvchatClient(settings.name, address, key)
    kind = KINDS[settings.kind](settings)
    return HttpClient(settings.name, kind, Egress(address), workers, key)
