"""The models that are served, of whatever kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar

from ovchat_server.domain.errors import (
    InvalidRequestError,
    ModelNotFoundError,
    Violation,
    shortened,
)
from ovchat_server.domain.field_path import ErrorText, FieldPath
from ovchat_server.domain.models import MODEL_TYPE, Capability, ModelState, ModelStatus
from ovchat_server.engine.contract.speculation import NO_SPECULATION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ovchat_server.chat.dialects.registry import Dialects
    from ovchat_server.chat.prompt import PromptRenderer
    from ovchat_server.domain.chat import ChatRequest
    from ovchat_server.domain.text import TextRequest
    from ovchat_server.engine.contract.engine import EngineStatus
    from ovchat_server.engine.contract.generation_engine import GenerationEngine
    from ovchat_server.engine.contract.image_encoder import ImageEncoder
    from ovchat_server.engine.contract.speculation import Speculation
    from ovchat_server.serving.answer import ChunkedAnswer
    from ovchat_server.serving.deadline import Deadline
    from ovchat_server.serving.model_files import ModelFiles
    from ovchat_server.serving.pipeline import GenerationPipeline


class Model(Protocol):
    """A model of any kind.

    Attributes:
        type: The type of models of its kind, for callers: see domain.models.ModelStatus.
    """

    type: ClassVar[str]

    @property
    def id(self) -> str:
        """Return the name that callers ask for."""
        ...

    @property
    def status(self) -> ModelStatus:
        """Return how it is doing now."""
        ...


ModelT = TypeVar("ModelT", bound=Model)


@dataclass(frozen=True, slots=True)
class GenerativeModel(ABC):
    """A model that answers chats and text completions; see Model."""

    type: ClassVar[str] = MODEL_TYPE

    id: str

    @property
    @abstractmethod
    def status(self) -> ModelStatus:
        """See Model."""

    @abstractmethod
    async def answer(self, request: ChatRequest | TextRequest, deadline: Deadline) -> ChunkedAnswer:
        """Prepare the answer to a request. It is generated when it is read.

        Args:
            request: The request.
            deadline: When the answer has to be complete.

        Raises:
            ApiError: It cannot be answered; see the subclasses.
        """


@dataclass(frozen=True, slots=True)
class TextModel(GenerativeModel):
    """A model that generates text, and whose engine is ours.

    Attributes:
        fingerprint: OpenAI's system_fingerprint, which changes when something changes that may
            change answers.
        dialects: How it writes calls and reasoning.
        constrains_calls: Whether calls that it chooses to make must follow the tools' schemas.
        images: What encodes images for it; None: it takes text only.
        pipeline: How it answers.
        speculation: What its options say of it; NO_SPECULATION: nothing is proposed.
    """

    fingerprint: str
    files: ModelFiles
    renderer: PromptRenderer
    engine: GenerationEngine
    dialects: Dialects
    pipeline: GenerationPipeline
    constrains_calls: bool = True
    images: ImageEncoder | None = None
    speculation: Speculation = NO_SPECULATION

    @property
    def status(self) -> ModelStatus:
        """Return how it is doing now."""
        engine = self.engine.status
        decisive: EngineStatus = engine
        # Once it was loaded, an encoder that fails leaves the model ready: texts are answered.
        if engine.state is ModelState.READY and self.images and not self.images.loaded:
            decisive = self.images.status
        return ModelStatus(
            id=self.id,
            created=self.files.created,
            context_length=engine.context_length,
            capabilities=self._capabilities(),
            state=decisive.state,
            state_reason=decisive.reason,
            load=engine.load,
            type=self.type,
            sampling_control=engine.capabilities.sees_logits,
        )

    async def answer(self, request: ChatRequest | TextRequest, deadline: Deadline) -> ChunkedAnswer:
        """See GenerativeModel."""
        return await self.pipeline.answer(self, request, deadline)

    def _capabilities(self) -> tuple[Capability, ...]:
        known = {
            Capability.CHAT: True,
            Capability.TOOLS: self.dialects.tools is not None,
            Capability.REASONING: self.dialects.reasoning is not None,
            Capability.VISION: self.images is not None,
        }
        return tuple(capability for capability, has in known.items() if has)


class ModelRegistry:
    """Finds models by id. Models may come and go while it is used."""

    def __init__(
        self, models: Iterable[Model] = (), on_change: Callable[[], None] = lambda: None
    ) -> None:
        """Serve some models; `on_change` is called after one was added or removed."""
        self._models: dict[str, Model] = {}
        self._on_change = on_change
        for model in models:
            self.add(model)

    def add(self, model: Model) -> None:
        """Serve a model from now on.

        Raises:
            ValueError: There is one of that id.
        """
        if model.id in self._models:
            raise ValueError(f"there is a model {model.id!r} already")
        self._models = dict(sorted([*self._models.items(), (model.id, model)]))
        self._on_change()

    def remove(self, identifier: str) -> None:
        """Stop serving a model; requests in flight keep it, and its engine keeps running.

        Raises:
            ModelNotFoundError: There is none of that id.
        """
        self.get(identifier)
        del self._models[identifier]
        self._on_change()

    def get(self, identifier: str, field: str = "model") -> Model:
        """Return the model of an id.

        Args:
            identifier: The id.
            field: The field of the request that names it.

        Raises:
            ModelNotFoundError: There is none.
        """
        model = self._models.get(identifier)
        if model is None:
            message = (
                f"The model {shortened(identifier)!r} does not exist. "
                f"Available models: {', '.join(self._models)}."
            )
            code = ModelNotFoundError.code
            violation = Violation(FieldPath.of(field), ErrorText.of(message), code)
            raise ModelNotFoundError(message, violations=[violation])
        return model

    def get_as(self, kind: type[ModelT], identifier: str) -> ModelT:
        """Return the model of an id, checking its kind.

        Args:
            kind: The kind that the request is for.
            identifier: The id; "" for the only model of that kind.

        Raises:
            ModelNotFoundError: There is none.
            InvalidRequestError: It is of another kind, or there are several to choose from.
        """
        model = self.get(identifier) if identifier else self._only(kind)
        if isinstance(model, kind):
            return model
        complaint = f"names {identifier!r}, a model for {model.type}, not for {kind.type}."
        raise InvalidRequestError.about("model", complaint)

    def _only(self, kind: type[ModelT]) -> ModelT:
        models = [model for model in self._models.values() if isinstance(model, kind)]
        if len(models) == 1:
            return models[0]
        served = ", ".join(model.id for model in models) or "none"
        complaint = f"is required unless a single model is served. Available models: {served}."
        raise InvalidRequestError.about("model", complaint, "missing_required_parameter")

    def statuses(self) -> tuple[ModelStatus, ...]:
        """Return how all models are doing, by id."""
        return tuple(model.status for model in self._models.values())

    def unready(self) -> str:
        """Return which models are not ready, and why; "" if all are."""
        return "; ".join(filter(None, (status.unavailable_reason for status in self.statuses())))
