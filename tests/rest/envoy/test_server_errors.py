"""What an RPC that failed looks like over HTTP."""

# ruff: noqa: FBT001  flags of tests

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from tests.rest.envoy.edge import assert_error, chat_request, chat_stub, request_for
from tests.rest.envoy.paths import DOORS
from tests.rest.envoy.scripted import ERROR, WITH_ERROR

if TYPE_CHECKING:
    from tests.rest.envoy.edge import Edge


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


# Of gRPC itself and of libraries, which know nothing of our error objects.
BARE_STATUSES = {
    "CANCELLED": (499, "cancelled"),
    "UNKNOWN": (500, "internal_error"),
    "INVALID_ARGUMENT": (400, "invalid_request"),
    "DEADLINE_EXCEEDED": (504, "timeout"),
    "NOT_FOUND": (404, "not_found"),
    "ALREADY_EXISTS": (409, "conflict"),
    "PERMISSION_DENIED": (403, "permission_denied"),
    "RESOURCE_EXHAUSTED": (429, "rate_limit_exceeded"),
    "FAILED_PRECONDITION": (400, "invalid_request"),
    "ABORTED": (409, "conflict"),
    "OUT_OF_RANGE": (400, "invalid_request"),
    "UNIMPLEMENTED": (501, "not_implemented"),
    "INTERNAL": (500, "internal_error"),
    "UNAVAILABLE": (503, "service_unavailable"),
    "DATA_LOSS": (500, "internal_error"),
    "UNAUTHENTICATED": (401, "unauthenticated"),
}


@pytest.mark.parametrize("code", [code.name for code in grpc.StatusCode if code.value[0]])
@pytest.mark.parametrize("path", DOORS)
async def test_a_bare_grpc_status_has_its_http_status(gate: Edge, path: str, code: str) -> None:
    status, name = BARE_STATUSES[code]
    answer = await gate.post(request_for(path, {"abort": code}), path)
    assert assert_error(answer, status, name)["message"] == "details"
    # Clients try these again, and must know when.
    assert answer.headers.get("retry-after") == ("1" if status in (429, 503) else None)


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
