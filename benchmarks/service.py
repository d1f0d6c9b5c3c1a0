"""`ovchat up` for a benchmark, and what its processes take of memory."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.load_client import Connection, post
from benchmarks.sse import AnswerError
from ovchat_server.launch.ports import free_port

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

MODEL = "bench"
POLL = 0.005
# What ps calls them.
TITLES = {
    "up": "ovchat up",
    "server": "ovchat server",
    "Envoy": "ovchat-envoy",
    "engine": "ovchat engine",
    "grammars": "ovchat grammars",
}
WAYS = ("RSS", "PSS")
KILO = 1024


@dataclass(frozen=True, slots=True)
class Service:
    """An `ovchat up` that answers.

    Attributes:
        first_token: Seconds from its start to the first token of an answer over REST.
    """

    rest_port: int
    grpc_port: int
    directory: Path
    first_token: float

    def memory(self) -> dict[str, float]:
        """MiB by kind of process and way to count, where "PSS" divides what processes share."""
        found = {f"{kind} {way}": 0.0 for way in WAYS for kind in TITLES}
        for kind, process in self._processes():
            for way, kilobytes in _kilobytes(process).items():
                found[f"{kind} {way}"] += kilobytes / KILO
        for way in WAYS:
            found[f"server and Envoy {way}"] = found[f"server {way}"] + found[f"Envoy {way}"]
        return found

    def work(self) -> dict[str, float]:
        """Seconds of processor time until now, by kind of process."""
        found = dict.fromkeys(TITLES, 0.0)
        for kind, process in self._processes():
            # User and system, behind a name in brackets that may have spaces.
            fields = (process / "stat").read_text().rpartition(")")[2].split()
            found[kind] += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return found

    def _processes(self) -> Iterator[tuple[str, Path]]:
        """The kind of each process, and its folder in /proc."""
        for process in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if not process.name.isdigit() or (process / "cwd").readlink() != self.directory:
                    continue
                title = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                for kind, beginning in TITLES.items():
                    if title.startswith(beginning):
                        yield kind, process


def _table(
    model: Path, properties: Mapping[str, str | float], options: Mapping[str, str | float]
) -> str:
    """The model's table in a config file."""
    # Strings and numbers are written in TOML as in JSON.
    pairs = ", ".join(f"{name} = {json.dumps(value)}" for name, value in properties.items())
    table = {"name": MODEL, "path": str(model), **options}
    lines = [f"{name} = {json.dumps(value)}" for name, value in table.items()]
    return "\n".join(["[[models]]", *lines, f"properties = {{ {pairs} }}", ""])


def _kilobytes(process: Path) -> dict[str, int]:
    lines = (process / "smaps_rollup").read_text().splitlines()[1:]
    values = {name: int(rest.split()[0]) for name, _, rest in (one.partition(":") for one in lines)}
    return {way: values[way.capitalize()] for way in WAYS}


@contextlib.asynccontextmanager
async def serving(
    model: Path,
    properties: Mapping[str, str | float] | None = None,
    options: Mapping[str, str | float] | None = None,
) -> AsyncIterator[Service]:
    """`ovchat up` with a model as people start it, from when it answers.

    Args:
        model: Its folder.
        properties: OpenVINO's.
        options: Others of the model's table in a config file.
    """
    async with configured(_table(model, properties or {}, options or {})) as service:
        yield service


@contextlib.asynccontextmanager
async def configured(
    tables: str, model: str = MODEL, request: bytes | None = None
) -> AsyncIterator[Service]:
    """`ovchat up` with a config file of these tables, from when a model of them answers.

    Args:
        tables: All of it.
        model: A model that is asked for a token.
        request: What is asked instead.
    """
    rest_port, grpc_port = free_port(), free_port()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name).resolve()
        log = directory / "log"
        config = directory / "ovchat.toml"
        config.write_text(tables)
        with log.open("w") as output:
            start = time.perf_counter()
            # Its processes inherit the folder that they run in, and are known by it.
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "ovchat_server", "up", "--log-level", "warning"),
                *("--config", str(config)),
                *("--rest-port", str(rest_port), "--grpc-port", str(grpc_port)),
                *("--metrics-port", "0"),
                stdout=output,
                stderr=output,
                cwd=directory,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        try:
            answered = asyncio.create_task(_answered(rest_port, request or _one_token(model)))
            ended = asyncio.create_task(process.wait())
            await asyncio.wait([answered, ended], return_when=asyncio.FIRST_COMPLETED)
            if ended.done():
                answered.cancel()
                raise RuntimeError(f"ovchat up ended: {log.read_text()[-3000:]}")
            yield Service(rest_port, grpc_port, directory, await answered - start)
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()


def _one_token(model: str) -> bytes:
    """A request for a token."""
    return post(
        {
            "model": model,
            "messages": [{"role": "user", "content": "Hello!"}],
            "max_completion_tokens": 1,
            "stream": True,
        }
    )


async def _answered(port: int, request: bytes) -> float:
    """When a request was answered, which is sent until it is."""
    loop = asyncio.get_running_loop()
    while True:
        with contextlib.suppress(OSError, AnswerError):
            _, connection = await loop.create_connection(Connection, "127.0.0.1", port)
            parts = await connection.send(request)
            connection.close()
            if parts[0][1].startswith(b"HTTP/1.1 200 "):
                return parts[-1][0]
        await asyncio.sleep(POLL)
