"""Bodies and streams pass as they are, and typed JSON becomes messages and back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.rest.envoy.paths import CHAT, PROVIDER_CHAT, SCRIPTED_GET_PATHS

if TYPE_CHECKING:
    from tests.rest.envoy.edge import Edge


@pytest.mark.parametrize("path", [CHAT, "/v1/chat/completions", PROVIDER_CHAT])
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
    headers = {"x-request-id": "each-event"}
    async with gate.http.stream("POST", CHAT, json=script, headers=headers) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/event-stream"
        assert answer.headers["cache-control"] == "no-cache"
        assert answer.headers["x-ignored-parameters"] == "foo"
        events = []
        async for text in answer.aiter_text():
            events.append(text)
            # The server makes the next event only now.
            gate.seen.calls["each-event"].go_on.set()
        assert events == ["data: 0\n\n", "data: 1\n\n", "data: 2\n\n", "data: [DONE]\n\n"]


async def test_a_stream_that_has_begun_is_left_alone_when_it_fails(gate: Edge) -> None:
    answer = await gate.post({"stream": True, "late_abort": True})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.text == "data: 0\n\ndata: 1\n\ndata: 2\n\n"
    assert "x-ovchat-error" not in answer.headers


async def test_a_client_that_goes_away_cancels_the_call(gate: Edge) -> None:
    script = {"stream": True, "stepwise": True}
    headers = {"x-request-id": "goes-away"}
    async with gate.http.stream("POST", CHAT, json=script, headers=headers) as answer:
        await anext(answer.aiter_text())
    await gate.seen.calls["goes-away"].cancelled.wait()


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


@pytest.mark.parametrize("path", [*SCRIPTED_GET_PATHS, "/v3/models?limit=5&x.y=1", "/v3//models"])
async def test_get_paths_answer(gate: Edge, path: str) -> None:
    answer = await gate.http.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert not [name for name in answer.headers if name.startswith(("grpc-", "x-envoy"))]


@pytest.mark.parametrize("path", [CHAT, PROVIDER_CHAT])
async def test_query_parameters_of_a_post_change_nothing(gate: Edge, path: str) -> None:
    query = "?api-version=2024-10-21&data=AAAA&content_type=x&prefix=y&body.data=AAAA"
    answer = await gate.post({"a": 1}, path + query)
    assert answer.status_code == 200, answer.text
    assert json.loads(gate.seen.bodies[-1].data) == {"a": 1}
    if path == PROVIDER_CHAT:
        assert gate.seen.providers[-1] == "a-provider"
