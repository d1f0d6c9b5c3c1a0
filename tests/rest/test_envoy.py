"""What Envoy makes of requests and answers, seen from both sides of it.

A real Envoy with the real configuration stands before a server that answers as the request
tells it to, so that every line of envoy.yaml and errors.lua can be seen from the outside.
"""

# Servicers have gRPC's signatures and names, and tests flags as parameters.
# ruff: noqa: ARG002, FBT001, N802

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import grpc
import httpx
import pytest
from google.api import httpbody_pb2
from google.protobuf import any_pb2
from google.rpc import status_pb2
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2, reflection_pb2_grpc

from ovchat.v1 import (
    chat_pb2,
    chat_service_pb2_grpc,
    model_service_pb2,
    model_service_pb2_grpc,
    rest_service_pb2_grpc,
)
from ovchat_server.launch.child import Child
from ovchat_server.launch.envoy_config import EnvoyFiles, envoy_config, locate_envoy
from ovchat_server.launch.http import request as plain_request
from ovchat_server.launch.ports import free_port

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

pytestmark = pytest.mark.timeout(60)

CHAT = "/v3/chat/completions"
POST_PATHS = [CHAT, "/v1/chat/completions", "/ovchat/v1/chat:create", "/ovchat/v1/chat:stream"]
GET_PATHS = [
    "/v3/models",
    "/v1/models",
    "/ovchat/v1/models",
    "/v3/models/demo",
    "/v1/models/demo",
    "/ovchat/v1/models/demo",
    "/health",
    "/v2/health/live",
    "/v2/health/ready",
]
MAX_BYTES = 8 << 20
ERROR = {
    "error": {
        "message": 'no "such"\nmodel: \u00e9\U0001f600',
        "type": "invalid_request_error",
        "param": "model",
        "code": "model_not_found",
    }
}
WITH_ERROR = (("x-ovchat-error", json.dumps(ERROR)),)


# --- The scripted server ---


@dataclass
class Seen:
    """What reached the server."""

    metadata: list[dict[str, str]] = field(default_factory=list)
    bodies: list[httpbody_pb2.HttpBody] = field(default_factory=list)
    remaining: list[float | None] = field(default_factory=list)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    def note(self, context: Any) -> None:
        self.metadata.append({str(k): str(v) for k, v in context.invocation_metadata()})
        self.remaining.append(context.time_remaining())

    @property
    def last(self) -> dict[str, str]:
        return self.metadata[-1]


async def obey(script: dict[str, Any], context: Any) -> None:
    """Fail as `script` says: {"abort": "NOT_FOUND", "trailers": [[key, value]]}."""
    if "abort" in script:
        if script.get("initial"):
            await context.send_initial_metadata((("x-early", "1"),))
        trailers = [(key, value) for key, value in script.get("trailers", ())]
        if "rich" in script:
            trailers.append(("grpc-status-details-bin", rich_status(script["rich"])))
        code = grpc.StatusCode[script["abort"]]
        await context.abort(code, script.get("details", "details"), tuple(trailers))


def rich_status(type_url: str) -> bytes:
    """A google.rpc.Status with a detail of the given type."""
    detail = any_pb2.Any(type_url=type_url, value=b"")
    status = status_pb2.Status(code=5, message="rich", details=[detail])
    return bytes(status.SerializeToString())


class Rest(rest_service_pb2_grpc.RestServiceServicer):
    def __init__(self, seen: Seen) -> None:
        self.seen = seen
        self.ready = True

    async def CreateChatCompletion(self, request: Any, context: Any) -> AsyncIterator[Any]:
        self.seen.note(context)
        self.seen.bodies.append(request)
        try:
            script = json.loads(request.data)
        except ValueError:
            script = {}
        await obey(script, context)
        if script.get("hang"):
            await asyncio.Event().wait()
        if not script.get("stream"):
            data = json.dumps({"bytes": len(request.data)}).encode()
            yield httpbody_pb2.HttpBody(content_type="application/json", data=data)
            return
        await context.send_initial_metadata((("x-ignored-parameters", "foo"),))
        try:
            for number in range(script.get("events", 3)):
                yield event(f"data: {number}\n\n")
                if script.get("stepwise"):
                    await self.seen.go_on.wait()
                    self.seen.go_on.clear()
            if "late_abort" in script:
                await context.abort(grpc.StatusCode.INTERNAL, "late", WITH_ERROR)
            yield event("data: [DONE]\n\n")
        except asyncio.CancelledError:
            self.seen.cancelled.set()
            raise

    async def ListModels(self, request: Any, context: Any) -> httpbody_pb2.HttpBody:
        self.seen.note(context)
        return httpbody_pb2.HttpBody(content_type="application/json", data=b'{"data": []}')

    async def GetModel(self, request: Any, context: Any) -> httpbody_pb2.HttpBody:
        self.seen.note(context)
        if request.id == "missing":
            await context.abort(grpc.StatusCode.NOT_FOUND, "no", WITH_ERROR)
        data = json.dumps({"id": request.id}).encode()
        return httpbody_pb2.HttpBody(content_type="application/json", data=data)

    async def GetLiveness(self, request: Any, context: Any) -> httpbody_pb2.HttpBody:
        return httpbody_pb2.HttpBody(content_type="application/json", data=b"{}")

    async def GetReadiness(self, request: Any, context: Any) -> httpbody_pb2.HttpBody:
        if not self.ready:
            await context.abort(
                grpc.StatusCode.UNAVAILABLE, "loading", (*WITH_ERROR, ("retry-after", "7"))
            )
        return httpbody_pb2.HttpBody(content_type="application/json", data=b"{}")


