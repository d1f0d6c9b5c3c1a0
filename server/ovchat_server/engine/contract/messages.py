"""The frames between server and engine process: msgpack, each preceded by its length.

Commands go to the engine; one report comes back for every step, with the news of all
sequences, so that the cost of a frame is shared by the whole batch.
"""

from __future__ import annotations

import struct
from typing import TypeAlias

import msgspec

from ovchat_server.engine.contract.generation import PromptScore, Resumption, Sampling, Search
from ovchat_server.engine.contract.spec import EngineSpec

LENGTH = struct.Struct(">I")
# The finish of a sequence that the pipeline would not take in.
REFUSED = "refused"
# That of one that made the pipeline fail, or that it kept dropping.
BROKEN = "broken"
# That of one whose tokens cannot be told from another's.
MIXED_UP = "mixed up"


class Add(msgspec.Struct, frozen=True):
    """Generate; see engine.contract.generation.GenerationRequest.

    Ids come from a counter and are never used again.

    Attributes:
        said: Tokens of its answer that are known already, from a process that died: not of a
            search. They count in `max_tokens`.
        answered: Tokens at the end of the prompt that are of its answer.
        suspect: It was there when a process died, which may be its fault.
        ran: Steps that a search ran for there.
        client: Who asks; clients take turns.
        priority: Lower goes first.
    """

    id: int
    prompt: tuple[int, ...]
    max_tokens: int
    sampling: Sampling = Sampling()
    search: Search | None = None
    min_tokens: int = 0
    ignore_eos: bool = False
    stop_tokens: tuple[int, ...] = ()
    reserve: bool = False
    logprobs: bool = False
    top_logprobs: int = 0
    prompt_logprobs: int | None = None
    grammar: str = ""
    closed: bool = False
    resumptions: tuple[Resumption, ...] = ()
    said: tuple[int, ...] = ()
    answered: int = 0
    suspect: bool = False
    ran: int = 0
    client: str = ""
    priority: int = 0

    @property
    def beams(self) -> int:
        """Sequences that run; 1: it is no search."""
        return self.search.width if self.search else 1

    @property
    def ruled(self) -> bool:
        """Whether its logits are changed by rules of ours.

        genai's own would take a salted token (engine.genai.cache_salt) for a place in a row
        of logits.
        """
        repeats = self.sampling.repetition_penalty != 1
        return self.sampling.changes_logits or (self.prompt_logprobs is not None and repeats)

    @property
    def controlled(self) -> bool:
        """Whether it needs its logits: to change them, or to tell what genai does not."""
        return self.ruled or self.top_logprobs > 0


class Start(msgspec.Struct, frozen=True, tag="start"):
    """Requests that belong together.

    One frame, so that they run in the same steps whenever they are asked again: what shares a
    step with a sequence can change how its numbers round, and so its tokens.
    """

    requests: tuple[Add, ...]


class Cancel(msgspec.Struct, frozen=True, tag="cancel"):
    """Give up a sequence. One that has ended already is no error: the news may cross."""

    id: int


Command: TypeAlias = Start | Cancel


class Load(msgspec.Struct, frozen=True):
    """See api.models.EngineLoad."""

    running_requests: int
    waiting_requests: int
    used_kv_blocks: int
    total_kv_blocks: int
    peak_batch_size: int
    generated_tokens: int
    preemptions: int


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The model is loaded; see engine.contract.generation.EngineStatus."""

    context_length: int
    search_lengths: tuple[int, ...]
    load: Load
    sees_logits: bool = True


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """The model could not be loaded, or a step threw. The process ends after this."""

    reason: str


class SequenceOutput(msgspec.Struct, frozen=True, array_like=True):
    """Of one sequence.

    Attributes:
        index: Tells the sequences of a search apart; all others have 0.
        finish: On the last news of it; "stop", "length", REFUSED, BROKEN or MIXED_UP.
        reason: Of the latter three, for the server's log.
    """

    id: int
    index: int
    tokens: list[int]
    logprobs: list[float]
    finish: str | None
    alternatives: list[list[tuple[int, float]]] = []
    prompt: list[PromptScore] = []
    reason: str = ""


class Trial(msgspec.Struct, frozen=True, tag="trial"):
    """A suspect runs from the next step on: should the process die now, it was that one.

    None: it came further than where something broke; nobody is suspected.
    """

    id: int | None


class Report(msgspec.Struct, frozen=True, tag="report"):
    """What a step brought.

    Attributes:
        admitted: Requests that run for the first time.
        taken: Commands that the process has taken so far.
        busy: It goes on without being told anything, and so there will be another report.
    """

    news: list[SequenceOutput]
    load: Load
    admitted: list[int] = []
    taken: int = 0
    busy: bool = False


Event: TypeAlias = Ready | Failed | Trial | Report


class FrameReader:
    """Cuts a stream of bytes into frames."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The frames that are whole now that `data` came."""
        self._buffer += data
        frames = []
        while len(self._buffer) >= LENGTH.size:
            (size,) = LENGTH.unpack_from(self._buffer)
            end = LENGTH.size + size
            if len(self._buffer) < end:
                break
            frames.append(bytes(self._buffer[LENGTH.size : end]))
            del self._buffer[:end]
        return frames


def encode(message: EngineSpec | Command | Event) -> bytes:
    """A message as one frame."""
    return framed(message)


def framed(message: msgspec.Struct) -> bytes:
    """Any message as one frame."""
    body = msgspec.msgpack.encode(message)
    return LENGTH.pack(len(body)) + body


def decode_spec(frame: bytes) -> EngineSpec:
    """The spec in a frame: the first one an engine gets."""
    spec: EngineSpec = msgspec.msgpack.decode(frame, type=EngineSpec)
    return spec


def decode_command(frame: bytes) -> Command:
    """The command in a frame."""
    command: Command = msgspec.msgpack.decode(frame, type=Command)
    return command


def decode_event(frame: bytes) -> Event:
    """The event in a frame."""
    event: Event = msgspec.msgpack.decode(frame, type=Event)
    return event
