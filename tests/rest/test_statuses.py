"""Statuses of requests that Envoy and the server judge together."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import httpx

CHAT = "/v3/chat/completions"
BODY = json.dumps(
    {"model": "successor", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}
).encode()


@pytest.mark.parametrize("path", [CHAT, "/ovchat/v1/chat:create"])
async def test_a_compressed_body_is_unsupported(http: httpx.AsyncClient, path: str) -> None:
    headers = {"content-type": "application/json", "content-encoding": "gzip"}

    response = await http.post(path, content=gzip.compress(BODY), headers=headers)

    assert response.status_code == 415
    assert "content-encoding gzip" in response.json()["error"]["message"]


async def test_headers_within_envoys_limit_are_within_the_servers(http: httpx.AsyncClient) -> None:
    # Such as cookies, and tokens that list what their owner may do.
    headers = {"authorization": "Bearer " + "x" * 59_000}

    # A server enforces its limit from a connection's second request on.
    for _ in range(5):
        response = await http.get("/v3/models", headers=headers)
        assert response.status_code == 200
