"""API keys as settings have them."""

from __future__ import annotations

from ovchat_server.domain.identity import ApiKey, digest


def api_keys(*keys: str) -> tuple[ApiKey, ...]:
    return tuple(ApiKey.unnamed((digest(key),)) for key in keys)
