"""The models that are served, of whatever kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar, runtime_checkable

from ovchat_server.domain.models import MODEL_TYPE, Capability, ModelState, ModelStatus
from ovchat_server.engine.contract.speculation import NO_SPECULATION

if TYPE_CHECKING:
    from ovchat_server.chat.dialects.registry import Dialects
    from ovchat_server.chat.prompt import PromptRenderer
    from ovchat_server.domain.chat import ChatRequest
    from ovchat_server.domain.json_value import JsonObject
    from ovchat_server.domain.text import TextRequest
    from ovchat_server.engine.contract.engine import EngineStatus
    from ovchat_server.engine.contract.generation_engine import GenerationEngine
    from ovchat_server.engine.contract.image_encoder import ImageEncoder
    from ovchat_server.engine.contract.speculation import Speculation
    from ovchat_server.serving.answer import ChunkedAnswer
    from ovchat_server.serving.deadline import Deadline
    from ovchat_server.serving.model_files import ModelFiles
    from ovchat_server.serving.pipeline import GenerationPipeline
    from ovchat_server.tokenizer.huggingface import Tokenizer


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


class TokenizerFiles(Protocol):
    """What a model's folder says of its tokenizer, and of how many tokens the model takes."""

    @property
    def tokenizer(self) -> Tokenizer:
        """Return its tokenizer."""
        ...

    @property
    def tokenizer_info(self) -> JsonObject:
        """Return what the tokenizer is configured with."""
        ...

    @property
    def context_length(self) -> int:
        """Return how many tokens the model was made for."""
        ...


@runtime_checkable
class LocalModel(Model, Protocol):
    """A model whose files are here, whatever it is for."""

    type: ClassVar[str] = MODEL_TYPE

    @property
    def files(self) -> TokenizerFiles:
        """Return what its folder says."""
        ...


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
