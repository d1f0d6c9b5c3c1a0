"""Routes: ids that stand for several models, of which the first that can answers."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat_server.domain.models import ModelState, ModelStatus
from ovchat_server.serving.models import GenerativeModel
from ovchat_server.serving.routed_answer import RoutedAnswer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ovchat_server.domain.chat import ChatRequest
    from ovchat_server.domain.text import TextRequest
    from ovchat_server.serving.deadline import Deadline


@dataclass(frozen=True, slots=True)
class RoutedModel(GenerativeModel):
    """Several models by one id.

    Attributes:
        models: Their ids, in the order in which they are asked.
        find: Finds one of them.
        weights: Of each, how often it is asked first; the others follow by theirs. Empty: always
            the first.
    """

    models: Sequence[str]
    find: Callable[[str], GenerativeModel]
    weights: Sequence[float] = ()

    @property
    def status(self) -> ModelStatus:
        """See Model: what all of its models can do, and the state of the best."""
        statuses = [self.find(model).status for model in self.models]
        capabilities = statuses[0].capabilities
        ready = any(status.state is ModelState.READY for status in statuses)
        return ModelStatus(
            id=self.id,
            created=max(status.created for status in statuses),
            context_length=min(status.context_length for status in statuses),
            capabilities=tuple(
                item
                for item in capabilities
                if all(item in status.capabilities for status in statuses)
            ),
            state=ModelState.READY if ready else statuses[0].state,
            state_reason="" if ready else "none of its models is ready",
            sampling_control=all(status.sampling_control for status in statuses),
        )

    async def answer(self, request: ChatRequest | TextRequest, deadline: Deadline) -> RoutedAnswer:
        """See GenerativeModel. The models are asked when the answer is read."""
        return RoutedAnswer(self._order(), self.find, request, deadline)

    def _order(self) -> Sequence[str]:
        if not self.weights:
            return self.models
        # Drawn without being put back (Efraimidis and Spirakis): so the first of them is drawn by
        # its weight, and of the others the first by its own.
        keys = {
            model: random.random() ** (1 / weight)  # noqa: S311  no secret
            for model, weight in zip(self.models, self.weights, strict=True)
        }
        return sorted(self.models, key=keys.__getitem__, reverse=True)
