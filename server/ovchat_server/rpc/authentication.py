"""Who may call: API keys, as OpenAI's SDKs send them."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
from typing import TYPE_CHECKING

from ovchat_server.api.errors import AuthenticationError
from ovchat_server.rpc.probes import Exempt, exempt

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection

    from ovchat_server.rpc.wrapping import Around, Context


def authentication(keys: Collection[str]) -> Around:
    """Return what lets only callers with one of `keys` pass; everybody where there are none."""
    digests = [_digest(key) for key in keys]

    @contextlib.asynccontextmanager
    async def authenticate(context: Context, method: str) -> AsyncIterator[None]:
        if digests and not exempt(method, Exempt.KEY):
            _check(dict(context.invocation_metadata() or ()).get("authorization"), digests)
        yield

    return authenticate


def _check(header: str | bytes | None, digests: list[bytes]) -> None:
    scheme, _, key = str(header or "").partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        raise AuthenticationError(
            "An API key is required: send the header 'authorization: Bearer <key>'."
        )
    # Of digests: how long it takes must not tell how much of a key was right.
    given = _digest(key.strip())
    if not any(hmac.compare_digest(given, digest) for digest in digests):
        raise AuthenticationError("The API key is not one of this server's.")


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()
