"""The exact bytes, as people without an SDK see them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.rest.conftest import until_idle
from tests.successor import successor_text

if TYPE_CHECKING:
    import httpx

USAGE = {
    "prompt_tokens": 1,
    "completion_tokens": 3,
    "total_tokens": 4,
    "prompt_tokens_details": {"cached_tokens": 0},
}
ASK = {
    "model": "successor",
    "messages": [{"role": "user", "content": "a"}],
    "max_tokens": 3,
    "temperature": 0,
}
PATHS = ["/v3/chat/completions", "/v1/chat/completions"]


def events(text: str) -> list[str]:
    assert text.endswith("\n\n")
    lines = text[:-2].split("\n\n")
    assert all(line.startswith("data: ") for line in lines)
    return [line.removeprefix("data: ") for line in lines]


@pytest.mark.parametrize("path", PATHS)
async def test_a_whole_answer_has_openais_keys(http: httpx.AsyncClient, path: str) -> None:
    response = await http.post(path, json=ASK)

    body = response.json()
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-request-id"]
    assert body["id"].startswith("chatcmpl-")
    assert isinstance(body["created"], int)
    assert body["system_fingerprint"].startswith("fp_")
    del body["id"], body["created"], body["system_fingerprint"]
    assert body == {
        "object": "chat.completion",
        "model": "successor",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "bcd", "refusal": None},
                "logprobs": None,
                "finish_reason": "length",
                "stop_reason": None,
            }
        ],
        "usage": USAGE,
        "prompt_logprobs": None,
    }


@pytest.mark.parametrize("path", PATHS)
async def test_a_stream_is_made_of_openais_events(http: httpx.AsyncClient, path: str) -> None:
    response = await http.post(path, json={**ASK, "stream": True})

    assert response.status_code == 200
    assert response.headers["content-type"] == "text/event-stream"
    *chunks, done = events(response.text)
    assert done == "[DONE]"
    parsed: list[dict[str, Any]] = [json.loads(chunk) for chunk in chunks]
    same = {(c["id"], c["created"], c["model"], c["system_fingerprint"]) for c in parsed}
    assert len(same) == 1
    assert {chunk["object"] for chunk in parsed} == {"chat.completion.chunk"}
    assert not any("usage" in chunk for chunk in parsed)
    choices = [chunk["choices"] for chunk in parsed]
    assert choices[0] == [
        {
            "index": 0,
            "delta": {"role": "assistant", "content": ""},
            "logprobs": None,
            "finish_reason": None,
        }
    ]
    assert choices[-1] == [
        {
            "index": 0,
            "delta": {},
            "logprobs": None,
            "finish_reason": "length",
            "stop_reason": None,
        }
    ]
    assert "".join(choice["delta"]["content"] for [choice] in choices[1:-1]) == "bcd"
    assert all(choice["finish_reason"] is None for [choice] in choices[:-1])


async def test_usage_is_null_until_the_last_chunk_where_asked_for(http: httpx.AsyncClient) -> None:
    body = {**ASK, "stream": True, "stream_options": {"include_usage": True}}

    *chunks, done = events((await http.post(PATHS[0], json=body)).text)

    assert done == "[DONE]"
    *others, last = [json.loads(chunk) for chunk in chunks]
    assert all(chunk["usage"] is None for chunk in others)
    assert last["choices"] == []
    assert last["usage"] == USAGE


async def test_events_come_as_they_are_made(http: httpx.AsyncClient) -> None:
    body = {**ASK, "stream": True, "max_tokens": 4000}

    async with http.stream("POST", PATHS[0], json=body) as response:
        async for piece in response.aiter_text():
            # Far from the end of 4,000 tokens.
            assert piece.startswith('data: {"id":"chatcmpl-')
            assert "[DONE]" not in piece
            break


async def test_characters_of_several_tokens_arrive_whole(http: httpx.AsyncClient) -> None:
    body = {
        "model": "demo",
        "messages": [{"role": "user", "content": "Repeat: 東京 🎉 Zoë"}],
        "temperature": 0,
        "stream": True,
    }

    response = await http.post(PATHS[0], json=body)

    text = "".join(
        json.loads(chunk)["choices"][0]["delta"].get("content") or ""
        for chunk in events(response.content.decode())[:-1]
    )
    assert text == "東京 🎉 Zoë"


async def test_unknown_keys_are_ignored_and_named(http: httpx.AsyncClient) -> None:
    inside = {"response_format": {"type": "text", "schemas": {}}}
    long = {f"{number}{'🎉' * 200}": 1 for number in range(30)}
    body = {**ASK, "tempreature": 1, "x\r\nset-cookie: a": 1, "ключ": 1}

    response = await http.post(PATHS[0], json=body)

    assert response.status_code == 200
    named = response.headers["x-ignored-parameters"]
    assert named.startswith("tempreature, ")
    assert named.isascii()
    assert "set-cookie" not in response.headers
    nested = await http.post(PATHS[0], json={**ASK, **inside})
    assert nested.headers["x-ignored-parameters"] == "response_format.schemas"
    # Known, but the model does not speculate.
    idle = await http.post(PATHS[0], json={**body, "max_ngram_size": 2})
    assert idle.headers["x-ignored-parameters"] == f"{named}, max_ngram_size"
    # No client has room for all of them.
    many = await http.post(PATHS[0], json={**ASK, **long})
    assert 0 < len(many.headers["x-ignored-parameters"]) < 15_000
    assert "x-ignored-parameters" not in (await http.post(PATHS[0], json=ASK)).headers


async def test_models_are_listed_and_found(http: httpx.AsyncClient) -> None:
    for prefix in ("/v3", "/v1"):
        listed = (await http.get(f"{prefix}/models")).json()
        found = (await http.get(f"{prefix}/models/demo")).json()

        assert listed["object"] == "list"
        assert [model["id"] for model in listed["data"]] == ["demo", "successor"]
        assert found == listed["data"][0]
        assert found["object"] == "model"
        assert found["context_length"] == found["max_model_len"] == 4096
        assert found["capabilities"] == ["chat", "tools", "reasoning"]


@pytest.mark.parametrize("path", ["/health", "/v2/health/live", "/v2/health/ready"])
async def test_health_answers(http: httpx.AsyncClient, path: str) -> None:
    response = await http.get(path)

    assert response.status_code == 200
    assert response.json() == {"status": "ok"}


TYPED = {
    "model": "successor",
    "messages": [{"role": "ROLE_USER", "content": [{"text": "a"}]}],
    "max_tokens": 3,
    "temperature": 0,
}


async def test_the_typed_path_answers_in_proto_json(http: httpx.AsyncClient) -> None:
    response = await http.post("/ovchat/v1/chat:create", json=TYPED)

    body = response.json()
    assert response.status_code == 200
    assert body["choices"] == [
        {
            "index": 0,
            "message": {"role": "ROLE_ASSISTANT", "content": [{"text": "bcd"}]},
            "finish_reason": "FINISH_REASON_LENGTH",
        }
    ]
    assert body["usage"] == USAGE


async def test_the_typed_stream_sends_a_proto_json_message_an_event(
    http: httpx.AsyncClient,
) -> None:
    response = await http.post("/ovchat/v1/chat:stream", json={**TYPED, "max_tokens": 30})

    chunks = [json.loads(event) for event in events(response.text)]
    assert response.headers["content-type"].startswith("text/event-stream")
    assert chunks[0]["choices"] == [{"index": 0, "delta": {"role": "ROLE_ASSISTANT"}}]
    assert chunks[-1]["choices"][0]["finish_reason"] == "FINISH_REASON_LENGTH"
    text = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)
    assert text == successor_text("a", 30)


async def test_the_typed_models_path_tells_how_the_engine_is_doing(http: httpx.AsyncClient) -> None:
    await until_idle(http, "successor")
    body = (await http.get("/ovchat/v1/models/successor")).json()

    assert body["model"]["state"] == "MODEL_STATE_READY"
    assert body["model"]["load"]["total_kv_blocks"] == 512
    assert body["model"]["load"]["running_requests"] == 0


EMPTY = {"model": "successor", "max_tokens": 3, "temperature": 0, "stop_token_ids": [ord("b")]}


async def test_an_empty_answer_has_empty_lists_of_log_probabilities(
    http: httpx.AsyncClient,
) -> None:
    body = {**EMPTY, "messages": [{"role": "user", "content": "a"}], "logprobs": True}
    [choice] = (await http.post(PATHS[0], json=body)).json()["choices"]
    assert choice["message"]["content"] == ""
    assert choice["logprobs"] == {"content": [], "refusal": None}
    *chunks, _ = events((await http.post(PATHS[0], json={**body, "stream": True})).text)
    first, *others = [json.loads(chunk)["choices"][0]["logprobs"] for chunk in chunks]
    assert (first, set(others)) == ({"content": [], "refusal": None}, {None})

    body = {**EMPTY, "prompt": "a", "logprobs": 1}
    [choice] = (await http.post("/v1/completions", json=body)).json()["choices"]
    assert choice["text"] == ""
    assert choice["logprobs"] == {
        "text_offset": [],
        "token_logprobs": [],
        "tokens": [],
        "top_logprobs": [],
    }


async def test_usage_so_far_without_usage_is_none(http: httpx.AsyncClient) -> None:
    body = {**ASK, "stream": True, "stream_options": {"continuous_usage_stats": True}}

    *chunks, _ = events((await http.post(PATHS[0], json=body)).text)

    assert not any("usage" in json.loads(chunk) for chunk in chunks)
