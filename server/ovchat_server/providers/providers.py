"""All providers that the settings name."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from ovchat_server.providers.anthropic.kind import AnthropicKind
from ovchat_server.providers.egress import Egress
from ovchat_server.providers.openai.kind import OpenAiKind
from ovchat_server.providers.provider_client import ProviderClient
from ovchat_server.providers.remote_provider import RemoteProvider

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ovchat_server.provider_settings import ProviderSettings
    from ovchat_server.providers.kind import ProviderKind
    from ovchat_server.serving.worker_pool import WorkerPool


def _openai(settings: ProviderSettings) -> ProviderKind:
    return OpenAiKind(settings.name, settings.max_tokens_field, settings.vllm_parameters)


def _anthropic(settings: ProviderSettings) -> ProviderKind:
    return AnthropicKind(settings.name, settings.default_max_tokens)


# By the names that they have in the config file.
KINDS: Mapping[str, Callable[[ProviderSettings], ProviderKind]] = {
    "openai": _openai,
    "anthropic": _anthropic,
}


@dataclass(frozen=True, slots=True)
class Providers:
    """Providers, and the way out to them.

    They are asked for their models from `start` to `close`; see kinds.base.EngineProcess.
    """

    egress: Egress
    each: Sequence[RemoteProvider]

    @classmethod
    def of(
        cls, settings: Iterable[ProviderSettings], address: str | None, workers: WorkerPool
    ) -> Self:
        """Return providers, of which nothing was asked yet.

        Args:
            settings: What the config file says of them.
            address: Where Envoy's egress listener is; None only where there are no providers.
            workers: Threads for writing requests.
        """
        egress = Egress(address or "")
        each = []
        for item in settings:
            key = os.environ.get(item.api_key_env, "") if item.api_key_env else ""
            client = ProviderClient(item.name, KINDS[item.kind](item), egress, key)
            each.append(RemoteProvider(client, item.models, workers))
        return cls(egress, each)

    def start(self) -> None:
        """Begin to ask for models; returns at once."""
        for provider in self.each:
            provider.start()

    async def close(self) -> None:
        """End what is under way, and close all connections."""
        await asyncio.gather(*(provider.close() for provider in self.each))
        await self.egress.close()
