"""Bodies that are not plain JSON are refused by their headers."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from tests.rest.envoy.edge import assert_error, body_of
from tests.rest.envoy.paths import CHAT, DOORS, POST_PATHS

if TYPE_CHECKING:
    from tests.rest.envoy.edge import Edge

JSON = {"content-type": "application/json"}


@pytest.mark.parametrize("path", POST_PATHS)
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "GZIP", "identity, gzip"])
async def test_a_compressed_body_is_unsupported(gate: Edge, path: str, encoding: str) -> None:
    before = len(gate.seen.metadata)
    answer = await gate.http.post(
        path, content=gzip.compress(b"{}"), headers={**JSON, "content-encoding": encoding}
    )
    error = assert_error(answer, 415, "unsupported_content_encoding")
    assert f"content-encoding {encoding}." in error["message"]
    assert "uncompressed" in error["message"]
    # What HTTP has for the encodings that would do.
    assert answer.headers["accept-encoding"] == "identity"
    assert len(gate.seen.metadata) == before


@pytest.mark.parametrize("path", DOORS)
@pytest.mark.parametrize("encoding", ["identity", "Identity", ""])
async def test_a_body_as_it_is_passes(gate: Edge, path: str, encoding: str) -> None:
    answer = await gate.http.post(
        path, content=b"{}", headers={**JSON, "content-encoding": encoding}
    )
    assert answer.status_code == 200


@pytest.mark.parametrize("path", POST_PATHS)
@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=application/json",
        "application/json-seq",
        "application/jsonp",
        "text/json",
        "application/grpc-web",
    ],
)
async def test_a_body_of_another_type_is_unsupported(gate: Edge, path: str, kind: str) -> None:
    before = len(gate.seen.metadata)
    answer = await gate.http.post(path, content=b"{}", headers={"content-type": kind})
    error = assert_error(answer, 415, "unsupported_media_type")
    assert "application/json" in error["message"]
    assert len(gate.seen.metadata) == before


@pytest.mark.parametrize("path", DOORS)
@pytest.mark.parametrize(
    "kind",
    [
        "",
        "application/json",
        "Application/JSON ; charset=utf-8",
        "application/json;charset=utf-8; x=y",
        "application/vnd.api+json",
    ],
)
async def test_json_passes_under_its_names(gate: Edge, path: str, kind: str) -> None:
    answer = await gate.http.post(path, content=b"{}", headers={"content-type": kind})
    assert answer.status_code == 200


@pytest.mark.parametrize("header", [b"content-encoding: gzip", b"content-type: text/plain"])
async def test_what_is_unsupported_is_not_awaited(gate: Edge, header: bytes) -> None:
    answer = await gate.raw(
        b"POST /v3/chat/completions HTTP/1.1\r\nhost: x\r\n"
        + header
        + b"\r\ncontent-length: 1000000\r\n\r\n{"
    )
    assert answer.startswith(b"HTTP/1.1 415 "), answer
    assert body_of(answer)["param"] is None


async def test_the_method_is_judged_before_the_body(gate: Edge) -> None:
    headers = {"content-encoding": "gzip", "content-type": "text/plain"}
    answer = await gate.http.put(CHAT, content=b"x", headers=headers)
    assert_error(answer, 405, "method_not_allowed")
    answer = await gate.http.post("/nope", content=b"x", headers=headers)
    assert_error(answer, 404, "not_found")
