"""Asking a provider, whatever it speaks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from contextlib import AbstractAsyncContextManager

    from ovchat_server.domain.chat import ChatRequest
    from ovchat_server.domain.completion import ChunkChoice, Usage
    from ovchat_server.domain.errors import ApiError
    from ovchat_server.domain.text import TextRequest


class Exchange(Protocol):
    """A request, written as the provider reads it, and its answer: sent once, read once."""

    @property
    def ignored(self) -> Sequence[str]:
        """The names of parameters that are left out, because they cannot change the answer."""
        ...

    @property
    def usage(self) -> Usage:
        """The tokens so far; 0 where the provider has not told yet."""
        ...

    @property
    def complete(self) -> bool:
        """Whether all choices have ended; an answer that just stops was cut off."""
        ...

    def sent(self) -> AbstractAsyncContextManager[None]:
        """Send it, until the provider begins to answer; on exit what is left is given up.

        Raises:
            ApiError: The provider cannot be reached, or answers with an error.
        """
        ...

    def chunks(self) -> AsyncGenerator[ChunkChoice, None]:
        """Yield the chunks of the answer, of a request that was sent.

        A choice's first chunk has the role. Chunks of a choice end with one that has its finish
        reason.

        Raises:
            ApiError: The answer broke off.
            BadAnswerError: It is no such answer.
            ReportedError: It is an error.
        """
        ...

    def fail(self, error: ApiError) -> None:
        """Have whoever reads the answer get an error."""
        ...


class ProviderClient(Protocol):
    """Asks one provider."""

    @property
    def name(self) -> str:
        """The provider's name."""
        ...

    def exchange(self, request: ChatRequest | TextRequest, model: str) -> Exchange:
        """Write a request. It may take a while, and need not run in the event loop.

        Args:
            request: The request.
            model: The id that the provider knows the model by.

        Raises:
            InvalidRequestError: The API cannot express it; every such parameter is named.
        """
        ...

    async def model_ids(self) -> Sequence[str]:
        """Ask which models it has.

        Raises:
            ApiError: It cannot be reached, or answers with an error.
            BadAnswerError: Its answer is no list of models.
        """
        ...

    async def close(self) -> None:
        """Close all connections. What is under way fails."""
        ...
