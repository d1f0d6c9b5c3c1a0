"""Who makes a request, and what an API key lets its holder do."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterable

# Of a key's digest: enough to tell keys apart.
SHOWN_DIGITS = 8


@dataclass(frozen=True, slots=True)
class KeyRules:
    """What the holder of a key may do; None: as much as anybody.

    Attributes:
        models: The ids of the models that they may use, where * stands for anything.
        requests_per_minute: Requests to models that may begin within any minute.
        tokens_per_minute: Tokens of prompts and answers, likewise. They are known at the end of an
            answer: what is too much is paid for by waiting.
        concurrent_requests: Requests to models at once.
        priority: The lowest `priority` that counts beside requests of others.
    """

    models: tuple[str, ...] | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    concurrent_requests: int | None = None
    priority: int = 0

    @property
    def limit_use(self) -> bool:
        """Whether there is a limit on requests or tokens."""
        limits = (self.requests_per_minute, self.tokens_per_minute, self.concurrent_requests)
        return limits != (None, None, None)

    def allow(self, *identifiers: str) -> bool:
        """Return whether they may use a model, which has these ids."""
        return self.models is None or any(
            fnmatchcase(identifier, pattern)
            for identifier in identifiers
            for pattern in self.models
        )


NO_RULES = KeyRules()


@dataclass(frozen=True, slots=True)
class Identity:
    """Who makes a request: found once, when it arrives.

    Attributes:
        client: A name for them, by which waiting requests take turns: of their key, or their
            address.
        name: Of their key, to which belongs what they leave behind; "" for who is known by an
            address alone, which is nobody's for long.
        rules: What they may do.
    """

    client: str = ""
    name: str = ""
    rules: KeyRules = NO_RULES


# Of work that nobody asked for, such as what the server does by itself.
NOBODY = Identity()


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key, without itself.

    Attributes:
        name: What it is called in logs, metrics and traces.
        digests: SHA-256 of what its holder sends: several, while one is replaced by another.
        rules: What its holder may do.
    """

    name: str
    digests: tuple[bytes, ...]
    rules: KeyRules = NO_RULES

    @classmethod
    def unnamed(cls, digests: tuple[bytes, ...]) -> Self:
        """Return a key that is called by the first digits of its SHA-256."""
        return cls(digests[0].hex()[:SHOWN_DIGITS], digests)


class KeyRing:
    """The keys of those who may call. They may be replaced while it is used."""

    def __init__(self, keys: Iterable[ApiKey] = ()) -> None:
        """Accept `keys`; without any, everybody may call."""
        self.keys = tuple(keys)
        self.required = bool(self.keys)

    def find(self, sent: str) -> ApiKey | None:
        """Return the key that a caller sent; None if there is none of these."""
        # Digests are compared, and all of them: the time tells nothing about any key.
        given = digest(sent)
        found = None
        for key in self.keys:
            for known in key.digests:
                if hmac.compare_digest(given, known):
                    found = key
        return found


def digest(key: str) -> bytes:
    """Return the hash that stands for a key where the key itself must not appear."""
    return hashlib.sha256(key.encode()).digest()
