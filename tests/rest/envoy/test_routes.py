"""Which paths and methods there are, and what the others get."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from ovchat_server.launch.envoy_config import EnvoyFiles
from ovchat_server.provider_settings import ProviderName
from protos.routes import PREFIX, written
from tests.rest.envoy.edge import assert_error, body_of, request_for
from tests.rest.envoy.paths import (
    CHAT,
    CONTRACT,
    DOORS,
    GET_DELETE_PATHS,
    GET_PATHS,
    MESSAGES_PATHS,
    POST_PATHS,
    SCRIPTED_GET_PATHS,
)
from tests.rest.envoy.scripted import MAX_BYTES

if TYPE_CHECKING:
    from tests.rest.envoy.edge import Edge


@pytest.mark.parametrize(
    "path",
    [
        "/v3",
        "/v3/chat",
        "/v3/chat/completions/x/",
        "/v4/models",
        # Neither versions nor services are providers, whose paths are below v1.
        "/v1/v1/models",
        "/v2/v1/chat/completions",
        "/ovchat.v1.ChatService/v1/models",
        "/Ollama/v1/chat/completions",
        "/ollama/v3/chat/completions",
        "/org/ollama/v1/models",
        '/a"b\\n<script>',
        "/ovchat.v1.ChatService/CreateChatCompletion",
        "/metrics",
        "/../etc",
    ],
)
async def test_an_unknown_path_is_not_found(gate: Edge, path: str) -> None:
    for method in ("GET", "POST"):
        assert_error(await gate.http.request(method, path), 404, "not_found")


@pytest.mark.parametrize("kind", ["application/grpc-web", "application/grpc-web-text+proto"])
async def test_grpc_for_browsers_is_told_of_an_unknown_path_as_rest_is(
    gate: Edge, kind: str
) -> None:
    answer = await gate.http.post("/no.Such/Method", headers={"content-type": kind})
    assert_error(answer, 404, "not_found")


async def test_a_wrong_request_is_refused_before_its_body_has_arrived(gate: Edge) -> None:
    # Such as the Connect protocol's streams, whose body ends only after the answer.
    for target in (b"POST /grpc.reflection.v1.ServerReflection/Info", b"PUT /v3/models"):
        answer = await gate.raw(
            target + b" HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n"
        )
        assert answer.startswith((b"HTTP/1.1 404 ", b"HTTP/1.1 405 ")), answer


async def test_a_path_is_normalized_before_it_is_routed(gate: Edge) -> None:
    for path in (b"/v3/models/../../nope", b"/v3/models/%2e%2e/%2e%2e/nope"):
        answer = await gate.raw(
            b"GET " + path + b" HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
        )
        assert answer.startswith(b"HTTP/1.1 404 "), answer
        assert "Unknown path /nope" in body_of(answer)["message"]


async def test_not_found_names_the_path(gate: Edge) -> None:
    error = assert_error(await gate.http.get('/nope"?q=1'), 404, "not_found")
    assert "/nope" in error["message"]
    assert "/v3/chat/completions" in error["message"]


def test_every_path_of_the_contract_has_its_route() -> None:
    config = EnvoyFiles.locate().config.read_text()
    assert written(config, CONTRACT) == config, "run `make gen`"


@pytest.mark.parametrize(
    "name", ["a", "v", "v1", "v10", "v1a", "v-1", "vllm", "0", "a-b_c", "_", "-a", "A", "a.b", ""]
)
def test_a_provider_that_can_be_configured_has_a_path(name: str) -> None:
    [meta] = ProviderName.__metadata__
    assert bool(re.fullmatch(PREFIX, name)) == bool(re.search(meta.pattern, name))


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/", "Chat completions are at POST /v3/chat/completions"),
        ("/v1/nope", "POST /v1/chat/completions, models at GET /v1/models."),
        ("/v3/nope", "POST /v3/chat/completions, models at GET /v3/models."),
        ("/embeddings", "is served as /v3/embeddings and /v1/embeddings."),
        ("/embed", "not served here. Embeddings are at POST /v3/embeddings."),
        ("/v2/embed", "not served here. Embeddings are at POST /v3/embeddings."),
        ("/v1/pooling", "not served here. Embeddings are at POST /v1/embeddings."),
        ("/api/embeddings", "not served here. Embeddings are at POST /v3/embeddings."),
        ("/v1/reranking", "not served here. Documents are ranked at POST /v1/rerank."),
        ("/v1/moderations", "not served here. Chat completions are at POST /v1/chat/completions."),
        ("/v1/responses/resp_1/cancel", "not served here. Responses are at POST /v1/responses."),
        ("/v1/responses/compact", "not done here. Responses are at POST /v1/responses."),
        ("/responses", "is served as /v3/responses and /v1/responses."),
        ("/messages/count_tokens", "as /v3/messages/count_tokens and /v1/messages/count_tokens."),
        ("/api/chat", "Ollama's, whose API is not served here. Chat completions are at POST /v3/"),
        ("/api/chat/", "Ollama's, whose API is not served here. Chat completions are at POST /v3/"),
        ("/api/generate", "Text completions are at POST /v3/completions."),
        ("/chat/completions", "is served as /v3/chat/completions and /v1/chat/completions."),
        ("/models/", "is served as /v3/models and /v1/models."),
        ("/v2/chat/completions", "is served as /v3/chat/completions and /v1/chat/completions."),
        ("/v1/v1/chat/completions", "the version twice. It is /v1/chat/completions:"),
        ("/v1/v2/rerank", "the version twice. It is /v2/rerank: Cohere's client"),
        ("/v1/chat/completions/models", "The client's base URL has to end with /v1."),
        ("/v2/models/demo/load", "Models are named when the server is started."),
        ("/metrics", "metrics, which have a port of their own. --metrics-port sets it, and GET"),
        ("/openai/deployments/demo/chat/completions", "completions are at POST /v3/chat/"),
        ("/ollama/v3/completions", "Chat completions are at POST /{provider}/v1/chat/completions."),
        ("/v2/models/demo/infer", "Chat completions are at POST /v3/chat/completions."),
        ("/ovchat.v1.ChatService/CreateChatCompletion", "with gRPC, on this port as well."),
    ],
)
async def test_not_found_speaks_of_the_callers_version_and_of_what_works_here(
    gate: Edge, path: str, says: str
) -> None:
    error = assert_error(await gate.http.post(path, json={}), 404, "not_found")
    assert says in error["message"]
    assert path in error["message"]


def test_what_is_served_is_not_said_to_be_missing() -> None:
    source = EnvoyFiles.locate().unknown_paths.read_text()
    patterns = re.findall(r'^  \{ "\^(/[a-z_/]+)', source, re.MULTILINE)
    assert len(patterns) > 30
    served = {re.sub(r"^/v\d", "", path) for path in (*POST_PATHS, *MESSAGES_PATHS, *GET_PATHS)}
    assert not served.intersection(patterns)


@pytest.mark.parametrize("path", [*DOORS, *SCRIPTED_GET_PATHS])
async def test_a_slash_at_the_end_of_a_path_changes_nothing(gate: Edge, path: str) -> None:
    for suffix in ("/", "//", "/?q=a/"):
        if path in DOORS:
            answer = await gate.http.post(path + suffix, json=request_for(path, {}))
        else:
            answer = await gate.http.get(path + suffix)
        assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("path", [*POST_PATHS, *GET_PATHS, *GET_DELETE_PATHS])
async def test_every_path_is_known_with_a_slash_at_its_end(gate: Edge, path: str) -> None:
    assert (await gate.http.put(path + "/")).status_code == 405
    assert (await gate.http.options(path + "/")).status_code == 204


async def test_a_body_is_bounded_with_a_slash_at_the_end_of_its_path_too(gate: Edge) -> None:
    answer = await gate.http.post(
        CHAT + "/", content=b"x" * (MAX_BYTES + 1), headers={"content-type": "application/json"}
    )
    assert_error(answer, 413, "request_too_large")


@pytest.mark.parametrize("path", POST_PATHS)
@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "PURGE"])
async def test_a_wrong_method_on_a_post_path_is_not_allowed(
    gate: Edge, path: str, method: str
) -> None:
    before = len(gate.seen.metadata)
    answer = await gate.http.request(method, path)
    error = assert_error(answer, 405, "method_not_allowed")
    assert error["message"] == (
        f"Method {method} is not allowed for {path}. Allowed are: POST, OPTIONS."
    )
    assert answer.headers["allow"] == "POST, OPTIONS"
    assert len(gate.seen.metadata) == before


@pytest.mark.parametrize("path", [*GET_PATHS, "/v1/models/org%2Fmodel?x=1"])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_a_wrong_method_on_a_get_path_is_not_allowed(
    gate: Edge, path: str, method: str
) -> None:
    answer = await gate.http.request(method, path)
    error = assert_error(answer, 405, "method_not_allowed")
    assert error["message"].endswith("Allowed are: GET, HEAD, OPTIONS.")
    assert answer.headers["allow"] == "GET, HEAD, OPTIONS"


@pytest.mark.parametrize("path", GET_DELETE_PATHS)
@pytest.mark.parametrize("method", ["POST", "PUT"])
async def test_what_can_be_got_and_deleted_allows_both(gate: Edge, path: str, method: str) -> None:
    answer = await gate.http.request(method, path)
    assert_error(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == "GET, HEAD, DELETE, OPTIONS"


@pytest.mark.parametrize("path", SCRIPTED_GET_PATHS)
async def test_head_answers_like_get_without_a_body(gate: Edge, path: str) -> None:
    answer = await gate.http.head(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.content == b""
    # The connection is still in step.
    assert (await gate.http.get(path)).status_code == 200


async def test_head_leaves_no_byte_behind_on_the_connection(gate: Edge) -> None:
    answer = await gate.raw(b"HEAD /v3/models HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"\r\n\r\n")
    assert answer.count(b"\r\n\r\n") == 1


async def test_head_of_what_is_not_there_is_not_found(gate: Edge) -> None:
    answer = await gate.raw(
        b"HEAD /v3/models/missing HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    )
    assert answer.startswith(b"HTTP/1.1 404 Not Found\r\n")
    assert answer.endswith(b"\r\n\r\n")
    assert answer.count(b"\r\n\r\n") == 1


async def test_head_on_a_post_path_is_not_allowed(gate: Edge) -> None:
    answer = await gate.http.head(CHAT)
    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST, OPTIONS"
    assert (await gate.http.get("/health")).status_code == 200
