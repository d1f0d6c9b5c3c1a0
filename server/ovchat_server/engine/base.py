"""The engine as the rest of the server sees it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from ovchat_server.api.models import EngineLoad, ModelState


class TokenFinish(StrEnum):
    """Why the engine stopped generating."""

    STOP = "stop"
    LENGTH = "length"


@dataclass(frozen=True, slots=True)
class Sampling:
    """How each token is chosen; every value is set.

    Attributes:
        temperature: 0 is greedy: the most likely token, whatever the others say.
        top_p: (0, 1].
        top_k: 0 turns it off.
        seed: 0 to 2^32 - 1: the engine's generator takes no more bits.
    """

    temperature: float
    top_p: float
    top_k: int
    seed: int


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One sequence to generate.

    Attributes:
        prompt: Tokens of the model's vocabulary, at least one.
        max_tokens: Most tokens to generate, at least one; with the prompt no more than the
            engine's context length.
    """

    prompt: tuple[int, ...]
    max_tokens: int
    sampling: Sampling


@dataclass(frozen=True, slots=True)
class GeneratedTokens:
    """Tokens that came since the last time; the end token is one of them."""

    tokens: tuple[int, ...]
    finish: TokenFinish | None = None


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """How an engine is doing.

    Attributes:
        context_length: Most tokens of prompt and answer together; 0 until loaded once.
        reason: Why it does not answer, for an operator; "" where it does.
        load: None while there is no engine.
    """

    state: ModelState
    context_length: int
    reason: str = ""
    load: EngineLoad | None = None


class Engine(Protocol):
    """Generates tokens, many sequences at once."""

    @property
    def status(self) -> EngineStatus:
        """How the engine is doing now."""
        ...

    def generate(self, request: GenerationRequest) -> AsyncGenerator[GeneratedTokens, None]:
        """Generate one sequence.

        Yields what came since the last time, so a slow reader gets fewer, larger pieces; the
        last one says why it ended. Closing the generator, or cancelling the task that waits
        in it, frees the sequence within one step of the engine.

        Raises:
            UnavailableError: There is no engine now, or it died under the request.
        """
        ...
