"""The models a server serves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat_server.api.errors import ModelNotFoundError, Violation, shortened
from ovchat_server.api.field_path import ErrorText, FieldPath
from ovchat_server.api.models import Capability, ModelState, ModelStatus

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ovchat_server.chat.dialects.registry import Dialects
    from ovchat_server.chat.prompt import PromptRenderer
    from ovchat_server.engine.contract.generation import Engine
    from ovchat_server.serving.model_files import ModelFiles


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model, ready to be asked.

    Attributes:
        fingerprint: OpenAI's system_fingerprint: changes when something changes that may
            change answers.
        dialects: How it writes calls and reasoning.
        constrains_calls: Calls that it makes of its own accord are held to the tools' schemas.
    """

    id: str
    fingerprint: str
    files: ModelFiles
    renderer: PromptRenderer
    engine: Engine
    dialects: Dialects
    constrains_calls: bool = True

    @property
    def status(self) -> ModelStatus:
        """How it is doing now."""
        engine = self.engine.status
        return ModelStatus(
            id=self.id,
            created=self.files.created,
            context_length=engine.context_length,
            capabilities=self._capabilities(),
            state=engine.state,
            state_reason=engine.reason,
            load=engine.load,
            sampling_control=engine.sees_logits,
        )

    def _capabilities(self) -> tuple[Capability, ...]:
        known = {
            Capability.CHAT: True,
            Capability.TOOLS: self.dialects.tools is not None,
            Capability.REASONING: self.dialects.reasoning is not None,
        }
        return tuple(capability for capability, has in known.items() if has)


class ModelRegistry:
    """Finds models by id."""

    def __init__(self, models: Iterable[ServedModel]) -> None:
        """Serve `models`."""
        self._models = {model.id: model for model in sorted(models, key=lambda model: model.id)}

    def get(self, identifier: str) -> ServedModel:
        """The model of that id.

        Raises:
            ModelNotFoundError: There is none.
        """
        model = self._models.get(identifier)
        if model is None:
            message = (
                f"The model {shortened(identifier)!r} does not exist here. "
                f"Served are: {', '.join(self._models)}."
            )
            code = ModelNotFoundError.code
            violation = Violation(FieldPath.of("model"), ErrorText.of(message), code)
            raise ModelNotFoundError(message, violations=[violation])
        return model

    def statuses(self) -> tuple[ModelStatus, ...]:
        """How all models are doing, by id."""
        return tuple(model.status for model in self._models.values())

    def unready(self) -> str:
        """Which models do not answer, and why; "" where all do."""
        return "; ".join(
            f"{status.id}: {status.state_reason or status.state}"
            for status in self.statuses()
            if status.state is not ModelState.READY
        )
