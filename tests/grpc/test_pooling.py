"""Embeddings and rerank where engines are held, die, are asked too much or are broken."""

from __future__ import annotations

import asyncio
import random
import shutil
from typing import TYPE_CHECKING

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2

from ovchat.v1 import completion_pb2, embedding_service_pb2, rerank_service_pb2
from ovchat.v1.embedding_service_pb2_grpc import EmbeddingServiceStub
from ovchat.v1.rerank_service_pb2_grpc import RerankServiceStub
from ovchat_server.app import Server
from tests.grpc.conftest import Client, running
from tests.grpc.engines import engine_of, held, until, until_idle, until_under_way
from tests.pooling_folders import FOLDER, TOLERANCE, expected, folder_settings, furthest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from ovchat_server.settings import ModelSettings, Settings

MAX_QUEUE = 3
TEXTS, VECTORS = expected("bert")["texts"], expected("bert")["encoded"]


@pytest.fixture
async def client(make_settings: Callable[..., Settings]) -> AsyncIterator[Client]:
    async with running(Server(make_settings(folder_settings("bert")))) as client:
        yield client


def asked(texts: list[str]) -> embedding_service_pb2.CreateEmbeddingsRequest:
    prompts = [completion_pb2.Prompt(text=text) for text in texts]
    return embedding_service_pb2.CreateEmbeddingsRequest(model="bert", input=prompts)


async def embedded(client: Client, chosen: list[int]) -> float:
    """How far the vectors of some texts are from the right ones."""
    stub = EmbeddingServiceStub(client.channel)
    answer = await stub.CreateEmbeddings(asked([TEXTS[index] for index in chosen]))
    found = [item.values for item in answer.embeddings]
    return furthest(found, [VECTORS[index] for index in chosen])


def kill(client: Client) -> None:
    connection = client.server._engines["bert"].supervisor._connection  # type: ignore[attr-defined]
    if connection is not None:
        connection.kill()


async def test_a_dead_reranker_leaves_chats_and_embeddings_serving(
    make_settings: Callable[..., Settings], successor: ModelSettings, tmp_path: Path
) -> None:
    folder = shutil.copytree(FOLDER / "bert-rerank", tmp_path / "broken")
    (folder / "openvino_model.bin").write_bytes(b"too short")
    models = [successor, folder_settings("bert"), folder_settings("bert-rerank", path=folder)]
    server = Server(make_settings(*models))
    async with server.running(), grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        client = Client(server, channel)
        await client.wait_for_health("SERVING", "ovchat.v1.ChatService")
        await client.wait_for_health("SERVING", "ovchat.v1.EmbeddingService")
        await client.wait_for_health("SERVING", "ovchat.v1.EmbeddingService/bert")
        for service in ("", "ovchat.v1.RerankService", "ovchat.v1.RerankService/bert-rerank"):
            await client.wait_for_health("NOT_SERVING", service)
        chats_with = health_pb2.HealthCheckRequest(service="ovchat.v1.ChatService/bert")
        with pytest.raises(grpc.aio.AioRpcError) as unknown:
            await client.health.Check(chats_with)
        ranked = rerank_service_pb2.RerankRequest(model="bert-rerank", query="a", documents=["b"])
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await RerankServiceStub(channel).Rerank(ranked)
    assert unknown.value.code() is grpc.StatusCode.NOT_FOUND
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert "'bert-rerank' is not available" in (caught.value.details() or "")


async def test_an_engine_that_dies_loses_no_request(client: Client) -> None:
    with held(client, "bert"):
        calls = [asyncio.create_task(embedded(client, [*range(12)] * 8)) for _ in range(6)]
        await until_under_way(client, "bert", 6)
        kill(client)

    assert max(await asyncio.gather(*calls)) < TOLERANCE
    await until_idle(client, "bert")


async def test_who_leaves_frees_what_was_asked(client: Client) -> None:
    stub = EmbeddingServiceStub(client.channel)
    with held(client, "bert"):
        call = stub.CreateEmbeddings(asked(TEXTS * 100))
        await until_under_way(client, "bert", 1)
        call.cancel()
        await until_under_way(client, "bert", 0)

    await until_idle(client, "bert")
    assert await embedded(client, [0]) < TOLERANCE


async def test_more_than_may_wait_are_told_to_come_back(
    make_settings: Callable[..., Settings],
) -> None:
    settings = make_settings(folder_settings("bert", max_queue=MAX_QUEUE))
    async with running(Server(settings)) as client:
        with held(client, "bert"):
            calls = [asyncio.create_task(embedded(client, [0])) for _ in range(MAX_QUEUE)]
            await until_under_way(client, "bert", MAX_QUEUE)
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await embedded(client, [0])
        assert max(await asyncio.gather(*calls)) < TOLERANCE
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "The model is overloaded" in (caught.value.details() or "")


async def test_what_takes_too_long_ends(make_settings: Callable[..., Settings]) -> None:
    settings = make_settings(folder_settings("bert"), request_timeout=0.5)
    async with running(Server(settings)) as client:
        with held(client, "bert"), pytest.raises(grpc.aio.AioRpcError) as caught:
            await embedded(client, [0])
        await until_idle(client, "bert")
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


@pytest.mark.parametrize("requests", [100, pytest.param(2000, marks=pytest.mark.slow)])
async def test_every_vector_is_its_own_texts_though_engines_die_and_callers_leave(
    client: Client, requests: int
) -> None:
    rng = random.Random(requests)
    stub = EmbeddingServiceStub(client.channel)
    in_flight = engine_of(client, "bert").supervisor.in_flight
    left: dict[str, int] = {"whole": 0, "left": 0, "again": 0}

    async def one() -> None:
        chosen = rng.choices(range(len(TEXTS)), k=rng.randint(1, 40))
        leaves = rng.random() < 0.2
        while True:
            call = stub.CreateEmbeddings(asked([TEXTS[index] for index in chosen]))
            if leaves:
                # After any part of the way that others take meanwhile.
                await embedded_or_refused(client, rng.randrange(len(TEXTS)))
                call.cancel()
                left["left"] += 1
                return
            try:
                answer = await call
            except grpc.aio.AioRpcError as error:
                assert error.code() is grpc.StatusCode.UNAVAILABLE  # noqa: PT017
                left["again"] += 1
                await client.wait_for_health("SERVING")
                continue
            found = [item.values for item in answer.embeddings]
            assert furthest(found, [VECTORS[index] for index in chosen]) < TOLERANCE
            left["whole"] += 1
            return

    async def callers(count: int) -> None:
        for _ in range(count):
            await one()

    # Of 16 callers, after each tenth of the requests one kills the engine.
    for _ in range(10):
        group = asyncio.gather(*(callers(-(-requests // 160)) for _ in range(16)))
        await until(lambda group=group: bool(in_flight._in_flight) or group.done())
        kill(client)
        await group

    await until_idle(client, "bert")
    assert left["whole"] + left["left"] >= requests


async def embedded_or_refused(client: Client, index: int) -> None:
    try:
        assert await embedded(client, [index]) < TOLERANCE
    except grpc.aio.AioRpcError as error:
        assert error.code() is grpc.StatusCode.UNAVAILABLE  # noqa: PT017
