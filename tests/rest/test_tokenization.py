"""Tokenize, detokenize, versions and the choice of models, through Envoy."""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING, Any

import pytest
import tokenizers
from google.protobuf import json_format

from tests.conftest import ROOT
from tests.rest.test_errors import error_of
from tests.tokenization import REFUSED, SERVED, TOOL, USER, typed

if TYPE_CHECKING:
    import httpx

TOKENIZE, DETOKENIZE = "/v3/tokenize", "/v3/detokenize"
DEMO = tokenizers.Tokenizer.from_file(str(ROOT / "models/demo/tokenizer.json"))
PREFIXES = ["/v3", "/v1", ""]


def ids(text: str) -> list[int]:
    tokens: list[int] = DEMO.encode(text).ids
    return tokens


async def tokenize(http: httpx.AsyncClient, path: str = TOKENIZE, **fields: Any) -> dict[str, Any]:
    response = await http.post(path, json={"model": "demo", **fields})
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    body: dict[str, Any] = response.json()
    return body


@pytest.mark.parametrize("prefix", PREFIXES)
async def test_a_text_has_ovms_and_vllms_keys_at_once(http: httpx.AsyncClient, prefix: str) -> None:
    for form in ("text", "prompt"):
        assert await tokenize(http, f"{prefix}/tokenize", **{form: "Hello there"}) == {
            "count": 3,
            "max_model_len": 4096,
            "tokens": ids("Hello there"),
            "token_strs": None,
        }


async def test_token_strings_are_the_vocabularys(http: httpx.AsyncClient) -> None:
    body = await tokenize(http, prompt="Hello there", return_token_strs=True)

    assert body["token_strs"] == ["Hello", "Ġ", "there"]


async def test_several_texts_have_an_array_each(http: httpx.AsyncClient) -> None:
    texts = ["Hello there", "", "a é"]

    plain = await tokenize(http, text=texts)
    told = await tokenize(http, text=texts, return_token_strs=True)

    assert plain["tokens"] == told["tokens"] == [ids(text) for text in texts]
    assert plain["count"] == len(ids("Hello there")) + len(ids("a é"))
    assert plain["token_strs"] is None
    assert told["token_strs"] == [DEMO.encode(text).tokens for text in texts]


async def test_a_text_of_a_list_of_one_has_its_tokens_flat_as_with_ovms(
    http: httpx.AsyncClient,
) -> None:
    body = await tokenize(http, text=["Hello"], return_token_strs=True)

    assert (body["tokens"], body["token_strs"]) == (ids("Hello"), ["Hello"])


@pytest.mark.parametrize("name", SERVED)
async def test_both_doors_answer_the_same(http: httpx.AsyncClient, name: str) -> None:
    message = json_format.MessageToDict(typed(SERVED[name]), preserving_proto_field_name=True)
    answer = await http.post("/ovchat/v1/tokenizer:tokenize", json=message)
    sequences = [
        (sequence.get("tokens", []), sequence.get("token_strs", []))
        for sequence in answer.json()["sequences"]
    ]

    body = await tokenize(http, **SERVED[name])

    tokens, strings = body["tokens"], body["token_strs"]
    if len(sequences) == 1:
        tokens, strings = [tokens], [strings]
    assert tokens == [numbers for numbers, _ in sequences]
    assert (strings or [None])[0] is None or strings == [texts for _, texts in sequences]
    assert body["count"] == answer.json().get("count", 0)
    assert body["max_model_len"] == answer.json()["context_length"] == 4096


async def test_a_conversation_counts_what_a_chat_is_charged_for(http: httpx.AsyncClient) -> None:
    # The body of a chat as it is: what does not shape the prompt is named and ignored.
    chat = {"model": "demo", "messages": [USER], "tools": [TOOL], "max_tokens": 1, "seed": 1}
    usage = (await http.post("/v3/chat/completions", json=chat)).json()["usage"]

    response = await http.post(TOKENIZE, json=chat)

    assert response.json()["count"] == usage["prompt_tokens"]
    assert response.headers["x-ignored-parameters"] == "max_tokens, seed"


@pytest.mark.parametrize("name", REFUSED)
async def test_a_bad_field_is_named(http: httpx.AsyncClient, name: str) -> None:
    fields, field = REFUSED[name]

    response = await http.post(TOKENIZE, json={"model": "demo", **fields})

    error = error_of(response)
    assert response.status_code == 400
    assert (error["type"], error["param"]) == ("invalid_request_error", field)


