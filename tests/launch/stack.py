"""`ovchat up` with real servers, and every process that it started."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import msgspec
import openai

from ovchat_server.engine.contract.generation_spec import DEFAULT_KV_BLOCKS
from tests.conftest import ROOT, model_settings, model_table
from tests.ports import unused_port

if TYPE_CHECKING:
    import signal
    from collections.abc import AsyncIterator

POLL = 0.02
# What ps calls them.
TITLES = {
    "up": "ovchat up",
    "server": "ovchat server",
    "envoy": "ovchat-envoy",
    "engine": "ovchat engine",
    "grammars": "ovchat grammars",
}
CHILDREN = ("server", "envoy", "engine", "grammars")


@dataclass
class Stack:
    """A running `ovchat up`."""

    process: asyncio.subprocess.Process
    rest_port: int
    grpc_port: int
    directory: Path
    log: Path
    banner: asyncio.Event = field(default_factory=asyncio.Event)
    printed: str = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.rest_port}"

    @property
    def metrics_url(self) -> str:
        """The URL that it says metrics are on, once it is ready."""
        found = re.search(r"Metrics are on (http://[^\s\"]+)", self.log.read_text())
        assert found
        return found[1]

    def sdk(self) -> openai.AsyncOpenAI:
        """A client that tries nothing twice."""
        return openai.AsyncOpenAI(base_url=f"{self.url}/v3", api_key="unused", max_retries=0)

    def all_processes(self) -> list[int]:
        """Every process of it that runs, whoever its parent is by now."""
        found = []
        for process in Path("/proc").iterdir():
            # They inherit their working directory, and nobody else is in this one. Those that
            # have ended and were not waited for have none.
            with contextlib.suppress(OSError):
                if process.name.isdigit() and (process / "cwd").readlink() == self.directory:
                    found.append(int(process.name))
        return found

    def processes(self, kind: str) -> list[int]:
        """Those of a kind, by when they were started."""
        return sorted(pid for pid in self.all_processes() if title(pid).startswith(TITLES[kind]))

    async def one(self, kind: str, *, other_than: int = 0) -> int:
        """The process of a kind, once there is one."""
        while not (found := [pid for pid in self.processes(kind) if pid != other_than]):
            assert self.process.returncode is None, self.log.read_text()[-3000:]
            await asyncio.sleep(POLL)
        return found[0]

    async def says(self, text: str, times: int = 1) -> None:
        """Wait until it has said `text` so often."""
        while self.log.read_text().count(text) < times:
            assert self.process.returncode is None, self.log.read_text()[-3000:]
            await asyncio.sleep(POLL)

    async def answers(self) -> None:
        """Wait until a chat is answered."""
        body = {"model": "successor", "messages": [{"role": "user", "content": "a"}]}
        async with httpx.AsyncClient(base_url=self.url, timeout=None) as http:
            while True:
                with contextlib.suppress(httpx.TransportError):
                    answer = await http.post("/v3/chat/completions", json={**body, "max_tokens": 3})
                    if answer.status_code == 200:
                        assert answer.json()["choices"][0]["message"]["content"] == "bcd"
                        return
                await asyncio.sleep(POLL)

    async def ends(self) -> int:
        """The exit code, and a look at what is left behind: nothing."""
        code = await self.process.wait()
        await gone(*self.all_processes())
        for port in (self.rest_port, self.grpc_port):
            # As the next one to be started would.
            socket.create_server(("127.0.0.1", port), reuse_port=False).close()
        return code


def title(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return ""


def send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


async def gone(*pids: int) -> None:
    """Wait until none of the processes is left."""
    loop = asyncio.get_running_loop()
    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        ended = asyncio.Event()
        loop.add_reader(descriptor, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)


def _limited(soft: int, hard: int) -> tuple[str, ...]:
    """What runs a command with these limits of its open files.

    No `preexec_fn`, for which this process would be forked: its gRPC aborts one such child in a
    hundred.
    """
    return ("sh", "-c", f'ulimit -Sn {soft}; ulimit -Hn {hard}; exec "$@"', "sh")


@contextlib.asynccontextmanager
async def started(
    directory: Path,
    *options: str,
    kv_blocks: int = DEFAULT_KV_BLOCKS,
    folder: Path = ROOT / "models/successor",
    open_files: tuple[int, int] | None = None,
    tables: str = "",
) -> AsyncIterator[Stack]:
    """`ovchat up` with the successor model, from a folder, at whatever it does now.

    `open_files` are the limits of its open files, soft and hard, if they are not those of this
    process; `tables` stand in its config file.
    """
    log, config = directory / "log", directory / "ovchat.toml"
    # Exact numbers: in bfloat16 OpenVINO 2026.4.1 dies of so small a model where the processor
    # has AMX.
    model = model_settings("successor", kv_blocks=kv_blocks)
    config.write_text(model_table(msgspec.structs.replace(model, path=folder)) + tables)
    rest_port, grpc_port = unused_port(), unused_port()
    with log.open("w") as errors:
        process = await asyncio.create_subprocess_exec(
            *(_limited(*open_files) if open_files else ()),
            *(sys.executable, "-m", "ovchat_server", "up"),
            *("--config", str(config)),
            *("--rest-port", str(rest_port), "--grpc-port", str(grpc_port)),
            *("--metrics-port", "0", *options),
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            cwd=directory,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
    stack = Stack(process, rest_port, grpc_port, directory, log)

    async def read() -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            stack.printed += line.decode()
            if b"Ctrl-C" in line:
                stack.banner.set()

    reader = asyncio.create_task(read())
    try:
        yield stack
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await reader


@contextlib.asynccontextmanager
async def running(directory: Path, *options: str, **how: Any) -> AsyncIterator[Stack]:
    """The same, once it is ready."""
    async with started(directory, *options, **how) as stack:
        ready = asyncio.create_task(stack.banner.wait())
        ended = asyncio.create_task(stack.process.wait())
        await asyncio.wait([ready, ended], return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        assert ready.done(), stack.log.read_text()[-3000:]
        yield stack
