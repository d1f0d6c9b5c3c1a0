"""Models that run elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ovchat_server.domain.models import Capability, ModelState, ModelStatus
from ovchat_server.providers.remote_answer import RemoteAnswer
from ovchat_server.serving.completion_info import completion_info
from ovchat_server.serving.models import GenerativeModel
from ovchat_server.serving.record import current_record

if TYPE_CHECKING:
    from ovchat_server.domain.chat import ChatRequest
    from ovchat_server.domain.text import TextRequest
    from ovchat_server.providers.remote_provider import RemoteProvider
    from ovchat_server.serving.deadline import Deadline


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
        provider: Whose it is.
    """

    name: str
    provider: RemoteProvider

    @property
    def status(self) -> ModelStatus:
        """See Model."""
        return remote_status(self.provider.name, self.name, available=self.provider.available)

    async def answer(self, request: ChatRequest | TextRequest, deadline: Deadline) -> RemoteAnswer:
        """See GenerativeModel. The provider is asked when the answer is read."""
        current_record().provider = self.provider.name
        provider, sampling = self.provider, request.generation.sampling
        write = partial(provider.client.exchange, request, self.name)
        exchange = await provider.workers.run(write)
        info = completion_info(request, self.id, None, sampling.temperature, sampling.top_p)
        return RemoteAnswer(info, provider, request, exchange, deadline)
