"""A model to serve whose engine is a script."""

from __future__ import annotations

import asyncio
import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ovchat_server.chat.dialects.registry import choose_dialects
from ovchat_server.chat.prompt import PromptRenderer
from ovchat_server.chat.template import ChatTemplate
from ovchat_server.domain.errors import OverloadedError
from ovchat_server.domain.limits import DEFAULT_LIMITS
from ovchat_server.domain.models import ModelState
from ovchat_server.engine.contract.engine import ANONYMOUS
from ovchat_server.engine.contract.generation import GeneratedTokens, GenerationStatus
from ovchat_server.grammar.cache import GrammarCache
from ovchat_server.images.sources import ImageSources
from ovchat_server.serving.answer_format import AnswerFormats
from ovchat_server.serving.chat import ChatStages
from ovchat_server.serving.completions import Completions
from ovchat_server.serving.images import ImagePreparation
from ovchat_server.serving.limits import RequestRules
from ovchat_server.serving.model_files import GenerationDefaults, ModelFiles
from ovchat_server.serving.model_registry import ModelRegistry
from ovchat_server.serving.models import TextModel
from ovchat_server.serving.pipeline import GenerationPipeline
from ovchat_server.serving.text import TextStages
from ovchat_server.serving.worker_pool import WorkerPool
from tests.unit.text_tools import byte_tokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Any, Self

    from ovchat_server.domain.limits import Limits
    from ovchat_server.engine.contract.engine import Caller
    from ovchat_server.engine.contract.generation import GenerationRequest
    from ovchat_server.engine.contract.times import RequestTimes

WORKERS = WorkerPool("test", 1)
IMAGES = ImagePreparation(ImageSources())
FORMATS = AnswerFormats(GrammarCache(), WORKERS)
TOKENIZER = byte_tokenizer()
VOCABULARY = TOKENIZER.vocabulary_size
CONTEXT = 100
# Of a search: half, a third and a quarter.
SEARCH_LENGTHS = (CONTEXT, 50, 33, 25)
READY = GenerationStatus(ModelState.READY, context_length=CONTEXT, search_lengths=SEARCH_LENGTHS)


class ScriptedGeneration:
    """Says what the script says, in its order."""

    def __init__(self, pieces: Sequence[GeneratedTokens]) -> None:
        self._pieces = list(pieces)
        self.ended: list[int] = []
        self.left = False
        self.admission = asyncio.Event()
        self.admission.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.left = True

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> GeneratedTokens:
        while self._pieces:
            piece = self._pieces.pop(0)
            if piece.index not in self.ended:
                return piece
        raise StopAsyncIteration

    def end(self, index: int) -> None:
        self.ended.append(index)


@dataclass
class ScriptedEngine:
    """Remembers what it was asked."""

    pieces: Sequence[GeneratedTokens] = ()
    status: GenerationStatus = READY
    asked: list[GenerationRequest] = field(default_factory=list)
    askers: list[Caller] = field(default_factory=list)
    full: bool = False

    def __post_init__(self) -> None:
        self.generation = ScriptedGeneration(self.pieces)

    def check_queue(self, caller: Caller = ANONYMOUS) -> None:  # noqa: ARG002
        if self.full:
            raise OverloadedError("full", retry_after=1)

    def generate(
        self,
        requests: Sequence[GenerationRequest],
        caller: Caller = ANONYMOUS,
        times: RequestTimes | None = None,  # noqa: ARG002
    ) -> ScriptedGeneration:
        self.asked += requests
        self.askers.append(caller)
        return self.generation


def pipeline(limits: Limits = DEFAULT_LIMITS) -> GenerationPipeline:
    """How models answer whose engine is ours."""
    stages = ChatStages(FORMATS, IMAGES), TextStages(FORMATS)
    return GenerationPipeline(*stages, WORKERS, RequestRules(limits))


def completions(model: TextModel, limits: Limits = DEFAULT_LIMITS) -> Completions:
    """Completions of one model."""
    return Completions(ModelRegistry([dataclasses.replace(model, pipeline=pipeline(limits))]), None)


def served(
    engine: ScriptedEngine | None = None,
    defaults: GenerationDefaults | None = None,
    template: str = "{{ messages[-1].content }}",
    **files: Any,
) -> TextModel:
    """The model "demo"; its context is as long as its engine's."""
    [end] = TOKENIZER.encode("<|im_end|>")
    read = ModelFiles(
        created=1,
        digest="",
        context_length=CONTEXT,
        end_tokens=(end,),
        vocabulary_size=VOCABULARY,
        defaults=defaults or GenerationDefaults(),
        template=ChatTemplate(template, {}),
        tokenizer=TOKENIZER,
        tokenizer_info={},
    )
    read = dataclasses.replace(read, **files)
    renderer = PromptRenderer(read.template, read.tokenizer)
    dialects = choose_dialects(read.template.source, "auto", "auto")
    return TextModel(
        "demo",
        "fp_1",
        read,
        renderer,
        engine or ScriptedEngine(),
        dialects,
        pipeline(),
        constrains_calls=True,
    )
