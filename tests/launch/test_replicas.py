"""Two real servers behind one Envoy: what callers notice of the end of one."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from ovchat.v1 import chat_service_pb2_grpc
from tests.grpc.requests import successor, text_of
from tests.launch.load import CALLERS, load
from tests.launch.stack import running, send

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


async def test_a_rolling_restart_under_load_fails_no_request(tmp_path: Path) -> None:
    async with running(tmp_path, "--replicas", "2") as stack:
        servers = stack.processes("server")
        assert len(servers) == 2
        async with load(stack) as state:
            for count, server in enumerate(servers, start=1):
                send(server, signal.SIGTERM)
                await stack.says("serves again", count)
                await state.more(8)
        assert not set(servers) & set(stack.processes("server"))
        assert (state.failed, state.cut) == ([], [])
        stack.process.send_signal(signal.SIGTERM)
        assert await stack.ends() == 0


async def test_killing_one_of_two_servers_fails_no_request_that_had_not_begun_its_answer(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, "--replicas", "2") as stack:
        async with load(stack) as state:
            for count, server in enumerate(stack.processes("server"), start=1):
                send(server, signal.SIGKILL)
                await stack.says("serves again", count)
                await state.more(8)
        assert state.failed == []
        # What the dead one was in the midst of is lost, and its reader knows.
        assert len(state.cut) <= 2 * CALLERS
        stack.process.send_signal(signal.SIGINT)
        assert await stack.ends() == 0


async def test_the_grpc_port_leads_to_every_server(tmp_path: Path) -> None:
    async with running(tmp_path, "--replicas", "2") as stack:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{stack.grpc_port}") as channel:
            chat = chat_service_pb2_grpc.ChatServiceStub(channel)
            health = health_pb2_grpc.HealthStub(channel)
            for server in (None, *stack.processes("server")):
                if server is not None:
                    send(server, signal.SIGKILL)
                answer = await chat.CreateChatCompletion(successor("a", 5))
                assert text_of(answer) == "bcdef"
                check = await health.Check(health_pb2.HealthCheckRequest())
                assert check.status == health_pb2.HealthCheckResponse.SERVING
                if server is not None:
                    await stack.says("serves again")
        stack.process.send_signal(signal.SIGTERM)
        assert await stack.ends() == 0
