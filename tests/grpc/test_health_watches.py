"""Watches of the health are bounded, and none of them holds up another."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from ovchat_server.rpc.errors import error_translation
from ovchat_server.rpc.health import HealthServicer
from ovchat_server.rpc.middleware import MiddlewareInterceptor
from tests.http2 import PREFACE, SETTINGS, call, frame, message

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
NO_WINDOW = frame(SETTINGS, 0, 0, b"\0\x04\0\0\0\0")


@contextlib.asynccontextmanager
async def served(health: HealthServicer) -> AsyncIterator[tuple[int, Any]]:
    health.publish({"": SERVING})
    translation = error_translation(lambda _method, _error: ("", None))
    server = grpc.aio.server(interceptors=[MiddlewareInterceptor(translation)])
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield port, health_pb2_grpc.HealthStub(channel)
    finally:
        await server.stop(None)


def watch(stub: Any, client: str) -> Any:
    # Envoy is on this machine, too, and says who calls.
    return stub.Watch(health_pb2.HealthCheckRequest(), metadata=(("x-forwarded-for", client),))


async def refusal(call: Any) -> str:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call.read()
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    return caught.value.details() or ""


async def test_one_caller_has_so_many_watches_and_others_have_theirs() -> None:
    async with served(HealthServicer(per_caller=2, most=9)) as (_, stub):
        watches = [watch(stub, "192.0.2.1") for _ in range(2)]
        for each in watches:
            assert (await each.read()).status == SERVING
        assert "your address has 2" in await refusal(watch(stub, "192.0.2.1"))
        assert (await watch(stub, "192.0.2.2").read()).status == SERVING


async def test_all_callers_together_have_so_many_watches_and_a_check_is_always_answered() -> None:
    async with served(HealthServicer(per_caller=2, most=3)) as (_, stub):
        watches = [watch(stub, f"192.0.2.{number}") for number in range(3)]
        for each in watches:
            await each.read()
        assert "all callers together have 3" in await refusal(watch(stub, "192.0.2.9"))
        assert (await stub.Check(health_pb2.HealthCheckRequest())).status == SERVING


async def test_a_watch_that_has_ended_makes_room() -> None:
    async with served(HealthServicer(per_caller=1)) as (_, stub):
        first = watch(stub, "192.0.2.1")
        await first.read()
        first.cancel()
        # The server hears of it a moment later.
        while True:
            second = watch(stub, "192.0.2.1")
            with contextlib.suppress(grpc.aio.AioRpcError):
                assert (await second.read()).status == SERVING
                return


async def test_a_watcher_that_reads_nothing_keeps_no_news_from_others() -> None:
    health = HealthServicer()
    async with served(health) as (port, stub):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        path = b"/grpc.health.v1.Health/Watch"
        writer.write(PREFACE + NO_WINDOW + call(message(b""), path=path))
        reading = stub.Watch(health_pb2.HealthCheckRequest())
        assert (await reading.read()).status == SERVING
        # Both watch; one of them takes no message.
        while health._watches.total() < 2:  # noqa: ASYNC110  the loop's next turn is the event
            await asyncio.sleep(0)
        health.publish({"": NOT_SERVING})
        assert (await reading.read()).status == NOT_SERVING
        health.publish({"": SERVING})
        assert (await reading.read()).status == SERVING
        writer.close()


async def test_what_stops_serves_no_more_whatever_is_published() -> None:
    health = HealthServicer()
    async with served(health) as (_, stub):
        health.stop()
        health.publish({"": SERVING})
        assert (await stub.Check(health_pb2.HealthCheckRequest())).status == NOT_SERVING
