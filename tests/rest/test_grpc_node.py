"""gRPC's client for Node, with a client of reflection and with keepalive."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.successor import successor_text

if TYPE_CHECKING:
    from tests.rest.conftest import Stack

PROGRAM = Path(__file__).resolve().parent / "node" / "grpc.mjs"
NODE = Path(sysconfig.get_path("scripts")) / "node"


@pytest.mark.slow
@pytest.mark.parametrize("port", ["rest_port", "grpc_port"])
def test_it_reflects_by_v1_streams_and_pings_every_second(stack: Stack, port: str) -> None:
    ended = subprocess.run(
        [NODE, PROGRAM, f"127.0.0.1:{getattr(stack, port)}"],
        env={**os.environ, "GRPC_TRACE": "keepalive", "GRPC_VERBOSITY": "DEBUG"},
        capture_output=True,
        check=False,
        text=True,
    )

    assert ended.returncode == 0, ended.stderr
    seen = json.loads(ended.stdout)
    assert {"ovchat.v1.ChatService", "grpc.reflection.v1.ServerReflection"} <= set(seen["services"])
    assert seen["methods"] == ["CreateChatCompletion", "StreamChatCompletion"]
    assert seen["story"] == successor_text("a", 40)
    assert seen["pinged"] == ["SERVING"]
