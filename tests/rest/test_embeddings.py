"""Embeddings through Envoy, at both doors, beside what sentence-transformers makes of the texts."""

from __future__ import annotations

import asyncio
import base64
import random
import struct
from typing import TYPE_CHECKING, Any

import grpc.aio
import httpx
import openai
import pytest

from ovchat.v1 import completion_pb2, embedding_service_pb2
from ovchat.v1.embedding_service_pb2_grpc import EmbeddingServiceStub
from tests.pooling_folders import EMBEDDING, TOLERANCE, expected, folder_settings, furthest
from tests.rest.conftest import running_stack, sdk_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from ovchat_server.settings import ModelSettings
    from tests.rest.conftest import Stack

# The vector of each pooling as it is, without the model's normalisation.
POOLINGS = sorted(expected("bert")["vectors"])
PATHS = ["/v3/embeddings", "/v1/embeddings", "/openvino/v1/embeddings"]


@pytest.fixture(scope="module")
def embedding(
    tmp_path_factory: pytest.TempPathFactory, successor: ModelSettings
) -> Iterator[Stack]:
    """Models that make embeddings, beside one that chats."""
    models = [folder_settings(name) for name in EMBEDDING]
    models += [
        folder_settings("bert", name=f"bert-{pooling}", pooling=pooling, normalize=False)
        for pooling in POOLINGS
    ]
    models.append(folder_settings("bert", name="cut", matryoshka=True))
    with running_stack(tmp_path_factory.mktemp("embedding"), successor, *models) as stack:
        yield stack


@pytest.fixture(scope="module")
async def sdk(embedding: Stack) -> AsyncIterator[openai.AsyncOpenAI]:
    async with sdk_of(embedding) as client:
        yield client


@pytest.fixture(scope="module")
async def http(embedding: Stack) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=embedding.url, timeout=None) as client:
        yield client


@pytest.fixture(scope="module")
async def typed(embedding: Stack) -> AsyncIterator[Any]:
    target = f"127.0.0.1:{embedding.rest_port}"
    async with grpc.aio.insecure_channel(target) as channel:
        yield EmbeddingServiceStub(channel)


async def embedded(sdk: openai.AsyncOpenAI, model: str, texts: Any, **fields: Any) -> Any:
    answer = await sdk.embeddings.create(model=model, input=texts, **fields)
    return [item.embedding for item in answer.data]


@pytest.mark.parametrize("model", EMBEDDING)
async def test_vectors_are_those_of_sentence_transformers(
    sdk: openai.AsyncOpenAI, typed: Any, model: str
) -> None:
    texts, wanted = expected(model)["texts"], expected(model)["encoded"]

    answer = await sdk.embeddings.create(model=model, input=texts)
    numbers = await embedded(sdk, model, texts, encoding_format="float")
    request = embedding_service_pb2.CreateEmbeddingsRequest(
        model=model, input=[completion_pb2.Prompt(text=text) for text in texts]
    )
    message = await typed.CreateEmbeddings(request)

    assert furthest([item.embedding for item in answer.data], wanted) < TOLERANCE
    assert furthest(numbers, wanted) < TOLERANCE
    assert furthest([item.values for item in message.embeddings], wanted) < TOLERANCE
    assert [item.index for item in answer.data] == [*range(len(texts))]
    assert answer.model == message.model == model
    tokens = sum(expected(model)["tokens"])
    assert answer.usage.prompt_tokens == answer.usage.total_tokens == tokens
    assert message.usage.prompt_tokens == tokens


@pytest.mark.parametrize("pooling", POOLINGS)
async def test_a_model_is_pooled_as_its_options_say(sdk: openai.AsyncOpenAI, pooling: str) -> None:
    texts, wanted = expected("bert")["texts"], expected("bert")["vectors"][pooling]

    assert furthest(await embedded(sdk, f"bert-{pooling}", texts), wanted) < TOLERANCE


@pytest.mark.parametrize("model", EMBEDDING)
async def test_a_vector_is_the_same_alone_and_in_a_crowd(
    sdk: openai.AsyncOpenAI, model: str
) -> None:
    texts, wanted = expected(model)["texts"], expected(model)["encoded"]
    chosen = random.Random(0).choices(range(len(texts)), k=100)

    alone = [await embedded(sdk, model, text) for text in texts]
    crowd = await asyncio.gather(*(embedded(sdk, model, texts[index]) for index in chosen))

    assert furthest([vector for [vector] in alone], wanted) < TOLERANCE
    assert furthest([vector for [vector] in crowd], [wanted[index] for index in chosen]) < TOLERANCE


@pytest.mark.parametrize("path", PATHS)
async def test_base64_is_of_little_endian_float32s(http: httpx.AsyncClient, path: str) -> None:
    fields = {"model": "bert", "input": "cat"}
    [plain] = (await http.post(path, json=fields)).json()["data"]
    coded = await http.post(path, json={**fields, "encoding_format": "base64"})
    [item] = coded.json()["data"]

    vector = struct.unpack(f"<{len(plain['embedding'])}f", base64.b64decode(item["embedding"]))
    assert list(vector) == plain["embedding"]
    assert (item["object"], coded.json()["object"]) == ("embedding", "list")


