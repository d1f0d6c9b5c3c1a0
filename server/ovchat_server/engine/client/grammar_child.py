"""The process in which grammars are compiled, to see whether they do."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import msgspec

from ovchat_server.engine.client.spawn import start_child
from ovchat_server.engine.contract.frames import FrameReader, encode
from ovchat_server.engine.contract.grammar_messages import Checked

if TYPE_CHECKING:
    import socket

    from ovchat_server.engine.contract.grammar_messages import (
        Compile,
        Follow,
        GrammarProcessSpec,
    )

READ_SIZE = 1 << 16
# Seconds. Loading the library and the tokenizer takes one, or several on a busy machine.
START_TIMEOUT = 60.0


class GrammarChildDiedError(Exception):
    """The process ended."""


class GrammarChild:
    """A grammar process, from `start` to `close`."""

    def __init__(self, process: asyncio.subprocess.Process, connection: socket.socket) -> None:
        """Talk to a process over a connection; see `start`."""
        self._process = process
        self._connection = connection
        self._frames = FrameReader()

    @classmethod
    async def start(cls, spec: GrammarProcessSpec) -> GrammarChild:
        """Start a process, and wait until it is ready.

        Raises:
            OSError: It cannot be started.
            GrammarChildDiedError: It ended at once.
            TimeoutError: It is not ready in time.
        """
        self = cls(
            *await start_child(
                "ovchat_server.engine.genai.grammar_process",
                # More arenas would reserve more address space than the process may use.
                environment={"MALLOC_ARENA_MAX": "2"},
                # Discard the warnings that the compiler prints.
                output=asyncio.subprocess.DEVNULL,
            )
        )
        try:
            async with asyncio.timeout(START_TIMEOUT):
                await self._send(encode(spec))
                await self._receive()
        except BaseException:
            await self.close()
            raise
        return self

    async def ask(self, request: Compile | Follow) -> Checked:
        """Have a grammar compiled or followed, and return the verdict.

        Raises:
            GrammarChildDiedError: The process ended.
        """
        await self._send(encode(request))
        checked: Checked = msgspec.msgpack.decode(await self._receive(), type=Checked)
        return checked

    async def close(self) -> None:
        """Kill the process and wait for its end."""
        self._connection.close()
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()

    async def _send(self, frame: bytes) -> None:
        try:
            await asyncio.get_running_loop().sock_sendall(self._connection, frame)
        except ConnectionError as error:
            raise GrammarChildDiedError from error

    async def _receive(self) -> bytes:
        loop = asyncio.get_running_loop()
        while True:
            try:
                data = await loop.sock_recv(self._connection, READ_SIZE)
            except ConnectionError:
                data = b""
            if not data:
                raise GrammarChildDiedError
            if frames := self._frames.feed(data):
                return frames[0]
