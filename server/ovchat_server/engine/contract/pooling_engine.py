"""An engine that makes vectors of texts, as the server sees it."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

from ovchat_server.engine.contract.engine import ANONYMOUS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.engine.contract.engine import Caller, EngineStatus
    from ovchat_server.engine.contract.times import RequestTimes

TOKEN_BYTES = 4


@dataclass(frozen=True, slots=True)
class TokenizedText:
    """A text, or a pair of texts, as tokens.

    Attributes:
        tokens: At least one, each as 4 bytes, little-endian.
        second: Where in the tokens the second text begins; 0: there is none.
    """

    tokens: bytes
    second: int = 0

    @classmethod
    def of(cls, tokens: Sequence[int], second: int = 0) -> Self:
        """Pack tokens. Of a million this takes a while, so it is not for the event loop."""
        return cls(struct.pack(f"<{len(tokens)}i", *tokens), second)

    @property
    def count(self) -> int:
        """The number of tokens."""
        return len(self.tokens) // TOKEN_BYTES


class PoolingEngine(Protocol):
    """Makes a vector of each text, in a process of its own."""

    @property
    def status(self) -> EngineStatus:
        """Return how it is doing now."""
        ...

    @property
    def size(self) -> int:
        """Return how many numbers a vector has; 0 until it was loaded for the first time."""
        ...

    def check_queue(self, caller: Caller = ANONYMOUS) -> None:
        """Refuse a request before it is tokenized, if the queue is full.

        Raises:
            OverloadedError: The queue is full.
            UnavailableError: There is no engine now.
        """
        ...

    async def pool(
        self,
        texts: Sequence[TokenizedText],
        caller: Caller = ANONYMOUS,
        *,
        normalize: bool = False,
        dimensions: int = 0,
        times: RequestTimes | None = None,
    ) -> Sequence[bytes]:
        """Return the vector of each text. Who is cancelled while waiting gives them up.

        Args:
            texts: At least one.
            caller: Who asks.
            normalize: Whether vectors have length 1.
            dimensions: How many numbers of a vector are kept, before that; 0: all.
            times: Takes down what happens when; None: nobody asks.

        Returns:
            The vectors in the order of the texts, each number as a float32, little-endian.

        Raises:
            OverloadedError: Too many are waiting already.
            UnavailableError: There is no engine now.
            InternalError: The engine failed on the texts.
        """
        ...
