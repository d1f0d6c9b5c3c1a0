"""gRPC's client for Node, with a client of reflection and with keepalive."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.rest.programs import printed_by_node
from tests.successor import successor_text

if TYPE_CHECKING:
    from tests.rest.conftest import Stack


@pytest.mark.slow
@pytest.mark.parametrize("port", ["rest_port", "grpc_port"])
def test_it_reflects_by_v1_streams_and_pings_every_second(stack: Stack, port: str) -> None:
    target = f"127.0.0.1:{getattr(stack, port)}"

    seen = printed_by_node("grpc.mjs", target, GRPC_TRACE="keepalive", GRPC_VERBOSITY="DEBUG")

    assert {"ovchat.v1.ChatService", "grpc.reflection.v1.ServerReflection"} <= set(seen["services"])
    assert seen["methods"] == ["CreateChatCompletion", "StreamChatCompletion"]
    assert seen["story"] == successor_text("a", 40)
    assert seen["pinged"] == ["SERVING"]
