"""Clients may ping as often as they like, on both ports, and their connection lasts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.http2 import DATA, PING, PREFACE, SETTINGS, call, frame, message, until

if TYPE_CHECKING:
    from tests.rest.conftest import Stack

# gRPC's default ends a connection at the third ping that comes too early.
PINGS = 100
# It says nothing after its first message, as a stream in a long prefill.
WATCH = call(message(b""), path=b"/grpc.health.v1.Health/Watch")


@pytest.mark.parametrize("during_a_call", [False, True])
@pytest.mark.parametrize("port", ["rest_port", "grpc_port"])
async def test_pings_never_end_a_connection(
    stack: Stack, port: str, *, during_a_call: bool
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", getattr(stack, port))
    writer.write(PREFACE + frame(SETTINGS, 0, 0, b""))
    if during_a_call:
        writer.write(WATCH)
        await until(reader, DATA)

    # One after the other: of those that come together all are answered, and then the end is near.
    for _ in range(PINGS):
        writer.write(frame(PING, 0, 0, b"12345678"))
        await until(reader, PING)

    writer.close()
