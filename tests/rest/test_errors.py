"""Bad input on the REST door: the right status, and an error object that names the field."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import ROOT

if TYPE_CHECKING:
    import httpx

CHAT = "/v3/chat/completions"
USER = {"role": "user", "content": "hi"}
ASK: dict[str, Any] = {"model": "successor", "messages": [USER], "max_tokens": 2}
JSON = {"content-type": "application/json"}


def error_of(response: httpx.Response) -> dict[str, Any]:
    assert response.headers["content-type"].startswith("application/json")
    body = response.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"message", "type", "param", "code"}
    assert body["error"]["message"]
    assert response.headers["x-request-id"]
    error: dict[str, Any] = body["error"]
    return error


BODIES: dict[str, tuple[bytes, str]] = {
    "not JSON": (b"{not json", "invalid_json"),
    "nothing": (b"", "invalid_json"),
    "an array": (b"[]", "invalid_json"),
    "a string": (b'"hello"', "invalid_json"),
    "null": (b"null", "invalid_json"),
    "cut off": (b'{"model": "successor"', "invalid_json"),
    "cut off in a string": (b'{"model": "succ\\"', "invalid_json"),
    "not UTF-8": (b'{"model": "\xff\xfe"}', "invalid_json"),
    "a lone surrogate": (rb'{"model": "\ud800"}', "invalid_json"),
    "nested too deeply": (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "invalid_json"),
}

# How much of it arrived, and what is open.
PLACES = {
    "cut off": "not valid JSON: it ends at byte 21, before it is complete.",
    "cut off in a string": "it ends at byte 17, inside of the string that begins at byte 10.",
}


@pytest.mark.parametrize("name", BODIES)
async def test_a_body_that_is_no_json_object_is_refused(http: httpx.AsyncClient, name: str) -> None:
    content, code = BODIES[name]

    response = await http.post(CHAT, content=content, headers=JSON)

    error = error_of(response)
    assert response.status_code == 400
    assert (error["type"], error["code"]) == ("invalid_request_error", code)
    assert error["message"].endswith(PLACES.get(name, ""))


async def test_the_documented_error_is_the_one_that_comes(http: httpx.AsyncClient) -> None:
    (sample,) = re.findall(r'(?m)^{"error".*$', (ROOT / "docs/rest.md").read_text())
    response = await http.post(CHAT, json={**ASK, "temperature": 9})
    assert response.json() == json.loads(sample)


FIELDS: dict[str, tuple[dict[str, Any], str]] = {
    "no model": ({"model": None}, "model"),
    "model of a wrong type": ({"model": 3}, "model"),
    "no messages": ({"messages": None}, "messages"),
    "empty messages": ({"messages": []}, "messages"),
    "messages of a wrong type": ({"messages": "hi"}, "messages"),
    "a message of a wrong type": ({"messages": [USER, 5]}, "messages[1]"),
    "no role": ({"messages": [{"content": "x"}]}, "messages[0].role"),
    "an unknown role": ({"messages": [{**USER, "role": "robot"}]}, "messages[0].role"),
    "content of a wrong type": ({"messages": [{**USER, "content": 5}]}, "messages[0].content"),
    "an unknown part": (
        {"messages": [USER, {**USER, "content": [{"type": "smell"}]}]},
        "messages[1].content[0].type",
    ),
    "temperature of a wrong type": ({"temperature": "hot"}, "temperature"),
    "temperature too high": ({"temperature": 2.5}, "temperature"),
    "max_tokens zero": ({"max_tokens": 0}, "max_tokens"),
    "max_tokens a float": ({"max_tokens": 1.5}, "max_tokens"),
    "stream of a wrong type": ({"stream": "yes"}, "stream"),
    "stream_options without stream": (
        {"stream_options": {"include_usage": True}},
        "stream_options",
    ),
    "an empty stop": ({"stop": ["a", ""]}, "stop[1]"),
    "too many stops": ({"stop": ["a"] * 17}, "stop"),
    "too many parts": (
        {"messages": [{**USER, "content": [{"type": "text", "text": "a"}] * 1025}]},
        "messages[0].content",
    ),
    "too many calls": (
        {"messages": [{"role": "assistant", "tool_calls": [{}] * 1025}, USER]},
        "messages[0].tool_calls",
    ),
    "too deep": ({"metadata": json.loads("[" * 129 + "]" * 129)}, "metadata"),
    "too deep a text": (
        {"guided_json": '{"a":' * 129 + "1" + "}" * 129},
        "guided_json",
    ),
    "n": ({"n": 0}, "n"),
    "logprob_token_ids": ({"logprob_token_ids": [1], "logprobs": True}, "logprob_token_ids"),
    "repetition_detection": ({"repetition_detection": {"min_count": 2}}, "repetition_detection"),
    "frequency_penalty": ({"frequency_penalty": 3}, "frequency_penalty"),
    "a key of logit_bias": ({"logit_bias": {"5": 1, "x": 1}}, "logit_bias.x"),
    "a token of logit_bias": ({"logit_bias": {"1000000": 1}}, "logit_bias.1000000"),
    "a bad word": ({"bad_words": ["a", ""]}, "bad_words[1]"),
    "a forced tool": (
        {
            "tools": [{"type": "function", "function": {"name": "f"}}],
            "tool_choice": {"type": "function", "function": {"name": "g"}},
        },
        "tool_choice.function.name",
    ),
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", FIELDS)
async def test_a_bad_field_is_named(http: httpx.AsyncClient, name: str, *, stream: bool) -> None:
    fields, param = FIELDS[name]
    body = {**ASK, **({"stream": True} if stream and "stream" not in name else {}), **fields}

    response = await http.post(CHAT, json=body)

    error = error_of(response)
    assert response.status_code == 400
    assert error["type"] == "invalid_request_error"
    assert error["param"] == param
    assert param in error["message"]


async def test_an_unknown_model_is_not_found(http: httpx.AsyncClient) -> None:
    for response in (
        await http.post(CHAT, json={**ASK, "model": "nobody"}),
        await http.get("/v3/models/nobody"),
        await http.get("/v3/models/some%2Fnobody"),
    ):
        error = error_of(response)
        assert response.status_code == 404
        assert (error["param"], error["code"]) == ("model", "model_not_found")


async def test_a_prompt_longer_than_the_context_is_refused(http: httpx.AsyncClient) -> None:
    response = await http.post(
        CHAT, json={**ASK, "messages": [{"role": "user", "content": "x" * 5000}]}
    )

    error = error_of(response)
    assert response.status_code == 400
    assert (error["param"], error["code"]) == ("messages", "context_length_exceeded")
    assert "4096" in error["message"]


async def test_a_body_over_the_limit_is_too_large(http: httpx.AsyncClient) -> None:
    response = await http.post(
        CHAT, json={**ASK, "messages": [{**USER, "content": "x" * (9 << 20)}]}
    )

    assert response.status_code == 413
    assert error_of(response)["code"] == "request_too_large"


async def test_a_body_below_the_limit_is_read(http: httpx.AsyncClient) -> None:
    response = await http.post(CHAT, json={**ASK, "user": "x" * (6 << 20)})

    assert response.status_code == 200


async def test_a_body_of_another_type_is_unsupported(http: httpx.AsyncClient) -> None:
    response = await http.post(CHAT, content=b"model=demo", headers={"content-type": "text/plain"})

    assert response.status_code == 415
    assert error_of(response)["code"] == "unsupported_media_type"


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", CHAT), ("DELETE", CHAT), ("PUT", CHAT), ("POST", "/v3/models"), ("PATCH", "/health")],
)
async def test_a_wrong_method_is_not_allowed(
    http: httpx.AsyncClient, method: str, path: str
) -> None:
    response = await http.request(method, path)

    assert response.status_code == 405
    assert response.headers["allow"]
    assert error_of(response)["code"] == "method_not_allowed"


@pytest.mark.parametrize("path", ["/", "/v3/nothing", "/v2/chat/completions", "/v3/chat"])
async def test_a_wrong_path_is_not_found(http: httpx.AsyncClient, path: str) -> None:
    response = await http.post(path, json=ASK)

    assert response.status_code == 404
    assert error_of(response)["code"] == "not_found"


@pytest.mark.parametrize("path", ["/v3/chat/completions/", "/v3/models/"])
async def test_a_path_is_told_as_it_was_sent(http: httpx.AsyncClient, path: str) -> None:
    response = await http.request("POST" if "chat" in path else "GET", path, json=ASK)

    if response.status_code != 200:
        assert path in error_of(response)["message"]
        assert "RestService" not in response.text


async def test_an_id_that_is_no_text_is_refused(http: httpx.AsyncClient) -> None:
    response = await http.get("/v3/models/%ff")

    assert response.status_code == 400
    error_of(response)


async def test_the_typed_path_names_the_field_too(http: httpx.AsyncClient) -> None:
    body = {"model": "successor", "messages": [{"role": "ROLE_TOOL", "content": []}]}

    for path in ("/ovchat/v1/chat:create", "/ovchat/v1/chat:stream"):
        response = await http.post(path, json=body)
        assert response.status_code == 400
        assert error_of(response)["param"] == "messages[0].tool_call_id"


async def test_the_typed_path_refuses_wrong_types(http: httpx.AsyncClient) -> None:
    response = await http.post("/ovchat/v1/chat:create", json={"model": {"a": 1}})

    assert response.status_code == 400
    assert "model" in error_of(response)["message"]


async def test_nothing_that_was_refused_disturbs_the_next_request(http: httpx.AsyncClient) -> None:
    for content in (b"{", b"[]", b"\x00"):
        await http.post(CHAT, content=content, headers=JSON)

    response = await http.post(CHAT, json={**ASK, "messages": [{**USER, "content": "a"}]})

    assert response.json()["choices"][0]["message"]["content"] == "bc"
