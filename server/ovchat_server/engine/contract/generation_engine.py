"""An engine that generates tokens, as the server sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ovchat_server.domain.errors import InvalidRequestError
from ovchat_server.engine.contract.engine import ANONYMOUS

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Self

    from ovchat_server.domain.errors import ApiError
    from ovchat_server.engine.contract.engine import Caller
    from ovchat_server.engine.contract.generation import (
        GeneratedTokens,
        GenerationRequest,
        GenerationStatus,
    )
    from ovchat_server.engine.contract.times import RequestTimes


class SlowGrammarError(InvalidRequestError):
    """A grammar takes too long to follow.

    Attributes:
        reason: Why it cannot be enforced, as a clause for the caller.
    """

    def __init__(self, reason: str) -> None:
        """Make the error."""
        super().__init__(f"The answer's grammar cannot be enforced: {reason}.")
        self.reason = reason


class GenerationStream(Protocol):
    """A stream of tokens of running sequences. Leaving the context frees them within one step."""

    @property
    def admission(self) -> asyncio.Event:
        """Return the event that one of the sequences has been admitted."""
        ...

    def __enter__(self) -> Self:
        """Return the stream; the sequences run already."""
        ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Cancel the sequences that have not ended."""
        ...

    def __aiter__(self) -> Self:
        """Return the stream."""
        ...

    async def __anext__(self) -> GeneratedTokens:
        """Wait for the next tokens of a sequence; a slow reader gets fewer, larger pieces.

        The last piece of each sequence has its finish reason.

        Raises:
            StopAsyncIteration: All sequences have ended.
            OverloadedError: The request was not admitted in time.
            SlowGrammarError: The grammar of one slows down what else runs.
            InternalError: The engine failed on the request, or its tokens may be misattributed.
            UnavailableError: The engine died and cannot be restarted.
        """
        ...

    def end(self, index: int) -> None:
        """Cancel one sequence; no more of its tokens are returned."""
        ...

    def fail(self, error: ApiError) -> None:
        """Raise an error in the reader, after the tokens that have arrived."""
        ...


class GenerationEngine(Protocol):
    """Generates tokens, many sequences at once."""

    @property
    def status(self) -> GenerationStatus:
        """Return how the engine is doing now."""
        ...

    async def check_grammar(self, grammar: str, caller: Caller = ANONYMOUS) -> str:
        """Return why a grammar cannot be served, as a clause for the caller; "" if it can.

        It does not compile, or the caller's answers that followed it were slow lately.

        Args:
            grammar: As the compiler reads it.
            caller: Who asks: callers take turns.

        Raises:
            OverloadedError: Too many of the caller's grammars wait.
            UnavailableError: It cannot be checked now.
        """
        ...

    def check_queue(self, caller: Caller = ANONYMOUS) -> None:
        """Refuse what `generate` would refuse, before the prompt is rendered.

        Raises:
            OverloadedError: Too many are waiting already.
        """
        ...

    def generate(
        self,
        requests: Sequence[GenerationRequest],
        caller: Caller = ANONYMOUS,
        times: RequestTimes | None = None,
    ) -> GenerationStream:
        """Queue the sequences of `requests`, and return the stream of their tokens.

        Args:
            requests: At least one.
            caller: Who asks.
            times: Takes down what happens when; None: nobody asks.

        Raises:
            OverloadedError: Too many are waiting already, or the caller's grammars were slow.
            UnavailableError: There is no engine now.
        """
        ...
