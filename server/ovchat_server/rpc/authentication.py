"""Authentication by API keys, sent as OpenAI's, Anthropic's or Azure's SDKs send them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.domain.errors import AuthenticationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ovchat_server.domain.identity import ApiKey, KeyRing

# Azure's is the second.
KEY_HEADERS = ("x-api-key", "api-key")


def authenticated(metadata: Mapping[str, str | bytes], keys: KeyRing) -> ApiKey:
    """Return the key that a call was sent with, given its headers.

    Raises:
        AuthenticationError: It is none of `keys`.
    """
    sent = _sent_key(metadata)
    if not sent:
        raise AuthenticationError(
            "An API key is required. Send it in the header 'authorization: Bearer <key>', "
            "'x-api-key: <key>' or 'api-key: <key>'."
        )
    found = keys.find(sent)
    if found is None:
        raise AuthenticationError("The API key is not valid for this server.")
    return found


def _sent_key(metadata: Mapping[str, str | bytes]) -> str:
    """Return the API key that a call was sent with; "" if there is none.

    A bearer token counts before a key in another header: some clients send both.
    """
    scheme, _, key = str(metadata.get("authorization", "")).partition(" ")
    sent = [key] if scheme.lower() == "bearer" else []
    sent += [str(metadata.get(name, "")) for name in KEY_HEADERS]
    return next(filter(None, map(str.strip, sent)), "")