def event(text: str) -> httpbody_pb2.HttpBody:
    return httpbody_pb2.HttpBody(content_type="text/event-stream", data=text.encode())


class Chat(chat_service_pb2_grpc.ChatServiceServicer):
    """The typed RPCs; the script is the field `user`."""

    def __init__(self, seen: Seen) -> None:
        self.seen = seen

    async def CreateChatCompletion(self, request: Any, context: Any) -> chat_pb2.ChatCompletion:
        self.seen.note(context)
        await obey(json.loads(request.user or "{}"), context)
        return chat_pb2.ChatCompletion(id="x", system_fingerprint=request.model)

    async def StreamChatCompletion(self, request: Any, context: Any) -> AsyncIterator[Any]:
        self.seen.note(context)
        script = json.loads(request.user or "{}")
        await obey(script, context)
        for number in range(script.get("events", 2)):
            yield chat_pb2.ChatCompletionChunk(id=str(number), system_fingerprint="f")
        context.set_trailing_metadata((("x-trailer", "kept"),))


class Models(model_service_pb2_grpc.ModelServiceServicer):
    async def ListModels(self, request: Any, context: Any) -> model_service_pb2.ListModelsResponse:
        return model_service_pb2.ListModelsResponse()

    async def GetModel(self, request: Any, context: Any) -> model_service_pb2.GetModelResponse:
        model = model_service_pb2.Model(
            id=request.id, load=model_service_pb2.EngineLoad(generated_tokens=5)
        )
        return model_service_pb2.GetModelResponse(model=model)


# --- The edge: Envoy before that server ---


