"""Embeddings, rankings and scores as each door writes them."""

from __future__ import annotations

import base64
import json
import struct
import threading
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest
from google.api import httpbody_pb2

from ovchat.v1 import completion_pb2, embedding_service_pb2, rerank_service_pb2, rest_service_pb2
from ovchat_server.domain.embedding_request import read_embedding_request
from ovchat_server.domain.embeddings import EmbeddingRequest, Embeddings, EncodingFormat
from ovchat_server.domain.errors import InvalidRequestError
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.limits import DEFAULT_LIMITS
from ovchat_server.domain.rerank import RankedDocument, Ranking, RerankRequest, ScoreRequest, Scores
from ovchat_server.rest import rerank
from ovchat_server.rest.apis import CallApi
from ovchat_server.rest.openai import embeddings
from ovchat_server.rest.openai.codec import encode_error
from ovchat_server.rest.provider_paths import ProviderApi
from ovchat_server.rest.request_body import BodyReader
from ovchat_server.rest.response_body import PIECE_BYTES
from ovchat_server.rpc import pooling_servicers
from ovchat_server.rpc.pooling_servicers import EmbeddingServicer, RerankServicer
from ovchat_server.serving.codec_threads import CodecThreads
from ovchat_server.serving.model_registry import ModelRegistry
from tests.unit.serving_tools import WORKERS, ScriptedEngine, served

if TYPE_CHECKING:
    from ovchat_server.serving.services import Services

THREADS = CodecThreads(WORKERS, WORKERS)
BODIES = BodyReader(strict=False, limits=DEFAULT_LIMITS, threads=THREADS)
# In float32 as they are.
NUMBERS = [0.5, -1.25, 0.0, 3.0]
VECTOR = struct.pack("<4f", *NUMBERS)
NO_CONTEXT: Any = None


def result(
    *vectors: bytes, encoding_format: EncodingFormat = EncodingFormat.FLOAT, model: str = "m"
) -> Embeddings:
    return Embeddings("embd-1", 7, model, vectors, 5, encoding_format)


RANKING = Ranking("rerank-1", "m", (RankedDocument(1, 0.75, "b"), RankedDocument(0, 0.25)), 9)
SCORES = Scores("score-1", 7, "m", (0.5, 0.25), 9)


class Answering:
    """Answers what it is told, and knows what it was asked and in which thread it was read."""

    def __init__(self, answer: Any = None, error: InvalidRequestError | None = None) -> None:
        self.asked: list[Any] = []
        self._answer = answer
        self._error = error
        self.embeddings = self.reranking = self
        self.threads = THREADS

    async def create(self, request: Any) -> Any:
        self.asked.append(request)
        if self._error:
            raise self._error
        return self._answer

    rerank = score = create

    @property
    def services(self) -> Services:
        return cast("Services", self)


def test_embeddings_are_openais_list_with_vllms_id() -> None:
    written = msgspec.json.encode(embeddings.embeddings(result(VECTOR, VECTOR[:8])))
    assert msgspec.json.decode(written) == {
        "id": "embd-1",
        "object": "list",
        "created": 7,
        "model": "m",
        "data": [
            {"object": "embedding", "index": 0, "embedding": NUMBERS},
            {"object": "embedding", "index": 1, "embedding": NUMBERS[:2]},
        ],
        "usage": {"prompt_tokens": 5, "total_tokens": 5},
    }


def test_base64_is_of_the_same_numbers() -> None:
    written: Any = embeddings.embeddings(result(VECTOR, encoding_format=EncodingFormat.BASE64))

    [item] = written["data"]
    assert list(struct.unpack("<4f", base64.b64decode(item["embedding"]))) == NUMBERS


def test_a_ranking_is_what_the_clients_of_all_read() -> None:
    assert rerank.ranking(RANKING) == {
        "id": "rerank-1",
        "model": "m",
        "results": [
            {"index": 1, "relevance_score": 0.75, "document": {"text": "b"}},
            {"index": 0, "relevance_score": 0.25},
        ],
        "usage": {"prompt_tokens": 9, "total_tokens": 9},
        "meta": {"api_version": {"version": "2"}, "billed_units": {"search_units": 1}},
    }


