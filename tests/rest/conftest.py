from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import openai
import pytest
from langchain_core.tracers.langchain import wait_for_all_tracers

from tests.conftest import model_table
from tests.ports import unused_port

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from ovchat_server.settings import ModelSettings

CONFIG = """
[server]
rest_port = {rest_port}
grpc_port = {grpc_port}
metrics_port = {metrics_port}
"""
# Between two questions that only another process's work changes the answer to.
POLL = 0.02


@dataclass(frozen=True)
class Stack:
    """`ovchat up`, running."""

    process: subprocess.Popen[str]
    rest_port: int
    grpc_port: int
    metrics_port: int
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.rest_port}"


@pytest.fixture(scope="session")
def stack(
    tmp_path_factory: pytest.TempPathFactory, demo: ModelSettings, successor: ModelSettings
) -> Iterator[Stack]:
    """Server, engines and Envoy, as a person starts them."""
    with running_stack(tmp_path_factory.mktemp("stack"), demo, successor) as stack:
        yield stack


@contextlib.contextmanager
def running_stack(
    directory: Path, *models: ModelSettings, options: Sequence[str] = (), tables: str = ""
) -> Iterator[Stack]:
    """`ovchat up` with some models, further `options` and tables; its files go to `directory`."""
    config = directory / "ovchat.toml"
    rest_port, grpc_port, metrics_port = unused_port(), unused_port(), unused_port()
    config.write_text(
        CONFIG.format(
            rest_port=rest_port,
            grpc_port=grpc_port,
            metrics_port=metrics_port,
        )
        + "".join(map(model_table, models))
        + tables
    )
    log = directory / "log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "ovchat_server", "up", "--config", str(config), *options],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        wait_for_banner(process, log)
        yield Stack(process, rest_port, grpc_port, metrics_port, log)
    finally:
        process.send_signal(signal.SIGINT)
        # Longer than it may take to end its calls and engines.
        assert process.wait(120) == 0, log.read_text()[-3000:]


def wait_for_banner(process: subprocess.Popen[str], log: Path) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if "is ready" in line:
            # Nobody reads it any more, so it must not fill the pipe.
            process.stdout.close()
            return
    pytest.fail(f"ovchat up ended: {log.read_text()[-3000:]}")


@pytest.fixture(scope="session")
async def http(stack: Stack) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=stack.url, timeout=None) as client:
        yield client


@pytest.fixture(scope="session")
def sdk(stack: Stack) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{stack.url}/v3", api_key="unused", max_retries=0) as client:
        yield client


def sdk_of(stack: Stack) -> openai.AsyncOpenAI:
    """A client that tries nothing twice."""
    return openai.AsyncOpenAI(base_url=f"{stack.url}/v1", api_key="unused", max_retries=0)


@pytest.fixture(scope="session")
async def async_sdk(stack: Stack) -> AsyncIterator[openai.AsyncOpenAI]:
    async with sdk_of(stack) as client:
        yield client


@pytest.fixture(scope="module")
def only_local() -> Iterator[None]:
    """A library speaks to our server alone, whatever it would like to fetch or tell."""
    asked: set[Any] = set()
    connect, look_up = socket.socket.connect, socket.getaddrinfo

    def recorded_connect(self: socket.socket, address: Any) -> None:
        asked.add(address[0])
        connect(self, address)

    def recorded_look_up(host: Any, *args: Any, **kwargs: Any) -> Any:
        asked.add(host)
        return look_up(host, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", recorded_connect)
        patch.setattr(socket, "getaddrinfo", recorded_look_up)
        yield
    assert asked == {"127.0.0.1"}


@pytest.fixture(scope="module")
def untraced(only_local: None) -> Iterator[None]:  # noqa: ARG001 - checks at the end
    """LangChain tells nothing to LangSmith, whatever the environment wants."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LANGSMITH_TRACING", "false")
        patch.setenv("LANGCHAIN_TRACING_V2", "false")
        yield
        # Until what would have been told was told, for the check to see.
        wait_for_all_tracers()


def descendants(ancestor: int) -> list[int]:
    """A process, its children, and theirs."""
    children: dict[int, list[int]] = {}
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit():
            try:
                parent = int((directory / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                # It ended while we looked.
                continue
            children.setdefault(parent, []).append(int(directory.name))
    found = [ancestor]
    for pid in found:
        found += children.get(pid, [])
    return found


def engines_of(stack: Stack, model: str) -> list[int]:
    """The processes that run, or load, a model."""
    title = f"ovchat engine {model}".encode()
    found = []
    for pid in descendants(stack.process.pid):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0") == title:
                found.append(pid)
    return found


@contextlib.contextmanager
def held(stack: Stack, model: str) -> Iterator[None]:
    """The engine of a model does nothing meanwhile."""
    [engine] = engines_of(stack, model)
    os.kill(engine, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(engine, signal.SIGCONT)


async def load_of(http: httpx.AsyncClient, model: str) -> dict[str, int]:
    """How full the engine of a model is; nothing is said of one that is not ready."""
    load = (await http.get(f"/ovchat/v1/models/{model}")).json()["model"].get("load", {})
    return {name: int(value) for name, value in load.items()}


async def until_some(http: httpx.AsyncClient, model: str, kind: str = "running_requests") -> None:
    """Until the engine of a model has some of a kind."""
    while True:
        if (await load_of(http, model)).get(kind):
            return
        await asyncio.sleep(POLL)


async def until_idle(http: httpx.AsyncClient, model: str) -> None:
    """Until no request of a model holds anything."""
    while True:
        load = await load_of(http, model)
        if load["running_requests"] == load["waiting_requests"] == load["used_kv_blocks"] == 0:
            return
        await asyncio.sleep(POLL)


@contextlib.asynccontextmanager
async def given_up(http: httpx.AsyncClient, model: str, tokens: int) -> AsyncIterator[None]:
    """What is asked inside is given up, and holds nothing, long before all `tokens` are there."""
    await until_idle(http, model)
    before = (await load_of(http, model))["generated_tokens"]
    yield
    await until_idle(http, model)
    assert (await load_of(http, model))["generated_tokens"] - before < tokens
