"""A server of others while it runs, and a client that asks it what ours is asked."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.load_client import RestClient, post
from benchmarks.request_forms import rest_body
from benchmarks.service import MODEL
from benchmarks.sse import AnswerError
from ovchat_server.launch.child import Program
from ovchat_server.launch.ports import free_port

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from benchmarks.load_client import Connection
    from benchmarks.plan import Ask
    from benchmarks.references.servers import Reference

PATH = "/v1/chat/completions"
POLL = 0.1
# Seconds; a large Python program reads much from disk at its first start.
START = 180


class ReferenceClient(RestClient):
    """Asks over REST as others take it."""

    def request(self, ask: Ask) -> bytes:
        """See RestClient.request."""
        # The older name, which is the only one that OpenArc knows.
        return post({**rest_body(MODEL, ask), "max_tokens": ask.max_tokens}, PATH)

    async def _connection(self) -> Connection:
        """One that was never used: llama.cpp closes each after a stream, and does not say so."""
        await self.close()
        return await super()._connection()


@contextlib.asynccontextmanager
async def running(reference: Reference, model: Path) -> AsyncIterator[ReferenceClient]:
    """Start it with a model, and have it ended in any case: even where this process is killed."""
    port = free_port()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        log = folder / "log"
        with log.open("w") as output:
            process = await asyncio.create_subprocess_exec(
                *Program(reference.command(model, port, folder)).tied(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=folder,
                env={**os.environ, **reference.environment(folder)},
                process_group=0,
            )
        client = ReferenceClient(MODEL, port, reference.name)
        try:
            answers = asyncio.create_task(_answers(client, reference.ready))
            ended = asyncio.create_task(process.wait())
            done, _ = await asyncio.wait(
                [answers, ended], timeout=START, return_when=asyncio.FIRST_COMPLETED
            )
            ended.cancel()
            if answers not in done:
                answers.cancel()
                raise RuntimeError(f"{reference.name} does not start: {log.read_text()[-3000:]}")
            await answers
            yield client
        finally:
            await client.close()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


async def _answers(client: RestClient, path: str) -> None:
    """Wait until a GET is answered with 200."""
    while True:
        with contextlib.suppress(OSError, AnswerError):
            await client.get(path)
            return
        await asyncio.sleep(POLL)