@dataclass
class Edge:
    """A running Envoy, the server behind it and clients before it."""

    port: int
    seen: Seen
    rest: Rest
    http: httpx.AsyncClient
    channel: grpc.aio.Channel
    access_log: Path
    envoy: Child

    async def post(self, script: dict[str, Any], path: str = CHAT, **kwargs: Any) -> httpx.Response:
        return await self.http.post(path, json=script, **kwargs)

    async def raw(self, text: bytes) -> bytes:
        """Send bytes as they are; what comes back until the connection ends."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(text)
        answer = await reader.read()
        writer.close()
        return answer


def unchanged(config: dict[str, Any]) -> None:
    """Leave the configuration as it is."""


def manager(config: dict[str, Any]) -> dict[str, Any]:
    filters = config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"]
    typed: dict[str, Any] = filters[0]["typed_config"]
    return typed


@contextlib.asynccontextmanager
async def edge(
    directory: Path,
    change: Callable[[dict[str, Any]], None] = unchanged,
    *,
    server_runs: bool = True,
) -> AsyncIterator[Edge]:
    seen = Seen()
    rest = Rest(seen)
    rest_port, admin_port = free_port(), free_port()
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", 2 * MAX_BYTES)])
    rest_service_pb2_grpc.add_RestServiceServicer_to_server(rest, server)
    chat_service_pb2_grpc.add_ChatServiceServicer_to_server(Chat(seen), server)
    model_service_pb2_grpc.add_ModelServiceServicer_to_server(Models(), server)
    health_pb2_grpc.add_HealthServicer_to_server(health.aio.HealthServicer(), server)
    reflection.enable_server_reflection(("ovchat.v1.ChatService",), server)
    grpc_port = server.add_insecure_port("127.0.0.1:0") if server_runs else free_port()
    config = envoy_config(
        EnvoyFiles.locate(),
        host="127.0.0.1",
        rest_port=rest_port,
        grpc_port=grpc_port,
        admin_port=admin_port,
        max_request_bytes=MAX_BYTES,
    )
    access_log = directory / f"access-{rest_port}.log"
    logger = manager(config)["access_log"][0]
    logger["name"] = "envoy.access_loggers.file"
    logger["typed_config"]["@type"] = (
        "type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog"
    )
    logger["typed_config"]["path"] = str(access_log)
    change(config)
    command = [
        str(locate_envoy(None)),
        *("--config-path", "/dev/fd/0"),
        *("--log-level", "error", "--concurrency", "1", "--disable-hot-restart"),
        *("--file-flush-interval-msec", "10"),
    ]
    if server_runs:
        await server.start()
    try:
        async with (
            await Child.spawn("Envoy", command, "ovchat-envoy", json.dumps(config)) as envoy,
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{rest_port}", timeout=30) as http,
            grpc.aio.insecure_channel(f"127.0.0.1:{rest_port}") as channel,
        ):
            await listening(admin_port, envoy)
            yield Edge(rest_port, seen, rest, http, channel, access_log, envoy)
    finally:
        await server.stop(None)


async def listening(admin_port: int, envoy: Child) -> None:
    while envoy.running:
        with contextlib.suppress(OSError):
            if (await plain_request("GET", "127.0.0.1", admin_port, "/ready"))[0] == 200:
                return
        await asyncio.sleep(0.02)
    pytest.fail("Envoy did not start")


@pytest.fixture(scope="module")
async def gate(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Edge]:
    async with edge(tmp_path_factory.mktemp("envoy")) as running:
        yield running


def assert_error(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """Check the OpenAI shape of an error; its error object."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert int(answer.headers["content-length"]) == len(answer.content)
    body = answer.json()
    assert set(body) == {"error"}
    error: dict[str, Any] = body["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["code"] == code
    assert error["param"] is None
    assert error["type"] == ("invalid_request_error" if status < 500 else "server_error")
    assert error["message"]
    assert answer.headers["server"] == "ovchat"
    assert not [name for name in answer.headers if name.startswith(("x-envoy", "grpc-"))]
    return error


# --- Bodies and streams ---


@pytest.mark.parametrize("path", [CHAT, "/v1/chat/completions"])
async def test_a_rest_body_reaches_the_server_byte_for_byte(gate: Edge, path: str) -> None:
    body = b'{ "z": 1, "a": {"y": null, "b": [1.50, "\\u00e9"]} }'
    answer = await gate.http.post(path, content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 200
    assert answer.json() == {"bytes": len(body)}
    assert answer.headers["content-type"] == "application/json"
    assert gate.seen.bodies[-1].data == body
    assert gate.seen.bodies[-1].content_type == "application/json"
    assert "grpc-accept-encoding" not in answer.headers


async def test_a_body_of_nothing_reaches_the_server(gate: Edge) -> None:
    answer = await gate.http.post(CHAT)
    assert answer.json() == {"bytes": 0}


async def test_each_event_of_a_stream_arrives_before_the_next_is_made(gate: Edge) -> None:
    script = {"stream": True, "stepwise": True}
    async with gate.http.stream("POST", CHAT, json=script) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/event-stream"
        assert answer.headers["cache-control"] == "no-cache"
        assert answer.headers["x-ignored-parameters"] == "foo"
        events = []
        async for text in answer.aiter_text():
            events.append(text)
            # The server makes the next event only now.
            gate.seen.go_on.set()
        assert events == ["data: 0\n\n", "data: 1\n\n", "data: 2\n\n", "data: [DONE]\n\n"]


async def test_a_stream_that_has_begun_is_left_alone_when_it_fails(gate: Edge) -> None:
    answer = await gate.post({"stream": True, "late_abort": True})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.text == "data: 0\n\ndata: 1\n\ndata: 2\n\n"
    assert "x-ovchat-error" not in answer.headers


async def test_a_client_that_goes_away_cancels_the_call(gate: Edge) -> None:
    gate.seen.cancelled.clear()
    async with gate.http.stream("POST", CHAT, json={"stream": True, "stepwise": True}) as answer:
        await anext(answer.aiter_text())
    await asyncio.wait_for(gate.seen.cancelled.wait(), 5)


async def test_typed_paths_speak_snake_case_json(gate: Edge) -> None:
    answer = await gate.post({"model": "demo", "max_tokens": 3}, "/ovchat/v1/chat:create")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == {"id": "x", "system_fingerprint": "demo"}


async def test_typed_enums_may_be_in_lower_case(gate: Edge) -> None:
    for role in ("ROLE_USER", "role_user"):
        answer = await gate.post({"messages": [{"role": role}]}, "/ovchat/v1/chat:create")
        assert answer.status_code == 200


async def test_typed_streams_are_server_sent_events(gate: Edge) -> None:
    answer = await gate.post({"model": "demo"}, "/ovchat/v1/chat:stream")
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.text == (
        'data: {"id":"0","system_fingerprint":"f"}\n\ndata: {"id":"1","system_fingerprint":"f"}\n\n'
    )


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("demo", "demo"),
        ("org/model", "org/model"),
        ("org%2Fmodel", "org/model"),
        ("org%2fa%20b", "org/a b"),
        ("qwen3:8b", "qwen3:8b"),
        ("a.b-c_d~e@f+g", "a.b-c_d~e@f+g"),
        ("%E4%BD%A0", "\u4f60"),
        ("100%25", "100%"),
    ],
)
async def test_model_ids_arrive_unescaped(gate: Edge, path: str, model: str) -> None:
    for prefix in ("/v3/models/", "/v1/models/"):
        answer = await gate.http.get(prefix + path)
        assert answer.json() == {"id": model}
    answer = await gate.http.get("/ovchat/v1/models/" + path)
    assert answer.json() == {"model": {"id": model, "load": {"generated_tokens": "5"}}}


