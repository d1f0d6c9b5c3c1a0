"""What a kind of models is to the composition root."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from ovchat_server.engine.contract.generation_messages import SequenceOutput
    from ovchat_server.engine.contract.image_messages import ImageOutput
    from ovchat_server.engine.contract.observer import EngineObserver
    from ovchat_server.engine.contract.pooling_messages import PoolingOutput
    from ovchat_server.serving.models import Model
    from ovchat_server.settings import ModelSettings


class ModelSettingsError(Exception):
    """A model's settings do not fit it; the message says which, and why."""


class EngineProcess(Protocol):
    """An engine that runs from `start` to `close`."""

    def start(self) -> None:
        """Begin to load the model; returns at once."""
        ...

    async def close(self) -> None:
        """End it and wait for its processes. What is under way fails."""
        ...


@dataclass(frozen=True, slots=True)
class EngineProcesses:
    """Several engines of one model, as one."""

    engines: Sequence[EngineProcess]

    def start(self) -> None:
        """See EngineProcess."""
        for engine in self.engines:
            engine.start()

    async def close(self) -> None:
        """See EngineProcess."""
        await asyncio.gather(*(engine.close() for engine in self.engines))


@dataclass(frozen=True, slots=True)
class BuiltModel:
    """A model, and its engine, which was not started yet."""

    model: Model
    engine: EngineProcess


class EngineObservers(Protocol):
    """Makes observers of the engines of a model, given its name."""

    def generation(self, model: str) -> EngineObserver[SequenceOutput]:
        """Return that of an engine that generates."""
        ...

    def images(self, model: str) -> EngineObserver[ImageOutput]:
        """Return that of the process that encodes images for such a model."""
        ...

    def pooling(self, model: str) -> EngineObserver[PoolingOutput]:
        """Return that of an engine that makes vectors."""
        ...


@dataclass(frozen=True, slots=True)
class EngineHost:
    """What an engine is built for.

    Attributes:
        processors: Those that it may run on; none: as the server.
        on_change: Learns of every change of its state, in the event loop.
        observers: Makes what is told what the engine does.
        replicas: Servers that have one of these, this one among them.
    """

    processors: tuple[int, ...]
    on_change: Callable[[], None]
    observers: EngineObservers
    replicas: int = 1


class ModelKind(Protocol):
    """Builds models of one kind.

    Attributes:
        type: The type of its models, for callers and in the option `task`.
        options: The names of options of models that are for this kind alone.
    """

    type: ClassVar[str]
    options: ClassVar[frozenset[str]]

    def recognises(self, folder: Path) -> bool:
        """Return whether a folder holds such a model."""
        ...

    def build(self, settings: ModelSettings, host: EngineHost) -> BuiltModel:
        """Read a model's folder and build what serves it. Starts nothing.

        Raises:
            ModelFilesError: The folder lacks something.
            ModelSettingsError: The settings do not fit the model.
        """
        ...


def kind_of(settings: ModelSettings, kinds: Sequence[ModelKind]) -> ModelKind:
    """Return the kind of a model: the one of its task, or else the first that recognises it.

    If none does, the first one: it says what is missing.

    Args:
        settings: The model's.
        kinds: At least one.

    Raises:
        ModelSettingsError: It has options of other kinds.
    """
    if settings.task is not None:
        kind = next(kind for kind in kinds if kind.type == settings.task)
    else:
        kind = next((kind for kind in kinds if kind.recognises(settings.path)), kinds[0])
    for field in msgspec.structs.fields(settings):
        others = [other.type for other in kinds if field.name in other.options]
        if others and kind.type not in others and getattr(settings, field.name) != field.default:
            raise ModelSettingsError(
                f"the model {settings.name!r}: {field.name} is an option of models for "
                f"{' or '.join(others)}, and this one is for {kind.type}: leave it out"
            )
    return kind
