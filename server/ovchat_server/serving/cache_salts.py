"""Whose prompts share what the prefix cache has: how long an answer takes would tell of others'."""

from __future__ import annotations

import hashlib
import secrets
from typing import Final

from ovchat_server.engine.contract.prompt import CACHE_SALTS, CALLERS_SALTS

_BYTES: Final = 8


class CacheSalts:
    """Makes the salts of prompts, of which nobody can know another's."""

    def __init__(self) -> None:
        """Make a secret: or whoever knows a caller's name could look for a salt like theirs."""
        self._secret = secrets.token_bytes(16)

    def salt(self, name: str, given: str | None) -> int:
        """Return the salt for the prompts of a caller, see Prompt.

        Args:
            name: That of the caller's key; "" for those without one, who share the cache.
            given: What the request itself says (vLLM's `cache_salt`).
        """
        if not name and given is None:
            return 0
        # No name has such a character.
        text = f"{name}\0{given}" if given is not None else name
        found = hashlib.blake2b(text.encode(), key=self._secret, digest_size=_BYTES).digest()
        return CALLERS_SALTS + int.from_bytes(found) % (CACHE_SALTS - CALLERS_SALTS)