@pytest.mark.parametrize("path", [*GET_PATHS, "/v3/models?limit=5&x.y=1", "/v3//models"])
async def test_get_paths_answer(gate: Edge, path: str) -> None:
    answer = await gate.http.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert not [name for name in answer.headers if name.startswith(("grpc-", "x-envoy"))]


async def test_unknown_query_parameters_of_a_post_are_ignored(gate: Edge) -> None:
    answer = await gate.post({"a": 1}, CHAT + "?api-version=2024-10-21&data=AAAA&content_type=x")
    assert answer.status_code == 200, answer.text
    assert json.loads(gate.seen.bodies[-1].data) == {"a": 1}


# --- The server's errors ---

SERVER_ERRORS = [
    ("INVALID_ARGUMENT", None, 400),
    ("UNAUTHENTICATED", None, 401),
    ("NOT_FOUND", None, 404),
    ("RESOURCE_EXHAUSTED", None, 429),
    ("UNIMPLEMENTED", None, 501),
    ("UNAVAILABLE", None, 503),
    ("DEADLINE_EXCEEDED", None, 504),
    ("INTERNAL", None, 500),
    ("INVALID_ARGUMENT", 413, 413),
    ("UNIMPLEMENTED", 405, 405),
    ("INVALID_ARGUMENT", 415, 415),
]
DOORS = [CHAT, "/v1/chat/completions", "/ovchat/v1/chat:create", "/ovchat/v1/chat:stream"]


def request_for(path: str, script: dict[str, Any]) -> dict[str, Any]:
    return {"user": json.dumps(script)} if path.startswith("/ovchat") else script


@pytest.mark.parametrize(("code", "override", "status"), SERVER_ERRORS)
@pytest.mark.parametrize("path", DOORS)
async def test_the_servers_error_object_is_the_body(
    gate: Edge, path: str, code: str, override: int | None, status: int
) -> None:
    trailers = [["x-ovchat-error", json.dumps(ERROR)], ["retry-after", "3"]]
    if override:
        trailers.append(["x-ovchat-status", str(override)])
    script = {"abort": code, "trailers": trailers, "stream": True}
    answer = await gate.post(request_for(path, script), path)
    assert answer.status_code == status
    assert answer.json() == ERROR
    assert answer.headers["content-type"] == "application/json"
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert answer.headers["retry-after"] == "3"
    leaks = ("x-ovchat", "x-envoy", "grpc-", "trailer")
    assert not [name for name in answer.headers if name.startswith(leaks)]


async def test_the_error_of_a_unary_rpc_with_a_raw_body_is_the_body(gate: Edge) -> None:
    answer = await gate.http.get("/v1/models/missing")
    assert answer.status_code == 404
    assert answer.json() == ERROR


@pytest.mark.parametrize("initial", [False, True])
@pytest.mark.parametrize("path", DOORS[:3])
async def test_a_bare_grpc_status_becomes_an_error_object(
    gate: Edge, path: str, initial: bool
) -> None:
    script = {"abort": "NOT_FOUND", "details": 'say "no"\n\u00e9 100%', "initial": initial}
    answer = await gate.post(request_for(path, script), path)
    error = assert_error(answer, 404, "not_found")
    assert error["message"] == 'say "no"\n\u00e9 100%'


@pytest.mark.parametrize("path", DOORS[:3])
async def test_the_servers_error_object_survives_early_initial_metadata(
    gate: Edge, path: str
) -> None:
    trailers = [["x-ovchat-error", json.dumps(ERROR)], ["x-ovchat-status", "415"]]
    script = {"abort": "NOT_FOUND", "initial": True, "trailers": trailers}
    answer = await gate.post(request_for(path, script), path)
    assert answer.status_code == 415
    assert answer.json() == ERROR
    assert int(answer.headers["content-length"]) == len(answer.content)


@pytest.mark.parametrize("name", ["google.rpc.BadRequest", "no.such.Type"])
@pytest.mark.parametrize("path", DOORS)
async def test_errors_with_details_of_any_type_have_a_body(
    gate: Edge, path: str, name: str
) -> None:
    script: dict[str, Any] = {"abort": "NOT_FOUND", "rich": f"type.googleapis.com/{name}"}
    answer = await gate.post(request_for(path, script), path)
    assert_error(answer, 404, "not_found")
    assert answer.json()["error"]["message"] in ("details", "rich")
    script["trailers"] = list(map(list, WITH_ERROR))
    answer = await gate.post(request_for(path, script), path)
    assert answer.status_code == 404
    assert answer.json() == ERROR


