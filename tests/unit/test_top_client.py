"""Which servers `ovchat top` hears, and what it says where it hears none."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import pytest

from ovchat.v1 import server_service_pb2, server_service_pb2_grpc
from ovchat_server.top.client import MetricsClient, TopError, UnreachableError
from tests.ports import unused_port

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable


class Servers(server_service_pb2_grpc.ServerServiceServicer):
    """Several at one address: which of them answers is for `chosen` to say, of how many calls."""

    def __init__(self, replicas: int, chosen: Callable[[int], int]) -> None:
        self.calls = 0
        self._replicas = replicas
        self._chosen = chosen

    async def GetMetrics(  # noqa: N802  the contract's name
        self,
        request: server_service_pb2.GetMetricsRequest,  # noqa: ARG002
        context: Any,
    ) -> server_service_pb2.GetMetricsResponse:
        self.calls += 1
        number = self._chosen(self.calls)
        if not number:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "gone")
        return server_service_pb2.GetMetricsResponse(server=number, replicas=self._replicas)


@contextlib.asynccontextmanager
async def asking(servicer: Servers | None, key: str | None = None) -> AsyncIterator[MetricsClient]:
    server = grpc.aio.server()
    if servicer:
        server_service_pb2_grpc.add_ServerServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with MetricsClient(f"127.0.0.1:{port}", key) as client:
            yield client
    finally:
        await server.stop(None)


async def numbers(client: MetricsClient) -> list[int]:
    return sorted(snapshot.server for snapshot in await client.snapshots())


async def test_one_server_is_asked_once() -> None:
    servers = Servers(1, lambda _: 1)
    async with asking(servers) as client:
        assert await numbers(client) == [1]
    assert servers.calls == 1


async def test_of_several_each_is_heard() -> None:
    servers = Servers(3, lambda call: 1 + call % 3)
    async with asking(servers) as client:
        assert await numbers(client) == [1, 2, 3]
        before = servers.calls
        # How many there are is known by now.
        assert await numbers(client) == [1, 2, 3]
    assert servers.calls - before == 3


async def test_one_that_is_busy_is_found_among_many_calls() -> None:
    async with asking(Servers(2, lambda call: 2 if call == 30 else 1)) as client:
        assert await numbers(client) == [1, 2]


async def test_one_that_is_never_reached_is_not_asked_for_without_end() -> None:
    async with asking(Servers(2, lambda _: 1)) as client:
        assert await numbers(client) == [1]


async def test_of_several_those_that_answer_are_enough() -> None:
    async with asking(Servers(2, lambda call: 1 if call == 1 else 0)) as client:
        assert await numbers(client) == [1]
        with pytest.raises(UnreachableError, match="gone"):
            await client.snapshots()


async def test_what_is_no_ovchat_or_an_older_one_is_told() -> None:
    async with asking(None) as client:
        with pytest.raises(TopError, match="is no ovchat, or an older one") as caught:
            await client.snapshots()
    assert not isinstance(caught.value, UnreachableError)


async def test_where_nobody_listens_there_may_be_someone_later() -> None:
    address = f"127.0.0.1:{unused_port()}"
    async with MetricsClient(address, None) as client:
        with pytest.raises(UnreachableError, match=f"{address} cannot be asked: .*refused"):
            await client.snapshots()


def test_a_key_that_cannot_be_sent_is_refused() -> None:
    with pytest.raises(TopError, match="--api-key"):
        MetricsClient("127.0.0.1:1", "k\u00e9y")
