"""Authentication by API keys, sent as OpenAI's or Anthropic's SDKs send them."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
from typing import TYPE_CHECKING

from ovchat_server.domain.errors import AuthenticationError
from ovchat_server.rpc.probes import Exempt, exempt

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection

    from ovchat_server.rpc.middleware import Context, Middleware


def authentication(keys: Collection[str]) -> Middleware:
    """Return middleware that refuses callers without one of `keys`; without keys, nobody."""
    digests = [digest(key) for key in keys]

    @contextlib.asynccontextmanager
    async def authenticate(context: Context, method: str) -> AsyncIterator[None]:
        if digests and not exempt(method, Exempt.KEY):
            _check(sent_key(context), digests)
        yield

    return authenticate


def sent_key(context: Context) -> str:
    """Return the API key that a call was sent with; "" if there is none.

    A bearer token counts before a key in `x-api-key`: some clients send both.
    """
    metadata = dict(context.invocation_metadata() or ())
    scheme, _, key = str(metadata.get("authorization", "")).partition(" ")
    bearer = key.strip() if scheme.lower() == "bearer" else ""
    return bearer or str(metadata.get("x-api-key", "")).strip()


def digest(key: str) -> bytes:
    """Return the hash that stands for a key where the key itself must not appear."""
    return hashlib.sha256(key.encode()).digest()


def _check(key: str, digests: list[bytes]) -> None:
    if not key:
        raise AuthenticationError(
            "An API key is required. Send it in the header 'authorization: Bearer <key>' or "
            "'x-api-key: <key>'."
        )
    # Compare digests, so that the time it takes does not tell how much of a key was right.
    given = digest(key)
    if not any(hmac.compare_digest(given, known) for known in digests):
        raise AuthenticationError("The API key is not valid for this server.")