async def test_a_bare_grpc_status_without_details_still_says_something(gate: Edge) -> None:
    answer = await gate.post({"abort": "UNAVAILABLE", "details": ""})
    assert_error(answer, 503, "service_unavailable")
    assert answer.headers["retry-after"] == "1"


@pytest.mark.parametrize("code", ["UNAVAILABLE", "INTERNAL", "RESOURCE_EXHAUSTED"])
async def test_what_the_server_refused_is_not_tried_again(gate: Edge, code: str) -> None:
    before = len(gate.seen.metadata)
    await gate.post({"abort": code})
    with pytest.raises(grpc.aio.AioRpcError):
        await chat_stub(gate).CreateChatCompletion(chat_request({"abort": code}))
    assert len(gate.seen.metadata) == before + 2


async def test_a_keep_alive_connection_survives_an_error(gate: Edge) -> None:
    failed = await gate.post({"abort": "NOT_FOUND", "trailers": list(map(list, WITH_ERROR))})
    assert failed.status_code == 404
    assert (await gate.post({"a": 1})).status_code == 200


async def test_readiness_is_the_servers_to_say(gate: Edge) -> None:
    gate.rest.ready = False
    try:
        answer = await gate.http.get("/v2/health/ready")
    finally:
        gate.rest.ready = True
    assert answer.status_code == 503
    assert answer.json() == ERROR
    assert answer.headers["retry-after"] == "7"


# --- Envoy's own errors ---


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


@pytest.mark.parametrize(
    ("status", "code"), [(418, "invalid_request"), (500, "internal_error"), (502, "internal_error")]
)
async def test_any_other_reply_of_envoys_has_the_shape_too(
    tmp_path: Path, status: int, code: str
) -> None:
    def reply(config: dict[str, Any]) -> None:
        routes = manager(config)["route_config"]["virtual_hosts"][0]["routes"]
        body = {"inline_string": 'a "quoted"\nline'}
        routes[-1]["direct_response"] = {"status": status, "body": body}

    async with edge(tmp_path, reply) as gate:
        error = assert_error(await gate.http.get("/nope"), status, code)
        assert error["message"].endswith('a "quoted"\nline')


async def test_not_found_names_the_path(gate: Edge) -> None:
    error = assert_error(await gate.http.get('/nope"?q=1'), 404, "not_found")
    assert "/nope" in error["message"]
    assert "/v3/chat/completions" in error["message"]


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


@pytest.mark.parametrize("path", GET_PATHS)
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


async def test_a_body_up_to_the_limit_passes(gate: Edge) -> None:
    body = b'{"a": "' + b"x" * (MAX_BYTES - 9) + b'"}'
    assert len(body) == MAX_BYTES
    answer = await gate.http.post(CHAT, content=body)
    assert answer.json() == {"bytes": len(body)}


@pytest.mark.parametrize("path", [CHAT, "/ovchat/v1/chat:create"])
@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_above_the_limit_is_too_large(gate: Edge, path: str, chunked: bool) -> None:
    body = b'{"user": "' + b"x" * (MAX_BYTES + 100) + b'"}'

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 1 << 16):
            yield body[start : start + (1 << 16)]

    answer = await gate.http.post(path, content=pieces() if chunked else body)
    assert_error(answer, 413, "request_too_large")


@pytest.mark.parametrize(
    "body",
    [
        '{"temperature": "hot"}',
        '{"model": "a\\"b", "temperature": {"a": "\\n\\""}}',
        '{"messages": [{"role": "\\"\\\\"}]}',
        "{not json",
        "[1]",
        "",
    ],
)
async def test_what_the_transcoder_cannot_read_is_an_invalid_request(gate: Edge, body: str) -> None:
    answer = await gate.http.post("/ovchat/v1/chat:create", content=body)
    if body:
        assert_error(answer, 400, "invalid_request")
    else:
        assert answer.status_code == 200


async def test_too_large_headers_are_refused(gate: Edge) -> None:
    answer = await gate.http.get("/health", headers={"x-large": "x" * 100_000})
    assert_error(answer, 431, "headers_too_large")


def body_of(answer: bytes) -> dict[str, Any]:
    error: dict[str, Any] = json.loads(answer.partition(b"\r\n\r\n")[2])["error"]
    return error


async def test_an_upgrade_is_refused(gate: Edge) -> None:
    answer = await gate.raw(
        b"GET /v3/models HTTP/1.1\r\nhost: x\r\n"
        b"connection: upgrade, close\r\nupgrade: websocket\r\n"
        b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n"
    )
    assert answer.startswith(b"HTTP/1.1 400 "), answer
    assert body_of(answer)["code"] == "upgrade_not_supported"