@pytest.mark.parametrize("path", [TOKENIZE, DETOKENIZE])
async def test_a_model_is_required_and_must_be_served(http: httpx.AsyncClient, path: str) -> None:
    body = {"prompt": "a"} if path == TOKENIZE else {"tokens": [1]}

    missing = await http.post(path, json=body)
    unknown = await http.post(path, json={**body, "model": "nobody"})

    assert (missing.status_code, error_of(missing)["param"]) == (400, "model")
    assert (unknown.status_code, error_of(unknown)["code"]) == (404, "model_not_found")


@pytest.mark.slow
async def test_an_answer_of_many_megabytes_arrives_whole(http: httpx.AsyncClient) -> None:
    # Envoy takes a single message of the 8 MiB for too large.
    body = await tokenize(http, model="successor", prompt="x" * (4 << 20), return_token_strs=True)

    assert body["count"] == 4 << 20
    assert body["token_strs"] == ["x"] * (4 << 20)


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("text", ["", "Hello <|im_end|>\n<think>é😀"])
async def test_tokens_become_their_text_again(
    http: httpx.AsyncClient, prefix: str, text: str
) -> None:
    tokens = (await tokenize(http, prompt=text))["tokens"]

    response = await http.post(f"{prefix}/detokenize", json={"model": "demo", "tokens": tokens})
    typed_response = await http.post(
        "/ovchat/v1/tokenizer:detokenize", json={"model": "demo", "tokens": tokens}
    )

    assert response.json() == {"prompt": text}
    assert typed_response.json().get("prompt", "") == text


@pytest.mark.parametrize(
    ("tokens", "field"),
    [(None, "tokens"), ("1", "tokens"), ([1, "2"], "tokens[1]"), ([1, -1, 1536], "tokens[1]")],
)
async def test_wrong_tokens_are_refused_by_name(
    http: httpx.AsyncClient, tokens: Any, field: str
) -> None:
    response = await http.post(DETOKENIZE, json={"model": "demo", "tokens": tokens})

    assert response.status_code == 400
    assert error_of(response)["param"] == field


async def test_unknown_keys_of_detokenize_are_named(http: httpx.AsyncClient) -> None:
    body = {"model": "demo", "tokens": [1], "skip_special_tokens": True}

    response = await http.post(DETOKENIZE, json=body)

    assert response.headers["x-ignored-parameters"] == "skip_special_tokens"


@pytest.mark.parametrize("path", ["/version", "/ovchat/v1/version"])
async def test_versions_are_those_installed(http: httpx.AsyncClient, path: str) -> None:
    assert (await http.get(path)).json() == {
        "version": metadata.version("ovchat"),
        "openvino": metadata.version("openvino"),
        "openvino_genai": metadata.version("openvino-genai"),
    }


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("type=text-generation", 2),
        ("provider=openvino&type=text-generation", 2),
        ("type=text-generation&api-version=1", 2),
        ("unknown=x&other.key=y", 2),
        ("type=", 2),
        ("type=text-embedding", 0),
        ("provider=ollama&type=text-generation", 0),
    ],
)
async def test_models_are_chosen_by_type_and_provider(
    http: httpx.AsyncClient, query: str, found: int
) -> None:
    for path in ("/v3/models", "/v1/models"):
        body = (await http.get(f"{path}?{query}")).json()
        assert body["object"] == "list"
        assert len(body["data"]) == found
        for model in body["data"]:
            assert (model["type"], model["provider"]) == ("text-generation", "openvino")
            assert model["sampling_control"] is True
    typed_answer = (await http.get(f"/ovchat/v1/models?{query}")).json()
    assert len(typed_answer.get("models", [])) == found
    assert all(model["sampling_control"] for model in typed_answer.get("models", []))


@pytest.mark.parametrize("prefix", PREFIXES)
async def test_a_tokenizer_is_described_as_vllm_does(http: httpx.AsyncClient, prefix: str) -> None:
    path = f"{prefix}/tokenizer_info"
    described = (await http.get(path, params={"model": "demo"})).json()
    several = await http.get(path)
    unknown = await http.get(path, params={"model": "nobody"})

    assert described["eos_token"] == "<|im_end|>"
    assert described["tokenizer_class"] == "PreTrainedTokenizerFast"
    assert "<|im_end|>" in described["added_tokens_decoder"].values()
    assert "{%" in described["chat_template"]
    assert (several.status_code, error_of(several)["param"]) == (400, "model")
    assert (unknown.status_code, error_of(unknown)["code"]) == (404, "model_not_found")
