"""API keys as settings have them."""

from __future__ import annotations

from ovchat_server.domain.identity import ApiKey


def api_keys(*keys: str) -> tuple[ApiKey, ...]:
    return tuple(map(ApiKey.unnamed, keys))