async def test_an_offer_to_upgrade_to_http_2_is_passed_over(gate: Edge) -> None:
    # What Java's HttpClient sends with every first request.
    answer = await gate.raw(
        b"POST /v3/chat/completions HTTP/1.1\r\nhost: x\r\n"
        b"connection: Upgrade, HTTP2-Settings, close\r\n"
        b"upgrade: h2c\r\nhttp2-settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\n"
        b"content-length: 2\r\n\r\n{}"
    )
    assert answer.startswith(b"HTTP/1.1 200 "), answer


async def test_a_malformed_request_is_invalid(gate: Edge) -> None:
    answer = await gate.raw(b"GET /health HTTP/1.1\r\nbad header\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400 "), answer
    assert body_of(answer)["code"] == "invalid_request"


async def test_http_1_0_is_answered(gate: Edge) -> None:
    answer = await gate.raw(
        b'POST /v3/chat/completions HTTP/1.0\r\ncontent-length: 16\r\n\r\n{"stream": true}'
    )
    assert b" 200 OK\r\n" in answer
    assert answer.partition(b"\r\n\r\n")[2] == (
        b"data: 0\n\ndata: 1\n\ndata: 2\n\ndata: [DONE]\n\n"
    )


async def test_a_server_that_is_away_is_unavailable(tmp_path: Path) -> None:
    async with edge(tmp_path, server_runs=False) as gate:
        requests = [("POST", path) for path in POST_PATHS] + [("GET", path) for path in GET_PATHS]
        for method, path in requests:
            answer = await gate.http.request(method, path)
            assert_error(answer, 503, "service_unavailable")
            assert answer.headers["retry-after"] == "1"
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await chat_stub(gate).CreateChatCompletion(chat_pb2.CreateChatCompletionRequest())
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        assert "{" not in (caught.value.details() or "")


async def test_more_requests_than_the_proxy_takes_is_overload(tmp_path: Path) -> None:
    def one_request(config: dict[str, Any]) -> None:
        cluster = config["static_resources"]["clusters"][0]
        cluster["circuit_breakers"]["thresholds"][0]["max_requests"] = 1

    async with edge(tmp_path, one_request) as gate:
        script = {"stream": True, "stepwise": True}
        async with gate.http.stream("POST", CHAT, json=script):
            answer = await gate.post({})
            assert_error(answer, 503, "overloaded")
            assert answer.headers["retry-after"] == "1"


async def test_a_body_that_stops_arriving_times_out(tmp_path: Path) -> None:
    def impatient(config: dict[str, Any]) -> None:
        manager(config)["request_timeout"] = "0.3s"

    async with edge(tmp_path, impatient) as gate:
        answer = await gate.raw(
            b"POST /v3/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 50\r\n"
            b"connection: close\r\n\r\n{"
        )
        assert answer.startswith(b"HTTP/1.1 408 "), answer
        assert body_of(answer)["code"] == "timeout"
        # The limit is the request's, not the answer's: this one takes longer.
        script = {"stream": True, "stepwise": True}
        async with gate.http.stream("POST", CHAT, json=script) as stream:
            count = 0
            async for _ in stream.aiter_text():
                count += 1
                await asyncio.sleep(0.2)
                gate.seen.go_on.set()
            assert count == 4


async def test_headers_that_stop_arriving_time_out(tmp_path: Path) -> None:
    def impatient(config: dict[str, Any]) -> None:
        manager(config)["request_headers_timeout"] = "0.3s"

    async with edge(tmp_path, impatient) as gate:
        answer = await gate.raw(b"GET /health HTTP/1.1\r\nhost: x\r\n")
        assert answer.startswith(b"HTTP/1.1 408 "), answer
        assert body_of(answer)["code"] == "timeout"


async def test_a_server_silent_for_too_long_times_out(tmp_path: Path) -> None:
    def impatient(config: dict[str, Any]) -> None:
        manager(config)["stream_idle_timeout"] = "0.3s"

    async with edge(tmp_path, impatient) as gate:
        gate.seen.go_on.clear()
        script = {"stream": True, "stepwise": True, "events": 1}
        with pytest.raises(httpx.RemoteProtocolError):
            await gate.post(script)
        await asyncio.wait_for(gate.seen.cancelled.wait(), 5)


# --- CORS ---


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
    assert {"x-request-id", "retry-after", "x-ignored-parameters"} <= set(exposed)


async def test_a_browser_may_ask_for_headers_alone(gate: Edge) -> None:
    answer = await gate.http.head("/v3/models", headers={"origin": "https://app.example"})
    assert answer.headers["access-control-allow-origin"] == "https://app.example"


async def test_a_browser_may_read_envoys_errors(gate: Edge) -> None:
    for path in ("/nope", "/health"):
        answer = await gate.http.delete(path, headers={"origin": "https://app.example"})
        assert answer.headers["access-control-allow-origin"] == "*"
        assert answer.headers["access-control-expose-headers"] == "x-request-id"
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


# --- Headers ---


async def test_a_request_id_is_made_where_there_is_none(gate: Edge) -> None:
    answer = await gate.post({})
    assert answer.headers["x-request-id"] == gate.seen.last["x-request-id"]
    assert len(answer.headers["x-request-id"]) == 36


