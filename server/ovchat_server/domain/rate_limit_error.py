"""The error of a caller that has used up what its key may use."""

from __future__ import annotations

import math
from typing import Self

from ovchat_server.domain.errors import OverloadedError


class RateLimitError(OverloadedError):
    """The caller asks for more than its key may have: it should come back later."""

    @classmethod
    def per_minute(cls, key: str, unit: str, limit: int, wait: float) -> Self:
        """Return the error for requests or tokens of a minute, of which there are some in `wait`.

        Args:
            key: The name of the key.
            unit: "requests" or "tokens".
            limit: How many it may have.
            wait: Seconds.
        """
        message = (
            f"Rate limit reached: the key {key!r} may use {limit} {unit} per minute. "
            f"Try again in {math.ceil(wait)} s."
        )
        return cls(message, retry_after=wait)

    @classmethod
    def at_once(cls, key: str, limit: int, wait: float) -> Self:
        """Return the error for requests at once, of which one may end within `wait` seconds."""
        message = (
            f"Rate limit reached: the key {key!r} may have {limit} requests at once. "
            "Try again when one of them has ended."
        )
        return cls(message, retry_after=wait)
