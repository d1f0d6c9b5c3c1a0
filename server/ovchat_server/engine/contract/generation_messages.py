"""What engine processes that generate tokens are sent, and what they send."""

from __future__ import annotations

import msgspec

from ovchat_server.engine.contract.generation import GenerationRequest, PromptScore
from ovchat_server.engine.contract.messages import MessageDecoder, Ready, Report, Start


class SequenceRequest(msgspec.Struct, frozen=True):
    """A request to generate a sequence, or those of a beam search, which run together.

    Attributes:
        generated: Tokens of its answer that a process which died has generated; none of a beam
            search. They count in `max_tokens`.
        suspect: It ran when a process died, which may be its fault.
        ran: Steps that a beam search ran for there.
        client: Who asks; clients take turns.
        priority: Lower goes first, among clients.
        own_priority: Lower goes first, among those of its client.
    """

    id: int
    generation: GenerationRequest
    generated: tuple[int, ...] = ()
    suspect: bool = False
    ran: int = 0
    client: str = ""
    priority: int = 0
    own_priority: int = 0


class SequenceOutput(msgspec.Struct, frozen=True, array_like=True):
    """Tokens of one sequence.

    Attributes:
        index: Tells the sequences of a beam search apart; all others have 0.
        finish: With its last tokens: "stop", "length", or a failure (engine.contract.messages).
        reason: Of a failure, for the server's log.
        cached: See engine.contract.generation.GeneratedTokens; accepted and rejected, too.
    """

    id: int
    index: int
    tokens: list[int]
    logprobs: list[float]
    finish: str | None
    alternatives: list[list[tuple[int, float]]] = []
    prompt: list[PromptScore] = []
    reason: str = ""
    cached: int | None = None
    accepted: int = 0
    rejected: int = 0


class GenerationLimits(msgspec.Struct, frozen=True):
    """How many tokens fit; see engine.contract.generation.EngineStatus."""

    context_length: int
    search_lengths: tuple[int, ...]


def generation_decoder() -> MessageDecoder[SequenceRequest, SequenceOutput, GenerationLimits]:
    """Return the decoders of generation's messages."""
    return MessageDecoder(Start[SequenceRequest], Report[SequenceOutput], Ready[GenerationLimits])
