"""Browsers may call, and read what they get."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.rest.envoy.paths import CHAT
from tests.rest.envoy.scripted import MAX_BYTES, WITH_ERROR

if TYPE_CHECKING:
    from tests.rest.envoy.edge import Edge


@pytest.mark.parametrize("path", [CHAT, "/v1/models", "/v3/models/a%2Fb", "/nope"])
async def test_a_browsers_preflight_is_allowed(gate: Edge, path: str) -> None:
    answer = await gate.http.options(
        path,
        headers={
            "origin": "https://app.example",
            "access-control-request-method": "POST",
            "access-control-request-headers": "authorization,content-type,x-stainless-os",
        },
    )
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == "https://app.example"
    assert "POST" in answer.headers["access-control-allow-methods"]
    allowed = answer.headers["access-control-allow-headers"].replace(" ", "").split(",")
    assert allowed == ["authorization", "content-type", "x-stainless-os"]


@pytest.mark.parametrize(
    "script",
    [{}, {"stream": True}, {"abort": "NOT_FOUND", "trailers": list(map(list, WITH_ERROR))}],
)
async def test_a_browser_may_read_answers_and_errors(gate: Edge, script: dict[str, Any]) -> None:
    answer = await gate.post(script, headers={"origin": "https://app.example"})
    assert answer.headers["access-control-allow-origin"] == "https://app.example"
    exposed = answer.headers["access-control-expose-headers"].replace(" ", "").split(",")
    hints = {"x-ignored-parameters", "x-unenforced-schemas"}
    assert {"x-request-id", "request-id", "retry-after", *hints} <= set(exposed)


async def test_a_browser_may_ask_for_headers_alone(gate: Edge) -> None:
    answer = await gate.http.head("/v3/models", headers={"origin": "https://app.example"})
    assert answer.headers["access-control-allow-origin"] == "https://app.example"


async def test_a_browser_may_read_envoys_errors(gate: Edge) -> None:
    for path in ("/nope", "/health"):
        answer = await gate.http.delete(path, headers={"origin": "https://app.example"})
        assert answer.headers["access-control-allow-origin"] == "*"
        assert answer.headers["access-control-expose-headers"] == "x-request-id, request-id"
    encoded = await gate.http.post(
        CHAT, headers={"origin": "https://app.example", "content-encoding": "gzip"}
    )
    assert encoded.status_code == 415
    assert encoded.headers["access-control-allow-origin"] == "*"
    too_large = await gate.http.post(
        CHAT, content=b"x" * (MAX_BYTES + 1), headers={"origin": "https://app.example"}
    )
    assert too_large.status_code == 413
    assert too_large.headers["access-control-allow-origin"] == "https://app.example"


@pytest.mark.parametrize(
    ("path", "allow"), [(CHAT, "POST, OPTIONS"), ("/health", "GET, HEAD, OPTIONS")]
)
async def test_options_names_the_methods(gate: Edge, path: str, allow: str) -> None:
    answer = await gate.http.options(path)
    assert answer.status_code == 204
    assert answer.headers["allow"] == allow
    assert answer.content == b""