@pytest.mark.parametrize("own", ["mine", "7f0c2f4e-9c5a-4d6b-8f1e-0123456789ab"])
async def test_a_callers_request_id_is_kept(gate: Edge, own: str) -> None:
    for script in ({}, {"stream": True}, {"abort": "NOT_FOUND"}):
        answer = await gate.post(script, headers={"x-request-id": own})
        assert answer.headers["x-request-id"] == own
        assert gate.seen.last["x-request-id"] == own
    answer = await gate.http.get("/nope", headers={"x-request-id": own})
    assert answer.headers["x-request-id"] == own


async def test_the_server_is_told_of_the_rest_request(gate: Edge) -> None:
    await gate.post({}, CHAT + "?a=1", headers={"authorization": "Bearer k", "openai-project": "p"})
    assert gate.seen.last["x-envoy-original-path"] == CHAT + "?a=1"
    assert gate.seen.last["x-envoy-original-method"] == "POST"
    assert gate.seen.last["authorization"] == "Bearer k"
    assert gate.seen.last["openai-project"] == "p"
    await gate.http.get("/v3/models")
    assert gate.seen.last["x-envoy-original-path"] == "/v3/models"
    assert gate.seen.last["x-envoy-original-method"] == "GET"


async def test_a_client_cannot_steer_envoy(gate: Edge) -> None:
    headers = {
        "x-envoy-original-path": "/forged",
        "x-envoy-upstream-rq-timeout-ms": "1",
        "x-envoy-retry-on": "5xx",
    }
    answer = await gate.post({}, headers=headers)
    assert answer.status_code == 200
    assert gate.seen.last["x-envoy-original-path"] == CHAT
    assert "x-envoy-retry-on" not in gate.seen.last


# --- Native gRPC on the same port ---


def chat_stub(gate: Edge) -> Any:
    return chat_service_pb2_grpc.ChatServiceStub(gate.channel)


def chat_request(script: dict[str, Any]) -> chat_pb2.CreateChatCompletionRequest:
    return chat_pb2.CreateChatCompletionRequest(model="demo", user=json.dumps(script))


async def test_native_calls_pass_with_their_trailers(gate: Edge) -> None:
    answer = await chat_stub(gate).CreateChatCompletion(chat_request({}))
    assert answer.system_fingerprint == "demo"
    call = chat_stub(gate).StreamChatCompletion(chat_request({}))
    assert [chunk.id async for chunk in call] == ["0", "1"]
    assert dict(await call.trailing_metadata())["x-trailer"] == "kept"


async def test_native_messages_above_the_rest_limit_are_the_servers_to_judge(gate: Edge) -> None:
    large = chat_pb2.CreateChatCompletionRequest(model="x" * (MAX_BYTES + (4 << 20)))
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        # The server answers with the model's name, which is more than this client takes.
        await chat_stub(gate).CreateChatCompletion(large)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "Received message larger than max" in (caught.value.details() or "")


async def test_a_native_caller_cannot_pass_for_rest(gate: Edge) -> None:
    await chat_stub(gate).CreateChatCompletion(
        chat_request({}),
        metadata=(("x-envoy-original-path", CHAT), ("x-envoy-original-method", "POST")),
    )
    assert "x-envoy-original-path" not in gate.seen.last
    assert "x-envoy-original-method" not in gate.seen.last
    assert gate.seen.last["x-request-id"]


@pytest.mark.parametrize("rpc", ["CreateChatCompletion", "StreamChatCompletion"])
async def test_native_errors_pass_untouched(gate: Edge, rpc: str) -> None:
    trailers = [["x-ovchat-error", json.dumps(ERROR)], ["retry-after", "3"]]
    call = getattr(chat_stub(gate), rpc)(
        chat_request({"abort": "NOT_FOUND", "details": "no \u00e9", "trailers": trailers})
    )
    outcome = call.read() if rpc.startswith("Stream") else call
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await outcome
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    assert caught.value.details() == "no \u00e9"
    metadata = dict(caught.value.trailing_metadata()) | dict(caught.value.initial_metadata())
    assert metadata["x-ovchat-error"] == json.dumps(ERROR)
    assert metadata["retry-after"] == "3"


async def test_a_callers_deadline_reaches_the_server(gate: Edge) -> None:
    await chat_stub(gate).CreateChatCompletion(chat_request({}), timeout=5000)
    assert gate.seen.remaining[-1] == pytest.approx(5000, rel=0.01)


async def test_a_call_without_a_deadline_has_none(gate: Edge) -> None:
    await chat_stub(gate).CreateChatCompletion(chat_request({}))
    assert gate.seen.remaining[-1] is None or gate.seen.remaining[-1] > 1e6
    await gate.post({})
    assert gate.seen.remaining[-1] is None or gate.seen.remaining[-1] > 1e6


