"""Requests of mixed length in a cache far too small: none is lost, none sees another's tokens.

`benchmarks/storm.py` does the same for longer.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import grpc.aio
import msgspec

from ovchat_server.app import Server
from tests.grpc.conftest import Client
from tests.storm import Storm, dying_engines

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.settings import ModelSettings, Settings

# Of 32 tokens: a request of 350 tokens alone takes 11, and three choices of it 33.
BLOCKS = 40
AT_ONCE = 24


async def until_idle(server: Server) -> None:
    """Until nothing holds a block; a test's own timeout is the limit."""
    engine = server._engines["successor"]
    while (load := engine.status.load) is None or load.used_kv_blocks or load.running_requests:  # noqa: ASYNC110  the loop's next turn is the event
        await asyncio.sleep(0)


async def test_a_storm_in_a_cache_that_is_far_too_small(
    make_settings: Callable[..., Settings], successor: ModelSettings
) -> None:
    model = msgspec.structs.replace(successor, kv_blocks=BLOCKS)
    server = Server(make_settings(model))
    async with server.running(), grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        client = Client(server, channel)
        await client.wait_for_health("SERVING")
        storm = Storm(client.texts)

        await storm.run(300, AT_ONCE)

        await until_idle(server)
        load = server._engines["successor"].status.load
    assert load is not None
    assert load.preemptions > 0
    assert storm.wrong == []
    assert not storm.lost
    assert storm.outcomes["whole"] + storm.outcomes["cancelled"] == 300


async def test_a_storm_in_which_the_engine_dies_again_and_again(
    make_settings: Callable[..., Settings], successor: ModelSettings
) -> None:
    model = msgspec.structs.replace(successor, kv_blocks=BLOCKS)
    server = Server(make_settings(model))
    async with server.running(), grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        client = Client(server, channel)
        await client.wait_for_health("SERVING")
        storm = Storm(client.texts)
        async with dying_engines(server, "successor", 2) as deaths:
            while len(deaths) < 3:
                await storm.run(60, AT_ONCE, seed=1000 * len(deaths))
        await client.wait_for_health("SERVING")
        await until_idle(server)

    assert storm.wrong == []
    assert not storm.lost