async def test_token_ids_are_taken_as_they_are(
    sdk: openai.AsyncOpenAI, http: httpx.AsyncClient
) -> None:
    text = "The cat sits on the mat."
    tokens = (await http.post("/tokenize", json={"model": "bert", "prompt": text})).json()["tokens"]

    assert await embedded(sdk, "bert", tokens) == await embedded(sdk, "bert", text)
    assert await embedded(sdk, "bert", [tokens]) == await embedded(sdk, "bert", [text])


async def test_prompts_are_the_models_own(sdk: openai.AsyncOpenAI) -> None:
    model, texts = "qwen3-embedding", expected("qwen3-embedding")["texts"]
    wanted = expected(model)["query"]
    asked = texts[: len(wanted)]

    for fields in ({"prompt_name": "query"}, {"input_type": "query"}):
        found = await embedded(sdk, model, asked, extra_body=fields)
        assert furthest(found, wanted) < TOLERANCE
    as_document = await embedded(sdk, model, asked, extra_body={"input_type": "document"})
    assert furthest(as_document, expected(model)["encoded"][: len(wanted)]) < TOLERANCE
    # A model without prompts takes texts as they are.
    plain = await embedded(sdk, "bert", asked, extra_body={"input_type": "query"})
    assert plain == await embedded(sdk, "bert", asked)


async def test_fewer_dimensions_are_the_first_ones_made_long_again(
    sdk: openai.AsyncOpenAI,
) -> None:
    [whole] = await embedded(sdk, "cut", "cat")
    [cut] = await embedded(sdk, "cut", "cat", dimensions=8)

    length = sum(number * number for number in whole[:8]) ** 0.5
    assert furthest([cut], [[number / length for number in whole[:8]]]) < 1e-6
    # All of them may be asked for of any model.
    assert await embedded(sdk, "bert", "cat", dimensions=len(whole)) == [whole]


@pytest.mark.parametrize(
    ("fields", "param", "message"),
    [
        ({"model": "bert", "dimensions": 8}, "dimensions", "must be 32, the size"),
        ({"model": "cut", "dimensions": 33}, "dimensions", "at most 32"),
        ({"model": "bert", "prompt_name": "query"}, "prompt_name", "it has none"),
        ({"model": "qwen3-embedding", "prompt_name": "no"}, "prompt_name", "'query', 'document'"),
        ({"model": "bert", "input": ["a", "cat " * 60]}, "input[1]", "62 tokens > 48 maximum"),
        ({"model": "bert", "truncate_prompt_tokens": 2}, "truncate_prompt_tokens", "no room"),
        ({"model": "bert", "input": [[5, 6]], "input_type": "query"}, "input_type", "token ids"),
        ({"model": "bert", "input": [[1, 1 << 20]]}, "input[0][1]", "must be a token of the model"),
        ({"model": "bert", "input": " ", "add_special_tokens": False}, "input", "has no tokens"),
        ({"model": "successor"}, "model", "for text-generation, not for text-embedding"),
        ({"model": None}, "model", "is required"),
    ],
)
async def test_what_a_model_cannot_do_is_refused_by_name(
    http: httpx.AsyncClient, fields: dict[str, Any], param: str, message: str
) -> None:
    answer = await http.post("/v3/embeddings", json={"input": "cat", **fields})

    error = answer.json()["error"]
    assert answer.status_code == 400, answer.text
    assert error["param"] == param
    assert message in error["message"]


@pytest.mark.parametrize("side", ["left", "right"])
async def test_longer_texts_are_cut_if_they_are_to_be(sdk: openai.AsyncOpenAI, side: str) -> None:
    words = [f"{number}" for number in range(40)]
    body = {"truncate_prompt_tokens": 12, "truncation_side": side}
    kept = words[-10:] if side == "left" else words[:10]

    # A long white space and a long word are few tokens.
    assert await embedded(sdk, "bert", " " * 10_000 + "cat") == await embedded(sdk, "bert", "cat")
    cut = await embedded(sdk, "bert", " ".join(words), extra_body=body)

    # Their special tokens are not cut.
    assert furthest(cut, await embedded(sdk, "bert", " ".join(kept))) < TOLERANCE
    long = await embedded(sdk, "bert", "cat " * 500, extra_body={"truncate_prompt_tokens": -1})
    assert furthest(long, await embedded(sdk, "bert", "cat " * 46)) < TOLERANCE


async def test_chats_are_refused_by_models_that_make_embeddings(sdk: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="'bert', a model for text-embedding"):
        await sdk.chat.completions.create(model="bert", messages=[{"role": "user", "content": "a"}])


async def test_lists_tell_what_models_are_for(http: httpx.AsyncClient) -> None:
    listed = (await http.get("/v1/models", params={"type": "text-embedding"})).json()["data"]

    assert {*EMBEDDING} < {model["id"] for model in listed}
    assert {model["type"] for model in listed} == {"text-embedding"}
    [bert] = [model for model in listed if model["id"] == "bert"]
    assert (bert["max_model_len"], bert["state"]) == (48, "ready")
