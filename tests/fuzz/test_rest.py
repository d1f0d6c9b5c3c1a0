"""Random HTTP requests: none is a fault of the server, none stops it, none hangs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.effort import examples
from tests.fuzz.bodies import bodies
from tests.rest.envoy.paths import GET_PATHS, MESSAGES_PATHS, POST_PATHS

if TYPE_CHECKING:
    from tests.fuzz.conftest import Target

pytestmark = pytest.mark.slow

PATHS = {
    "chat": ("/v3/chat/completions", "/openvino/v1/chat/completions"),
    "text": ("/v3/completions", "/v1/completions"),
    "responses": ("/v3/responses", "/v1/responses"),
    "messages": ("/v3/messages", "/v1/messages", "/v1/messages/count_tokens"),
    "tokenize": ("/v3/tokenize", "/tokenize"),
    "detokenize": ("/v3/detokenize", "/detokenize"),
    "embeddings": ("/v3/embeddings", "/v1/embeddings"),
    "rerank": ("/v3/rerank", "/rerank"),
    "score": ("/v3/score", "/score"),
}
# The same objects as proto-JSON.
TYPED_PATHS = {
    "chat": ("/ovchat/v1/chat:create", "/ovchat/v1/chat:stream"),
    "text": ("/ovchat/v1/completion:create", "/ovchat/v1/completion:stream"),
    "tokenize": ("/ovchat/v1/tokenizer:tokenize",),
    "detokenize": ("/ovchat/v1/tokenizer:detokenize",),
    "embeddings": ("/ovchat/v1/embeddings",),
    "rerank": ("/ovchat/v1/rerank",),
    "score": ("/ovchat/v1/score",),
}
JSON = {"content-type": "application/json"}


def assert_no_fault(response: httpx.Response) -> None:
    """An answer, or an error of the caller's that says what is wrong."""
    assert response.status_code < 500, (response.status_code, response.text)
    if response.status_code >= 400:
        error = response.json()["error"]
        assert error["message"], response.text
        assert "Traceback" not in error["message"]
    elif response.headers["content-type"].startswith("text/event-stream"):
        # A response has the key in any case.
        told = response.text.replace('"error":null', "")
        assert '"error"' not in told, told[-1000:]
    else:
        json.loads(response.content)


@pytest.mark.parametrize(("endpoint", "paths"), [*PATHS.items(), *TYPED_PATHS.items()])
def test_bodies(target: Target, endpoint: str, paths: tuple[str, ...]) -> None:
    @examples(60)
    @given(body=bodies(endpoint), path=st.sampled_from(paths))
    def send(body: bytes, path: str) -> None:
        assert_no_fault(target.http.post(path, content=body, headers=JSON))

    send()


METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "BREW", "PRI")
SERVED_PATHS = [*POST_PATHS, *MESSAGES_PATHS, *GET_PATHS]
ODD_PATHS = st.one_of(
    st.sampled_from(SERVED_PATHS),
    st.builds(
        lambda path, rest: f"{path}{rest}",
        st.sampled_from([*SERVED_PATHS, "/", ""]),
        st.sampled_from(
            ["/", "//", "/..", "/%2e%2e", "%00", "%ff", "?", "?a=b&a=%", "/%E2%98%83", "*", ";x"]
        ),
    ),
    st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="#"), min_size=1),
)
NAMES = st.sampled_from(
    [
        "content-type",
        "content-encoding",
        "accept",
        "accept-encoding",
        "authorization",
        "grpc-timeout",
        "grpc-encoding",
        "te",
        "expect",
        "origin",
        "range",
        "traceparent",
        "x-envoy-original-path",
        "x-http-method-override",
        "x-ovchat-error",
        "x-request-id",
    ]
)
HEADER_VALUES = st.one_of(
    st.sampled_from(
        [
            "application/json",
            "application/json; charset=utf-16",
            "application/grpc",
            "application/grpc-web",
            "multipart/form-data",
            "gzip",
            "identity",
            "trailers",
            "100-continue",
            "1n",
            "99999999H",
            "-1S",
            "*",
            "null",
            "Bearer",
        ]
    ),
    st.binary(max_size=20).map(lambda data: bytes(byte for byte in data if byte > 31)),
)


def test_methods_paths_and_headers(target: Target) -> None:
    @examples(300)
    @given(
        method=st.sampled_from(METHODS),
        path=ODD_PATHS,
        headers=st.dictionaries(NAMES, HEADER_VALUES, max_size=4),
        body=st.one_of(st.none(), st.just(b""), bodies("chat")),
    )
    def send(method: str, path: str, headers: dict[str, str | bytes], body: bytes | None) -> None:
        encoded = {name: _bytes(value).strip() for name, value in headers.items()}
        url = httpx.URL(target.stack.url).copy_with(raw_path=b"/" + path.lstrip("/").encode())
        response = target.http.request(method, url, headers=list(encoded.items()), content=body)
        # What the caller's own deadline cut off is no fault; a transfer nobody knows is its own.
        assert response.status_code in {*range(200, 500), 501, 504}, response.text
        assert response.status_code != 504 or "grpc-timeout" in encoded, response.text

    send()


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode()