def test_an_empty_document_that_was_asked_for_is_returned() -> None:
    ranking = Ranking("rerank-1", "m", (RankedDocument(0, 0.5, ""),), 1)

    written: Any = rerank.ranking(ranking)

    assert written["results"][0]["document"] == {"text": ""}
    [document] = pooling_servicers.ranking_message(ranking).results
    assert document.HasField("document")


def test_scores_are_vllms_list() -> None:
    assert rerank.scores(SCORES) == {
        "id": "score-1",
        "object": "list",
        "created": 7,
        "model": "m",
        "data": [
            {"object": "score", "index": 0, "score": 0.5},
            {"object": "score", "index": 1, "score": 0.25},
        ],
        "usage": {"prompt_tokens": 9, "total_tokens": 9},
    }


async def posted(api: Any, fields: dict[str, Any]) -> list[bytes]:
    """The pieces of an answer to a body."""
    handler = api.handler(BODIES)
    body = httpbody_pb2.HttpBody(data=json.dumps(fields).encode())
    return [piece.data async for piece in handler.unary_stream(body, NO_CONTEXT)]


@pytest.mark.parametrize("large", [False, True])
async def test_only_a_large_answer_is_encoded_in_a_thread(large: bool) -> None:  # noqa: FBT001
    # As many bytes as are written in place, or a number more.
    vector = bytes(embeddings.MAX_BYTES_IN_PLACE + 4 * large)
    written: list[threading.Thread] = []

    def encode(answer: Embeddings) -> Any:
        written.append(threading.current_thread())
        return embeddings.embeddings(answer)

    api = CallApi(
        read_embedding_request,
        Answering(result(vector)).create,
        encode,
        encode_error,
        embeddings.are_large,
    )

    pieces = await posted(api, {"input": "a"})

    assert (written != [threading.main_thread()]) is large
    [item] = json.loads(b"".join(pieces))["data"]
    assert item["embedding"] == [0.0] * (len(vector) // 4)


async def test_a_large_answer_is_cut_into_pieces() -> None:
    vectors = [bytes(PIECE_BYTES)] * 2
    api = CallApi(
        read_embedding_request,
        Answering(result(*vectors)).create,
        embeddings.embeddings,
        encode_error,
        embeddings.are_large,
    )

    pieces = await posted(api, {"input": "a"})

    assert len(pieces) == 3
    assert max(map(len, pieces)) == PIECE_BYTES
    assert len(json.loads(b"".join(pieces))["data"]) == 2


def test_a_ranking_is_large_by_the_texts_in_it() -> None:
    fits = RankedDocument(0, 0.5, "a" * rerank.MAX_CHARACTERS_IN_PLACE)
    more = RankedDocument(1, 0.5, "b")

    assert not rerank.is_large(Ranking("", "", (fits, RankedDocument(1, 0.5)), 1))
    assert rerank.is_large(Ranking("", "", (fits, more), 1))


async def test_a_path_may_name_the_provider_of_an_embedding_model() -> None:
    answering = Answering(result(VECTOR))
    api = CallApi(read_embedding_request, answering.create, embeddings.embeddings, encode_error)
    registry = ModelRegistry([served(ScriptedEngine())])
    handler: Any = ProviderApi(api, registry).handler(BODIES)
    request = rest_service_pb2.RestServiceProviderBody(
        prefix="openvino", body=httpbody_pb2.HttpBody(data=b'{"input": "a", "model": "demo"}')
    )

    pieces = [piece.data async for piece in handler.unary_stream(request, NO_CONTEXT)]

    [asked] = answering.asked
    assert isinstance(asked, EmbeddingRequest)
    assert asked.model == "openvino/demo"
    assert json.loads(b"".join(pieces))["data"][0]["embedding"] == NUMBERS


async def test_the_contracts_embeddings_have_the_same_numbers() -> None:
    answering = Answering(result(VECTOR, VECTOR[:8], b""))
    servicer = EmbeddingServicer(answering.services, DEFAULT_LIMITS)
    request = embedding_service_pb2.CreateEmbeddingsRequest(
        model="m", input=[completion_pb2.Prompt(text="a")]
    )

    answer = await servicer.CreateEmbeddings(request, NO_CONTEXT)

    assert (answer.id, answer.created, answer.model) == ("embd-1", 7, "m")
    assert [list(item.values) for item in answer.embeddings] == [NUMBERS, NUMBERS[:2], []]
    assert (answer.usage.prompt_tokens, answer.usage.total_tokens) == (5, 5)
    assert not answer.usage.HasField("completion_tokens")


@pytest.mark.parametrize("large", [False, True])
async def test_only_a_large_message_is_made_in_a_thread(
    monkeypatch: pytest.MonkeyPatch,
    large: bool,  # noqa: FBT001
) -> None:
    written: list[threading.Thread] = []
    make = pooling_servicers.embeddings_message

    def watched(answer: Embeddings) -> embedding_service_pb2.CreateEmbeddingsResponse:
        written.append(threading.current_thread())
        return make(answer)

    monkeypatch.setattr(pooling_servicers, "embeddings_message", watched)
    vector = bytes(pooling_servicers.MAX_BYTES_IN_PLACE + 4 * large)
    servicer = EmbeddingServicer(Answering(result(vector)).services, DEFAULT_LIMITS)
    request = embedding_service_pb2.CreateEmbeddingsRequest(input=[completion_pb2.Prompt(text="a")])

    answer = await servicer.CreateEmbeddings(request, NO_CONTEXT)

    assert (written != [threading.main_thread()]) is large
    assert len(answer.embeddings[0].values) == len(vector) // 4


async def test_the_contracts_ranking_has_the_documents_that_were_asked_for() -> None:
    answering = Answering(RANKING)
    servicer = RerankServicer(answering.services, DEFAULT_LIMITS)
    request = rerank_service_pb2.RerankRequest(query="q", documents=["a", "b"])

    answer = await servicer.Rerank(request, NO_CONTEXT)

    [asked] = answering.asked
    assert isinstance(asked, RerankRequest)
    assert asked.documents == ("a", "b")
    first, second = answer.results
    assert (first.index, first.relevance_score, first.document) == (1, 0.75, "b")
    assert (second.index, second.relevance_score) == (0, 0.25)
    assert second.HasField("index")
    assert not second.HasField("document")
    assert answer.usage.prompt_tokens == 9


async def test_the_contracts_scores_are_those_of_the_pairs() -> None:
    answering = Answering(SCORES)
    servicer = RerankServicer(answering.services, DEFAULT_LIMITS)
    request = rerank_service_pb2.ScoreRequest(queries=["q"], documents=["a", "b"])

    answer = await servicer.Score(request, NO_CONTEXT)

    [asked] = answering.asked
    assert isinstance(asked, ScoreRequest)
    assert asked.pairs == (("q", "a"), ("q", "b"))
    assert (answer.id, answer.created, answer.model) == ("score-1", 7, "m")
    assert list(answer.scores) == [0.5, 0.25]


async def test_what_the_model_refuses_is_named_as_the_contract_has_it() -> None:
    field = FieldPath.of("input", 0, 1)
    error = InvalidRequestError.about(field, "must be of the vocabulary.")
    servicer = EmbeddingServicer(Answering(error=error).services, DEFAULT_LIMITS)
    tokens = completion_pb2.TokenIds(values=[1, 2])
    request = embedding_service_pb2.CreateEmbeddingsRequest(
        input=[completion_pb2.Prompt(token_ids=tokens)]
    )

    with pytest.raises(InvalidRequestError) as caught:
        await servicer.CreateEmbeddings(request, NO_CONTEXT)

    assert caught.value.param == "input[0].token_ids.values[1]"
