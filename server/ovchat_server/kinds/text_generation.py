"""Models that generate text: chats and completions."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, ClassVar

import msgspec

from ovchat_server.chat.described_tools import tool_description
from ovchat_server.chat.dialects.registry import UnknownParserError, choose_dialects
from ovchat_server.chat.prompt import PromptRenderer
from ovchat_server.domain.models import MODEL_TYPE
from ovchat_server.engine.client.generation_engine import SupervisedGenerationEngine
from ovchat_server.engine.client.image_encoder import SupervisedImageEncoder
from ovchat_server.engine.contract.generation_spec import GenerationOptions, GenerationSpec
from ovchat_server.engine.contract.image_messages import ImageSpec
from ovchat_server.engine.contract.spec import EngineOptions
from ovchat_server.engine.contract.speculation import NO_SPECULATION, Speculation
from ovchat_server.kinds.base import BuiltModel, EngineProcesses, ModelSettingsError
from ovchat_server.kinds.draft_model import draft_context_length
from ovchat_server.serving.model_files import read_model_files
from ovchat_server.serving.model_path import is_vision_model, model_graph
from ovchat_server.serving.model_task import model_task
from ovchat_server.serving.models import TextModel

if TYPE_CHECKING:
    from pathlib import Path

    from ovchat_server.chat.dialects.registry import Dialects
    from ovchat_server.kinds.base import EngineHost
    from ovchat_server.serving.model_files import ModelFiles
    from ovchat_server.serving.pipeline import GenerationPipeline
    from ovchat_server.settings import ModelSettings

CACHE_DIR = "CACHE_DIR"
# A step of the encoder is a whole image, and beside a busy engine it has a tenth of the processors.
IMAGE_PATIENCE = 10


class TextGeneration:
    """See kinds.base.ModelKind."""

    type: ClassVar[str] = MODEL_TYPE
    options: ClassVar[frozenset[str]] = frozenset(GenerationOptions.__struct_fields__).difference(
        EngineOptions.__struct_fields__, ("device", "properties")
    ) | {"tool_parser", "reasoning_parser", "constrain_tool_calls", "draft_model"}

    def __init__(self, pipeline: GenerationPipeline) -> None:
        """Build models that answer by `pipeline`."""
        self._pipeline = pipeline

    def recognises(self, folder: Path) -> bool:
        """Return whether a folder has a graph that generates, as far as can be told."""
        return model_graph(folder) is not None and model_task(folder) == MODEL_TYPE

    def build(self, settings: ModelSettings, host: EngineHost) -> BuiltModel:
        """Read a model's folder and build what serves it."""
        files = read_model_files(settings.path)
        sees = is_vision_model(settings.path)
        if sees and settings.speculation is not None:
            raise ModelSettingsError(
                f"the model {settings.name!r}: speculation is not supported by vision models: "
                "leave it out"
            )
        spec = generation_spec(settings, files, host.processors, host.replicas)
        if draft := settings.draft_model:
            length = draft_context_length(settings.name, draft, files)
            spec = msgspec.structs.replace(spec, draft_context_length=length)
        engine = SupervisedGenerationEngine(
            spec, host.on_change, observer=host.observers.generation(settings.name)
        )
        images = None
        if sees:
            images = SupervisedImageEncoder(
                image_spec(spec), host.on_change, observer=host.observers.images(settings.name)
            )
        dialects = _dialects(settings, files)
        rewrite = tool_description(files.template, dialects)
        model = TextModel(
            id=settings.name,
            fingerprint=_fingerprint(settings, files),
            files=files,
            renderer=PromptRenderer(files.template, files.tokenizer, rewrite, files.image_token),
            engine=engine,
            dialects=dialects,
            pipeline=self._pipeline,
            constrains_calls=settings.constrain_tool_calls,
            images=images,
            speculation=_speculation(settings),
        )
        return BuiltModel(model, EngineProcesses([engine, images]) if images else engine)


def generation_spec(
    settings: ModelSettings,
    files: ModelFiles,
    processors: tuple[int, ...] = (),
    replicas: int = 1,
) -> GenerationSpec:
    """Return what the engine process of a model is told."""
    return GenerationSpec(
        name=settings.name,
        path=str(settings.path.resolve()),
        context_length=files.context_length,
        end_tokens=files.end_tokens,
        draft_model=str(settings.draft_model.resolve()) if settings.draft_model else "",
        # The settings without those that are not the engine's.
        options=msgspec.convert(settings, GenerationOptions, from_attributes=True),
        processors=processors,
        replicas=replicas,
    )


def image_spec(spec: GenerationSpec) -> ImageSpec:
    """Return what the process is told that encodes the images of a model."""
    return ImageSpec(
        name=f"{spec.name} (images)",
        path=spec.path,
        options=msgspec.structs.replace(
            msgspec.convert(spec.options, EngineOptions, from_attributes=True),
            step_timeout=IMAGE_PATIENCE * spec.options.step_timeout,
        ),
        processors=spec.processors,
        replicas=spec.replicas,
        # What it loads is in another folder each time, for each of which OpenVINO would keep files.
        properties={key: item for key, item in spec.options.properties.items() if key != CACHE_DIR},
    )


def _dialects(settings: ModelSettings, files: ModelFiles) -> Dialects:
    try:
        return choose_dialects(
            files.template.source,
            settings.tool_parser,
            settings.reasoning_parser,
            knows_tools=files.template.knows_tools,
        )
    except UnknownParserError as error:
        raise ModelSettingsError(f"the model {settings.name!r}: {error}") from error


def _speculation(settings: ModelSettings) -> Speculation:
    if settings.speculation is None:
        return NO_SPECULATION
    if settings.speculation == "draft":
        threshold = settings.assistant_confidence_threshold
        return Speculation(settings.num_assistant_tokens, assistant_confidence_threshold=threshold)
    return Speculation(settings.num_assistant_tokens, settings.max_ngram_size)


def _fingerprint(settings: ModelSettings, files: ModelFiles) -> str:
    """Return a digest of all that may change answers: files, the engine's options, parsers."""
    how = (
        f"{settings.device}:{settings.kv_cache_precision}:{settings.max_num_batched_tokens}:"
        f"{settings.tool_parser}:{settings.reasoning_parser}:"
        # Several tokens in a step round differently than each in one of its own.
        f"{settings.constrain_tool_calls}:{settings.speculation}:{sorted(settings.properties.items())}"
    )
    return "fp_" + hashlib.sha256(f"{files.digest}:{how}".encode()).hexdigest()[:12]
