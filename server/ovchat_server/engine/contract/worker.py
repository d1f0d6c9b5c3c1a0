"""What an engine process runs, whatever kind of work it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ovchat_server.engine.contract.messages import LimitsT, Output, OutputT, Request, RequestT

if TYPE_CHECKING:
    from ovchat_server.domain.models import EngineLoad
    from ovchat_server.engine.contract.messages import MessageDecoder, Ready, Report


class ModelLoadError(Exception):
    """A model cannot be loaded for a reason that stays; the message says what to do about it."""


class Worker(Protocol[RequestT, OutputT, LimitsT]):
    """Works on requests in steps, driven by one thread."""

    @property
    def decoder(self) -> MessageDecoder[RequestT, OutputT, LimitsT]:
        """Return the decoders of its messages."""
        ...

    @property
    def ready(self) -> Ready[LimitsT]:
        """Return what to tell the server now that the model is loaded."""
        ...

    def add(self, request: RequestT) -> None:
        """Take a request; one that cannot run ends with REFUSED in the next report."""
        ...

    def cancel(self, identifier: int) -> None:
        """Cancel a request; nothing more comes of it. One that is not here is no error."""
        ...

    def poll(self) -> None:
        """Take in what was done beside the steps, in threads, since the last time."""
        ...

    @property
    def busy(self) -> bool:
        """Return whether a step would do something."""
        ...

    def step(self) -> Report[OutputT]:
        """Process the requests that have their turn, and report the outputs.

        Raises:
            Exception: The worker cannot go on. The process ends, and another one takes over.
        """
        ...

    def load(self) -> EngineLoad:
        """Return how full it is."""
        ...


class WorkerContext(Protocol):
    """What the process does for its worker."""

    def wake(self) -> None:
        """Have `poll` called soon, though no command comes. May be called in any thread."""
        ...

    def isolate(self, identifier: int | None) -> None:
        """Tell the server at once that a suspect runs alone from now on; None: none does.

        Before the step, which may be the last thing that the process does.
        """
        ...


class LoadWorker(Protocol):
    """What the spec names: a function that loads a model."""

    def __call__(self, spec: bytes, context: WorkerContext) -> Worker[Request, Output, object]:
        """Load a model; seconds and gigabytes.

        Args:
            spec: The frame that holds the kind's EngineSpec.
            context: The process.

        Raises:
            ModelLoadError: It cannot be loaded, and would not be at another attempt.
            Exception: It cannot be loaded now.
        """
        ...
