"""Errors have the shape of the API that their path belongs to, whoever makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.rest.envoy.edge import assert_error, edge
from tests.rest.envoy.paths import MESSAGES_PATHS
from tests.rest.envoy.scripted import ERROR, MAX_BYTES, WITH_ERROR

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

    from tests.rest.envoy.edge import Edge

MESSAGES = "/v1/messages"
JSON = {"content-type": "application/json"}


def anthropic_error(answer: httpx.Response, status: int, kind: str) -> str:
    """Check the shape of an error of Anthropic's; its message."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert answer.headers["request-id"] == answer.headers["x-request-id"]
    body = answer.json()
    message: str = body["error"].pop("message")
    request_id = answer.headers["request-id"]
    assert body == {"type": "error", "error": {"type": kind}, "request_id": request_id}
    return message


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("INVALID_ARGUMENT", 400, "invalid_request_error"),
        ("UNAUTHENTICATED", 401, "authentication_error"),
        ("PERMISSION_DENIED", 403, "permission_error"),
        ("NOT_FOUND", 404, "not_found_error"),
        ("RESOURCE_EXHAUSTED", 429, "rate_limit_error"),
        ("INTERNAL", 500, "api_error"),
        ("UNIMPLEMENTED", 501, "api_error"),
        ("DEADLINE_EXCEEDED", 504, "timeout_error"),
        ("UNAVAILABLE", 529, "overloaded_error"),
    ],
)
async def test_a_bare_grpc_status_has_the_apis_format(
    gate: Edge, code: str, status: int, kind: str
) -> None:
    answer = await gate.post({"abort": code, "details": 'no "such"'}, MESSAGES)
    assert anthropic_error(answer, status, kind) == 'no "such"'
    assert answer.headers.get("retry-after") == ("1" if status in (429, 529) else None)


async def test_what_the_server_wrote_is_left_as_it_is(gate: Edge) -> None:
    script = {"abort": "NOT_FOUND", "trailers": list(map(list, WITH_ERROR))}
    answer = await gate.post(script, MESSAGES)
    assert (answer.status_code, answer.json()) == (404, ERROR)


async def test_envoys_own_replies_have_the_apis_format(gate: Edge) -> None:
    for path in MESSAGES_PATHS:
        answer = await gate.http.put(path)
        assert path in anthropic_error(answer, 405, "invalid_request_error")
        assert answer.headers["allow"] == "POST, OPTIONS"
        for type_, encoding in (("text/plain", "identity"), ("application/json", "gzip")):
            headers = {"content-type": type_, "content-encoding": encoding}
            answer = await gate.http.post(path, content=b"x", headers=headers)
            anthropic_error(answer, 415, "invalid_request_error")
        answer = await gate.http.post(path, content=b"x" * (MAX_BYTES + 1), headers=JSON)
        assert str(MAX_BYTES) in anthropic_error(answer, 413, "request_too_large")
    for path in ("/v1/messages/batches", "/v1/messages/msg_1", "/house/v1/messages/count_tokens"):
        answer = await gate.http.get(path)
        assert "/v1/messages" in anthropic_error(answer, 404, "not_found_error").partition(" ")[2]
    answer = await gate.http.post("/messages", headers={"anthropic-version": "2023-06-01"})
    assert "/v1/messages" in anthropic_error(answer, 404, "not_found_error")


async def test_other_paths_keep_openais(gate: Edge) -> None:
    assert_error(await gate.http.put("/v1/completions"), 405, "method_not_allowed")
    answer = await gate.http.get("/nowhere")
    assert_error(answer, 404, "not_found")
    assert "request-id" not in answer.headers


async def test_a_server_that_is_away_is_told_in_the_apis_format(tmp_path: Path) -> None:
    async with edge(tmp_path, server_runs=False) as running:
        answer = await running.post({}, MESSAGES)
        anthropic_error(answer, 529, "overloaded_error")
        assert answer.headers["retry-after"] == "1"
