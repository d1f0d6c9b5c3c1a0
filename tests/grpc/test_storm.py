"""Requests of mixed length in a cache far too small: none is lost, none sees another's tokens.

`benchmarks/storm.py` does the same for longer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from ovchat_server.app import Server
from tests.grpc.conftest import Client, running
from tests.grpc.engines import until_idle
from tests.storm import Storm, dying_engines

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ovchat_server.settings import ModelSettings, Settings

# Of 32 tokens: a request of 350 tokens alone takes 11, and three choices of it 33.
BLOCKS = 40
AT_ONCE = 24


@pytest.fixture
async def crowded(
    make_settings: Callable[..., Settings], successor: ModelSettings
) -> AsyncIterator[Client]:
    async with running(
        Server(make_settings(msgspec.structs.replace(successor, kv_blocks=BLOCKS)))
    ) as client:
        yield client


async def storm_of(client: Client) -> Storm:
    return Storm(client.channel, (await client.model("successor")).context_length)


@pytest.mark.parametrize("requests", [40, pytest.param(200, marks=pytest.mark.slow)])
async def test_a_storm_in_a_cache_that_is_far_too_small(crowded: Client, requests: int) -> None:
    storm = await storm_of(crowded)

    await storm.run(requests, AT_ONCE)

    await until_idle(crowded, "successor")
    load = crowded.server._engines["successor"].status.load
    assert load is not None
    assert load.preemptions > 0
    assert storm.wrong == []
    assert not storm.lost
    assert storm.outcomes["whole"] + storm.outcomes["cancelled"] == requests


@pytest.mark.slow
@pytest.mark.parametrize(("requests", "tokens", "times"), [(30, 500, 2), (200, 2000, 8)])
async def test_a_storm_in_which_the_engine_dies_again_and_again(
    crowded: Client, requests: int, tokens: int, times: int
) -> None:
    storm = await storm_of(crowded)
    with dying_engines(crowded.server, "successor", tokens, times) as deaths:
        await storm.run(requests, AT_ONCE, seed=1000)
    await until_idle(crowded, "successor")

    assert len(deaths) == times
    assert storm.wrong == []
    assert not storm.lost
    assert storm.outcomes["whole"] + storm.outcomes["cancelled"] == requests
