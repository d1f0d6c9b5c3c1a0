"""Which paths and methods there are, and what the others get."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from google.api import annotations_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from ovchat_server.launch.envoy_config import EnvoyFiles
from tests.rest.envoy.edge import assert_error, body_of
from tests.rest.envoy.paths import CHAT, GET_PATHS, POST_PATHS, SCRIPTED_GET_PATHS

if TYPE_CHECKING:
    from tests.rest.envoy.edge import Edge


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/v3",
        "/v3/chat",
        "/v3/chat/completions/",
        "/v4/models",
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


def test_every_binding_of_the_contract_is_among_the_paths() -> None:
    contract = FileDescriptorSet.FromString(EnvoyFiles.locate().descriptor.read_bytes())
    methods = (method for f in contract.file for service in f.service for method in service.method)
    rules = [method.options.Extensions[annotations_pb2.http] for method in methods]
    rules += [extra for rule in rules for extra in rule.additional_bindings]
    assert {rule.post for rule in rules if rule.post} == set(POST_PATHS)
    assert {rule.get.replace("{id=**}", "demo") for rule in rules if rule.get} == set(GET_PATHS)


@pytest.mark.parametrize("path", POST_PATHS)
@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "PURGE"])
async def test_a_wrong_method_on_a_post_path_is_not_allowed(
    gate: Edge, path: str, method: str
) -> None:
    before = len(gate.seen.metadata)
    answer = await gate.http.request(method, path)
    error = assert_error(answer, 405, "method_not_allowed")
    assert method in error["message"]
    assert answer.headers["allow"] == "POST, OPTIONS"
    assert len(gate.seen.metadata) == before


@pytest.mark.parametrize("path", [*GET_PATHS, "/v1/models/org%2Fmodel?x=1"])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_a_wrong_method_on_a_get_path_is_not_allowed(
    gate: Edge, path: str, method: str
) -> None:
    answer = await gate.http.request(method, path)
    assert_error(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == "GET, HEAD, OPTIONS"


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
