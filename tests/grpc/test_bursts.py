"""Calls that arrive faster than the event loop takes them."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import grpc

from ovchat.v1 import model_service_pb2
from ovchat.v1.model_service_pb2_grpc import ModelServiceStub
from tests.grpc.test_life import serving

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.settings import ModelSettings, Settings

# On each of three connections; gRPC's own default takes 1,000 of all.
CALLS = 900


async def test_all_calls_of_a_burst_are_answered(
    make_settings: Callable[..., Settings], successor: ModelSettings
) -> None:
    async with serving(make_settings(successor)) as client:
        with contextlib.ExitStack() as stack:
            # Apart from each other, or they would share a connection.
            alone = [("grpc.use_local_subchannel_pool", 1)]
            target = f"127.0.0.1:{client.server.port}"
            channels = [
                stack.enter_context(grpc.insecure_channel(target, options=alone)) for _ in range(3)
            ]
            request = model_service_pb2.ListModelsRequest()
            # The server's loop stands still as long as this one is busy with them.
            calls = [
                ModelServiceStub(channel).ListModels.future(request)
                for _ in range(CALLS)
                for channel in channels
            ]
            failures = await asyncio.to_thread(lambda: [call.exception() for call in calls])
    assert [failure for failure in failures if failure] == []
