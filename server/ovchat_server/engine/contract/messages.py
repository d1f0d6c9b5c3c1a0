"""The messages between the server and an engine process, whatever kind of work it does.

The server sends commands; the process answers each step with one report, which holds the outputs
of the whole batch, so that they share the cost of a frame. A kind of work adds the types of its
requests, outputs and limits (`MessageDecoder`): see engine.contract.generation_messages.
"""

from __future__ import annotations

from typing import Final, Generic, Protocol, TypeVar

import msgspec

from ovchat_server.domain.models import EngineLoad

# Failures, which stand in place of a kind's own finish reasons.
# The worker did not accept the request.
REFUSED = "refused"
# A step failed because of the request, or the worker kept losing it.
BROKEN = "broken"
# The output cannot be told from another request's.
MISATTRIBUTED = "misattributed"
FAILURES: Final = frozenset((REFUSED, BROKEN, MISATTRIBUTED))


class Request(Protocol):
    """A request of any kind: it has an id from a counter, which is never reused."""

    @property
    def id(self) -> int:
        """Identify the request in outputs and commands."""
        ...


class Output(Protocol):
    """An output of any kind of request."""

    @property
    def id(self) -> int:
        """Identify the request that it belongs to."""
        ...

    @property
    def finish(self) -> str | None:
        """Return why the request ended: REFUSED and so on, or a reason of the kind's own.

        None if more outputs follow.
        """
        ...


RequestT = TypeVar("RequestT", bound=Request)
OutputT = TypeVar("OutputT", bound=Output)
LimitsT = TypeVar("LimitsT")


class Start(msgspec.Struct, Generic[RequestT], frozen=True, tag="start"):
    """Start requests that belong together.

    They travel in one frame, so that they share the same steps each time they are sent: what else
    is in a step can change how a sequence's numbers round, and so its tokens.
    """

    requests: tuple[RequestT, ...]


class Cancel(msgspec.Struct, frozen=True, tag="cancel"):
    """Cancel a request; one that has just ended is no error: its last output is on its way."""

    id: int


class Capabilities(msgspec.Struct, frozen=True):
    """What an engine can do, as not every model, device or library can.

    Attributes:
        sees_logits: It can change logits, and report the likeliest tokens.
        scores_prompts: It can report how likely a prompt's tokens are, where it sees logits.
    """

    sees_logits: bool = False
    scores_prompts: bool = True


NO_CAPABILITIES = Capabilities()


class EngineMemory(msgspec.Struct, frozen=True):
    """The memory that a loaded model takes, and what fits into it.

    Attributes:
        weights: The size of its weights' files, in bytes.
        kv_cache: The size of its KV cache, in bytes; 0 if it has none.
        kv_tokens: How many tokens fit into the KV cache, of all requests together.
        max_length: The maximum number of tokens of one request.
        context_length: The context length that the model was made for.
    """

    weights: int = 0
    kv_cache: int = 0
    kv_tokens: int = 0
    max_length: int = 0
    context_length: int = 0


NO_MEMORY = EngineMemory()


class Ready(msgspec.Struct, Generic[LimitsT], frozen=True, tag="ready"):
    """The model is loaded.

    Attributes:
        limits: What requests may ask for, of the kind's own type.
    """

    limits: LimitsT
    load: EngineLoad
    capabilities: Capabilities
    memory: EngineMemory = NO_MEMORY


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """The model could not be loaded, or a step threw. The process ends after this.

    Attributes:
        reason: Why, for an operator.
        lasting: Whether another process would fail for the same reason.
    """

    reason: str
    lasting: bool = False


class IsolatedRun(msgspec.Struct, frozen=True, tag="isolated"):
    """A suspect runs alone from the next step on, and is to blame if the process dies.

    The id is None once it has passed the point of failure or is gone: nobody is suspected.
    """

    id: int | None


class Report(msgspec.Struct, Generic[OutputT], frozen=True, tag="report"):
    """The outcome of a step.

    Attributes:
        admitted: The ids of requests that run for the first time.
        preempted: Those that gave up their place, to be resumed later.
        resumed: Those that run again, also if another process ran them before.
        sampling: Seconds that choosing tokens took, once the model had computed their logits; 0: it
            is not known.
        began: When the step began, in `time.monotonic` seconds; 0: there was none.
        ended: When it ended.
        taken: How many commands the process has received so far.
        busy: Whether the process continues without further commands, so that another report
            follows.
    """

    outputs: list[OutputT]
    load: EngineLoad
    admitted: list[int] = []
    preempted: list[int] = []
    resumed: list[int] = []
    sampling: float = 0.0
    began: float = 0.0
    ended: float = 0.0
    taken: int = 0
    busy: bool = False


class MessageDecoder(Generic[RequestT, OutputT, LimitsT]):
    """Decodes the messages of one kind of work."""

    def __init__(
        self,
        start: type[Start[RequestT]],
        report: type[Report[OutputT]],
        ready: type[Ready[LimitsT]],
    ) -> None:
        """Build the decoders of a kind's types, such as `Start[SequenceRequest]`."""
        self._commands = msgspec.msgpack.Decoder(start | Cancel)
        self._events = msgspec.msgpack.Decoder(report | ready | Failed | IsolatedRun)

    def decode_command(self, frame: bytes) -> Start[RequestT] | Cancel:
        """Decode what the server sent.

        Raises:
            msgspec.DecodeError: The frame is no command.
        """
        command: Start[RequestT] | Cancel = self._commands.decode(frame)
        return command

    def decode_event(self, frame: bytes) -> Report[OutputT] | Ready[LimitsT] | Failed | IsolatedRun:
        """Decode what the process sent."""
        event: Report[OutputT] | Ready[LimitsT] | Failed | IsolatedRun = self._events.decode(frame)
        return event
