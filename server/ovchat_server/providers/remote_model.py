"""Models that run elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ovchat_server.domain.models import Capability, ModelState, ModelStatus
from ovchat_server.providers.remote_answer import RemoteAnswer
from ovchat_server.serving.completion_info import completion_info
from ovchat_server.serving.models import GenerativeModel

if TYPE_CHECKING:
    from ovchat_server.domain.chat import ChatRequest
    from ovchat_server.domain.text import TextRequest
    from ovchat_server.providers.provider_client import ProviderClient
    from ovchat_server.serving.deadline import Deadline
    from ovchat_server.serving.worker_pool import WorkerPool


def remote_status(provider: str, name: str, *, available: bool) -> ModelStatus:
    """Return how a provider's model is doing, as far as is known.

    Args:
        provider: The provider's name.
        name: The id that the provider knows the model by.
        available: Whether the provider answers.
    """
    return ModelStatus(
        id=f"{provider}/{name}",
        created=0,
        context_length=0,
        # What else it can do only its provider knows.
        capabilities=(Capability.CHAT,),
        state=ModelState.READY if available else ModelState.UNAVAILABLE,
        state_reason="" if available else f"the provider {provider} does not answer",
        provider=provider,
    )


@dataclass(frozen=True, slots=True)
class RemoteModel(GenerativeModel):
    """A model of a provider.

    Attributes:
        name: The id that the provider knows it by.
        client: Asks the provider.
        workers: Threads for writing requests.
        available: Whether the provider answered lately.
    """

    name: str
    client: ProviderClient
    workers: WorkerPool
    available: bool = True

    @property
    def status(self) -> ModelStatus:
        """See Model."""
        return remote_status(self.client.name, self.name, available=self.available)

    async def answer(self, request: ChatRequest | TextRequest, deadline: Deadline) -> RemoteAnswer:
        """See GenerativeModel. The provider is asked when the answer is read."""
        exchange = await self.workers.run(partial(self.client.exchange, request, self.name))
        sampling = request.generation.sampling
        info = completion_info(request, self.id, None, sampling.temperature, sampling.top_p)
        return RemoteAnswer(info, self.client.name, request, exchange, deadline)
