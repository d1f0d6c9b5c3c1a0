"""Who makes a request, and what an API key lets its holder do."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterable

# Of a key's digest: enough to tell keys apart.
SHOWN_DIGITS = 8


@dataclass(frozen=True, slots=True)
class Identity:
    """Who makes a request: found once, when it arrives.

    Attributes:
        client: A name for them, by which waiting requests take turns: of their key, or their
            address.
        name: Of their key, to which belongs what they leave behind; "" for who is known by an
            address alone, which is nobody's for long.
    """

    client: str = ""
    name: str = ""


# Of work that nobody asked for, such as what the server does by itself.
NOBODY = Identity()


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key, without itself.

    Attributes:
        name: What it is called in logs, metrics and traces.
        digests: SHA-256 of what its holder sends: several, while one is replaced by another.
    """

    name: str
    digests: tuple[bytes, ...]

    @classmethod
    def unnamed(cls, key: str) -> Self:
        """Return a key that is called by the first digits of its SHA-256."""
        found = digest(key)
        return cls(found.hex()[:SHOWN_DIGITS], (found,))


def find_key(keys: Iterable[ApiKey], sent: str) -> ApiKey | None:
    """Return the key that a caller sent; None if there is none of these."""
    # Digests are compared, and all of them: the time tells nothing about any key.
    given = digest(sent)
    found = None
    for key in keys:
        for known in key.digests:
            if hmac.compare_digest(given, known):
                found = key
    return found


def digest(key: str) -> bytes:
    """Return the hash that stands for a key where the key itself must not appear."""
    return hashlib.sha256(key.encode()).digest()
