"""An engine that generates tokens, as the server sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ovchat_server.engine.contract.engine import ANONYMOUS

if TYPE_CHECKING:
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


class GenerationStream(Protocol):
    """Sequences under way. Leaving the context frees all of them within one step."""

    @property
    def admitted(self) -> bool:
        """Return whether one of them has, or had, a place in the engine."""
        ...

    def __enter__(self) -> Self:
        """Return itself; the sequences run already."""
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
        """Return itself."""
        ...

    async def __anext__(self) -> GeneratedTokens:
        """Wait for tokens of a sequence; a slow reader gets fewer, larger pieces.

        The last piece of each sequence says why it ended.

        Raises:
            StopAsyncIteration: All sequences have ended.
            OverloadedError: It waited too long to be admitted.
            InternalError: The engine failed because of it, or its tokens may be misattributed.
            UnavailableError: The engine died, and cannot be restarted.
        """
        ...

    def end(self, index: int) -> None:
        """Cancel one sequence, of which nothing more is returned."""
        ...

    def fail(self, error: ApiError) -> None:
        """Raise an error in the reader, after the tokens so far."""
        ...


class GenerationEngine(Protocol):
    """Generates tokens, many sequences at once."""

    @property
    def status(self) -> GenerationStatus:
        """Return how the engine is doing now."""
        ...

    async def check_grammar(self, grammar: str) -> str:
        """Return why a grammar cannot be followed, a clause for the caller; "" where it can.

        Raises:
            UnavailableError: It cannot be checked now.
        """
        ...

    def check_queue(self, caller: Caller = ANONYMOUS) -> None:
        """Refuse early what `generate` would refuse: nobody reads its prompt in vain.

        Raises:
            OverloadedError: Too many are waiting already.
        """
        ...

    def generate(
        self, requests: Sequence[GenerationRequest], caller: Caller = ANONYMOUS
    ) -> GenerationStream:
        """Start generating the sequences of `requests`, when it is their turn.

        Raises:
            OverloadedError: Too many are waiting already.
            UnavailableError: There is no engine now.
        """
        ...
