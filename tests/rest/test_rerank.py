"""Rerank and score through Envoy, at both doors, beside what others make of the same pairs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import cohere
import grpc.aio
import httpx
import pytest

from ovchat.v1 import rerank_service_pb2
from ovchat.v1.rerank_service_pb2_grpc import RerankServiceStub
from tests.pooling_folders import RERANK, TOLERANCE, expected, folder_settings
from tests.rest.conftest import running_stack

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from ovchat_server.settings import ModelSettings
    from tests.rest.conftest import Stack

RERANK_PATHS = ["/v3/rerank", "/v1/rerank", "/v2/rerank", "/rerank"]
SCORE_PATHS = ["/v3/score", "/v1/score", "/score"]


@pytest.fixture(scope="module")
def ranking(tmp_path_factory: pytest.TempPathFactory, successor: ModelSettings) -> Iterator[Stack]:
    """Models that rank, beside one that makes embeddings and one that chats."""
    models = [folder_settings(name) for name in (*RERANK, "bert")]
    with running_stack(tmp_path_factory.mktemp("ranking"), successor, *models) as stack:
        yield stack


@pytest.fixture(scope="module")
async def http(ranking: Stack) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=ranking.url, timeout=None) as client:
        yield client


@pytest.fixture(scope="module")
async def typed(ranking: Stack) -> AsyncIterator[Any]:
    target = f"127.0.0.1:{ranking.rest_port}"
    async with grpc.aio.insecure_channel(target) as channel:
        yield RerankServiceStub(channel)


def far(found: Sequence[float], wanted: Sequence[float]) -> float:
    return max(abs(one - other) for one, other in zip(found, wanted, strict=True))


def in_order(scores: Sequence[float]) -> list[int]:
    return sorted(range(len(scores)), key=lambda index: -scores[index])


async def asked(http: httpx.AsyncClient, path: str, **fields: Any) -> Any:
    answer = await http.post(path, json=fields)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("model", RERANK)
async def test_scores_are_those_of_the_reference(
    http: httpx.AsyncClient, typed: Any, model: str
) -> None:
    known = expected(model)
    query, documents, wanted = known["query"], known["documents"], known["scores"]

    body = await asked(http, "/v3/rerank", model=model, query=query, documents=documents)
    message = await typed.Rerank(
        rerank_service_pb2.RerankRequest(model=model, query=query, documents=documents)
    )
    scored = await asked(http, "/v1/score", model=model, text_1=query, text_2=documents)
    typed_scores = await typed.Score(
        rerank_service_pb2.ScoreRequest(model=model, queries=[query], documents=documents)
    )

    results = body["results"]
    assert [item["index"] for item in results] == in_order(wanted)
    by_index = {item["index"]: item["relevance_score"] for item in results}
    assert far([by_index[index] for index in range(len(wanted))], wanted) < TOLERANCE
    assert [item.index for item in message.results] == in_order(wanted)
    assert far([item["score"] for item in scored["data"]], wanted) < TOLERANCE
    assert far(typed_scores.scores, wanted) < TOLERANCE
    assert body["usage"]["total_tokens"] == scored["usage"]["total_tokens"]
    assert message.usage.prompt_tokens == body["usage"]["total_tokens"]


@pytest.mark.parametrize("model", RERANK)
async def test_scores_are_the_same_alone_and_in_a_crowd(
    http: httpx.AsyncClient, model: str
) -> None:
    known = expected(model)
    pairs = [{"text_1": known["query"], "text_2": text} for text in known["documents"]]

    crowd = await asyncio.gather(
        *(asked(http, "/score", model=model, **pair) for pair in pairs * 8)
    )

    assert far([body["data"][0]["score"] for body in crowd], known["scores"] * 8) < TOLERANCE


@pytest.mark.parametrize("path", RERANK_PATHS)
async def test_the_best_are_returned_with_their_texts_if_asked_for(
    http: httpx.AsyncClient, path: str
) -> None:
    known = expected("xlm-r-rerank")
    query, documents = known["query"], known["documents"]
    best = in_order(known["scores"])[:2]

    fields = {"model": "xlm-r-rerank", "query": query, "documents": documents, "top_n": 2}
    plain = await asked(http, path, **fields)
    objects = [{"text": text} for text in documents]
    told = await asked(http, path, **{**fields, "documents": objects, "return_documents": True})

    assert [item["index"] for item in plain["results"]] == best
    assert all("document" not in item for item in plain["results"])
    assert [item["document"]["text"] for item in told["results"]] == [
        documents[index] for index in best
    ]


@pytest.mark.parametrize("path", SCORE_PATHS)
async def test_pairs_are_scored_one_by_one_and_one_with_many(
    http: httpx.AsyncClient, path: str
) -> None:
    known = expected("bert-rerank")
    query, documents, wanted = known["query"], known["documents"], known["scores"]

    one = await asked(http, path, model="bert-rerank", text_1=query, text_2=documents[3])
    many = await asked(
        http, path, model="bert-rerank", text_1=[query] * len(documents), text_2=documents
    )

    assert far([one["data"][0]["score"]], [wanted[3]]) < TOLERANCE
    assert far([item["score"] for item in many["data"]], wanted) < TOLERANCE


async def test_embeddings_rank_by_their_likeness(http: httpx.AsyncClient) -> None:
    known = expected("bert")
    texts, vectors = known["texts"], known["encoded"]
    wanted = [sum(a * b for a, b in zip(vectors[0], other, strict=True)) for other in vectors]

    body = await asked(http, "/v1/rerank", model="bert", query=texts[0], documents=texts)

    found = {item["index"]: item["relevance_score"] for item in body["results"]}
    assert far([found[index] for index in range(len(texts))], wanted) < TOLERANCE
    assert body["results"][0]["index"] == 0


async def test_coheres_clients_rank(ranking: Stack) -> None:
    known = expected("xlm-r-rerank")
    query, documents = known["query"], known["documents"]
    order = in_order(known["scores"])

    async with cohere.AsyncClientV2("unused", base_url=ranking.url) as client:
        second = await client.rerank(
            model="xlm-r-rerank", query=query, documents=documents, top_n=3, max_tokens_per_doc=99
        )
    async with cohere.AsyncClient("unused", base_url=ranking.url) as older:
        first = await older.rerank(
            model="xlm-r-rerank", query=query, documents=documents, return_documents=True
        )

    assert [item.index for item in second.results] == order[:3]
    assert [item.index for item in first.results] == order
    assert first.results[0].document.text == documents[order[0]]
    assert far([item.relevance_score for item in first.results], sorted(known["scores"])[::-1]) < (
        TOLERANCE
    )


@pytest.mark.parametrize(
    ("path", "fields", "param", "message"),
    [
        ("/v1/rerank", {"model": "successor"}, "model", "text-generation, not for rerank"),
        ("/v1/embeddings", {"input": "a"}, "model", "'bert-rerank', a model for rerank"),
        ("/v1/rerank", {"documents": ["a", "cat " * 200]}, "documents[1]", "tokens > 128 maximum"),
        ("/v1/score", {"text_1": "a", "text_2": ["a", "cat " * 200]}, "text_2[1]", "> 128 maximum"),
        ("/v1/rerank", {"query": "cat " * 200}, "query", "tokens > 128 maximum"),
        ("/v1/rerank", {"query": "cat " * 60, "model": "bert"}, "query", "tokens > 48 maximum"),
        ("/v1/score", {"text_1": ["cat " * 200], "text_2": ["a"]}, "text_1[0]", "> 128 maximum"),
        ("/v1/rerank", {"truncate_prompt_tokens": 4}, "truncate_prompt_tokens", "has 4 tokens"),
        ("/v1/rerank", {"model": None}, "model", "is required"),
        (
            "/v1/chat/completions",
            {"messages": [{"role": "user", "content": "a"}]},
            "model",
            "rerank",
        ),
    ],
)
async def test_what_a_model_cannot_do_is_refused_by_name(
    http: httpx.AsyncClient, path: str, fields: dict[str, Any], param: str, message: str
) -> None:
    if path.endswith("rerank"):
        fields = {"query": "a", "documents": ["b"], **fields}
    answer = await http.post(path, json={"model": "bert-rerank", **fields})

    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert error["param"] == param
    assert message in error["message"]


async def test_long_documents_are_cut_if_they_are_to_be(http: httpx.AsyncClient) -> None:
    fields = {"model": "bert-rerank", "query": "cat"}

    short = await asked(http, "/v1/rerank", **fields, documents=["cat " * 20])
    for cut in ({"max_tokens_per_doc": 20}, {"truncate_prompt_tokens": 24}):
        body = await asked(http, "/v1/rerank", **fields, documents=["cat " * 500], **cut)
        assert body["results"][0]["relevance_score"] == pytest.approx(
            short["results"][0]["relevance_score"], abs=TOLERANCE
        )
