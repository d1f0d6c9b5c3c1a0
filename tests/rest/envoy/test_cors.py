"""Pages in browsers may call, and read what they get, if their origin is allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.rest.envoy.edge import Edge, edge, open_to
from tests.rest.envoy.paths import CHAT
from tests.rest.envoy.scripted import MAX_BYTES, WITH_ERROR

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx

ORIGIN = "https://app.example"
ORIGINS = [ORIGIN, "http://[::1]:8080"]
# None of them is `ORIGIN`.
STRANGERS = [
    "https://evil.example",
    "https://app.example.evil",
    "https://appxexample",
    "http://app.example",
    "https://app.example:8443",
    "https://sub.app.example",
    "null",
]
ASKED = {
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization,content-type,x-stainless-os",
}

JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
async def listed(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Edge]:
    async with edge(tmp_path_factory.mktemp("listed"), open_to(*ORIGINS)) as running:
        yield running


def of_cors(answer: httpx.Response) -> list[str]:
    return [name for name in answer.headers if name.startswith("access-control-")]


def exposed_by(answer: httpx.Response) -> set[str]:
    return set(answer.headers["access-control-expose-headers"].replace(" ", "").split(","))


async def answers(gate: Edge, origin: str) -> list[httpx.Response]:
    """One of each kind: of the server, whole, streamed and refused, and of Envoy itself."""
    headers = {"origin": origin}
    failing = {"abort": "NOT_FOUND", "trailers": [list(each) for each in WITH_ERROR]}
    return [
        await gate.http.options("/v1/models", headers=headers | ASKED),
        await gate.http.options("/nope", headers=headers | ASKED),
        await gate.post({}, headers=headers),
        await gate.post({"stream": True}, headers=headers),
        await gate.post(failing, headers=headers),
        await gate.http.head("/v3/models", headers=headers),
        await gate.http.delete("/nope", headers=headers),
        await gate.http.delete("/health", headers=headers),
        await gate.http.post(CHAT, headers=headers | {"content-encoding": "gzip"}),
        await gate.http.post(CHAT, content=b"x" * (MAX_BYTES + 1), headers=headers | JSON),
    ]


async def test_by_default_no_answer_has_a_header_of_cors(gate: Edge) -> None:
    for answer in await answers(gate, ORIGIN):
        assert of_cors(answer) == [], answer.request


@pytest.mark.parametrize("origin", STRANGERS)
async def test_an_origin_that_is_not_listed_gets_no_header_of_cors(
    listed: Edge, origin: str
) -> None:
    for answer in await answers(listed, origin):
        assert of_cors(answer) == [], answer.request


async def test_without_an_origin_there_is_no_header_of_cors(listed: Edge) -> None:
    for path in ("/v3/models", "/nope"):
        assert of_cors(await listed.http.get(path)) == []


@pytest.mark.parametrize("origin", ORIGINS)
async def test_a_page_of_a_listed_origin_may_read_every_answer(listed: Edge, origin: str) -> None:
    for answer in await answers(listed, origin):
        assert answer.headers.get_list("access-control-allow-origin") == [origin], answer.request
        assert {"x-request-id", "request-id"} <= exposed_by(answer)


async def test_a_page_may_read_the_hints_of_an_answer(listed: Edge) -> None:
    answer = await listed.post({"stream": True}, headers={"origin": ORIGIN})
    hints = {"retry-after", "x-ignored-parameters", "x-unenforced-schemas", "grpc-status"}
    assert hints <= exposed_by(answer)


@pytest.mark.parametrize("path", [CHAT, "/v1/models", "/v3/models/a%2Fb", "/nope"])
async def test_a_preflight_of_a_listed_origin_is_allowed(listed: Edge, path: str) -> None:
    answer = await listed.http.options(path, headers={"origin": ORIGIN, **ASKED})
    assert answer.status_code == 200
    assert "POST" in answer.headers["access-control-allow-methods"]
    allowed = answer.headers["access-control-allow-headers"].replace(" ", "").split(",")
    assert allowed == ["authorization", "content-type", "x-stainless-os"]


async def test_with_an_asterisk_every_origin_is_allowed(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    async with edge(tmp_path_factory.mktemp("any"), open_to("*")) as gate:
        for answer in await answers(gate, "https://evil.example"):
            assert answer.headers["access-control-allow-origin"] == "https://evil.example"


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", None])
async def test_what_needs_no_preflight_is_not_served(gate: Edge, kind: str | None) -> None:
    # Such a request a page may send to anybody, whatever is allowed.
    headers: dict[str, Any] = {"origin": ORIGIN} | ({"content-type": kind} if kind else {})
    before = len(gate.seen.bodies)
    answer = await gate.http.post(CHAT, content=b"{}", headers=headers)
    assert answer.status_code == 415
    assert len(gate.seen.bodies) == before


@pytest.mark.parametrize(
    ("path", "allow"), [(CHAT, "POST, OPTIONS"), ("/health", "GET, HEAD, OPTIONS")]
)
async def test_options_names_the_methods(gate: Edge, path: str, allow: str) -> None:
    answer = await gate.http.options(path)
    assert answer.status_code == 204
    assert answer.headers["allow"] == allow
    assert answer.content == b""