async def test_a_deadline_ends_the_call_as_one(gate: Edge) -> None:
    gate.seen.cancelled.clear()
    stub = rest_service_pb2_grpc.RestServiceStub(gate.channel)
    body = httpbody_pb2.HttpBody(data=b'{"stream": true, "stepwise": true}')

    async def code() -> grpc.StatusCode:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            async for _ in stub.CreateChatCompletion(body, timeout=0.3):
                pass
        return caught.value.code()

    # Client, proxy and server all count; whoever is first, the answer is the same.
    codes = await asyncio.gather(*(code() for _ in range(50)))
    assert set(codes) == {grpc.StatusCode.DEADLINE_EXCEEDED}
    await asyncio.wait_for(gate.seen.cancelled.wait(), 5)


async def test_a_rest_callers_deadline_is_a_timeout(gate: Edge) -> None:
    answer = await gate.post({"hang": True}, headers={"grpc-timeout": "200m"})
    assert_error(answer, 504, "timeout")


async def test_health_and_reflection_pass(gate: Edge) -> None:
    stub: Any = health_pb2_grpc.HealthStub(gate.channel)
    answer = await stub.Check(health_pb2.HealthCheckRequest())
    assert answer.status == health_pb2.HealthCheckResponse.SERVING
    reflector: Any = reflection_pb2_grpc.ServerReflectionStub
    call = reflector(gate.channel).ServerReflectionInfo(
        iter([reflection_pb2.ServerReflectionRequest(list_services="")])
    )
    listed = [s.name for s in (await call.read()).list_services_response.service]
    assert listed == ["ovchat.v1.ChatService"]


async def test_an_unknown_grpc_method_is_unimplemented(gate: Edge) -> None:
    call: Any = gate.channel.unary_unary("/no.Such/Method")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call(b"")
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


# --- The access log ---


async def logged(gate: Edge, request_id: str) -> dict[str, Any]:
    """The log line of a request; Envoy writes it soon after the answer."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        for line in gate.access_log.read_text().splitlines():
            entry: dict[str, Any] = json.loads(line)
            if entry["request_id"] == request_id:
                return entry
        await asyncio.sleep(0.01)
    pytest.fail(f"{request_id} was not logged")


async def test_a_request_is_logged_as_one_json_line(gate: Edge) -> None:
    own = "log-1"
    await gate.post({"stream": True}, CHAT + "?secret=1", headers={"x-request-id": own})
    entry = await logged(gate, own)
    assert entry["method"] == "POST"
    assert entry["path"] == CHAT
    assert entry["status"] == 200
    assert entry["grpc_status"] == 0
    assert entry["bytes_sent"] > 0
    assert entry["duration_ms"] >= 0
    assert entry["attempts"] == 1
    assert entry["flags"] in ("-", None)


@pytest.mark.parametrize(
    ("code", "trailers", "number"),
    [("NOT_FOUND", [], 5), ("UNAVAILABLE", list(map(list, WITH_ERROR)), 14)],
)
async def test_the_grpc_status_of_a_rest_error_is_logged(
    gate: Edge, code: str, trailers: list[list[str]], number: int
) -> None:
    own = f"log-{code}"
    await gate.post({"abort": code, "trailers": trailers}, headers={"x-request-id": own})
    assert (await logged(gate, own))["grpc_status"] == number


async def test_the_grpc_status_of_a_unary_answer_and_a_native_call_is_logged(gate: Edge) -> None:
    await gate.http.get("/v3/models", headers={"x-request-id": "log-unary"})
    assert (await logged(gate, "log-unary"))["grpc_status"] == 0
    with pytest.raises(grpc.aio.AioRpcError):
        await chat_stub(gate).CreateChatCompletion(
            chat_request({"abort": "NOT_FOUND"}), metadata=(("x-request-id", "log-native"),)
        )
    entry = await logged(gate, "log-native")
    assert entry["grpc_status"] == 5
    assert entry["path"] == "/ovchat.v1.ChatService/CreateChatCompletion"


async def test_a_failed_request_is_logged_with_its_reason(gate: Edge) -> None:
    await gate.http.get("/nope", headers={"x-request-id": "log-2"})
    entry = await logged(gate, "log-2")
    assert entry["status"] == 404
    assert entry["details"] == "direct_response"


async def test_health_probes_that_go_well_are_not_logged(gate: Edge) -> None:
    for path in ("/health", "/v2/health/live", "/v2/health/ready"):
        await gate.http.get(path, headers={"x-request-id": "probe"})
    stub: Any = health_pb2_grpc.HealthStub(gate.channel)
    await stub.Check(health_pb2.HealthCheckRequest(), metadata=(("x-request-id", "probe"),))
    await gate.http.get("/v3/models", headers={"x-request-id": "after-probes"})
    await logged(gate, "after-probes")
    assert '"probe"' not in gate.access_log.read_text()
