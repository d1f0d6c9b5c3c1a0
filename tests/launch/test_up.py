"""`ovchat up`, from outside: a process with two children, signals and exit codes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import httpx
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from ovchat_server.launch.ports import authority
from tests.launch.stack import gone
from tests.ports import unused_port

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

# Stands in for `ovchat serve`: says SERVING, streams, and ends on SIGTERM as it is told to.
SERVER = """
import asyncio, pathlib, signal, subprocess, sys
import grpc
from google.api import httpbody_pb2
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from ovchat.v1 import rest_service_pb2_grpc

target, mode, *socket = sys.argv[1:]
envoys = "unix:" + socket[0].removeprefix("--envoy-socket=")
asked = asyncio.Event()
loaded = asyncio.Event()

class Rest(rest_service_pb2_grpc.RestServiceServicer):
    async def GetReadiness(self, request, context):
        if mode.startswith("loads") and not loaded.is_set():
            print("asked while it loads", file=sys.stderr, flush=True)
            if mode == "loads for rest":
                await context.abort(grpc.StatusCode.UNAVAILABLE, "loading")
        return httpbody_pb2.HttpBody(content_type="application/json", data=b"{}")

    async def GetModelReadiness(self, request, context):
        # It may be loading yet: what health says decides.
        await context.abort(grpc.StatusCode.UNAVAILABLE, "loading")

    async def CreateChatCompletion(self, request, context):
        yield httpbody_pb2.HttpBody(content_type="text/event-stream", data=b"first")
        if mode == "large":
            yield httpbody_pb2.HttpBody(content_type="text/event-stream", data=b"last" * (50 << 10))
        await asked.wait()
        if mode != "large":
            yield httpbody_pb2.HttpBody(content_type="text/event-stream", data=b"last")

class Health(health.aio.HealthServicer):
    async def Watch(self, request, context):
        print("watched", file=sys.stderr, flush=True)
        await super().Watch(request, context)

async def main():
    print("the server's own words", file=sys.stderr, flush=True)
    if mode == "stubborn parent":
        nothing = subprocess.DEVNULL
        subprocess.Popen(["sleep", "1000"], stdout=nothing, stderr=nothing)
    if mode.startswith("exits"):
        sys.exit(int(mode.removeprefix("exits with ")))
    first = pathlib.Path(__file__).with_name("started")
    if mode == "never ready" or (mode == "ready once" and first.exists()):
        await asyncio.Event().wait()
    first.touch()
    server = grpc.aio.server()
    rest_service_pb2_grpc.add_RestServiceServicer_to_server(Rest(), server)
    state = Health()
    health_pb2_grpc.add_HealthServicer_to_server(state, server)
    if mode == "loads":
        await state.set("", health_pb2.HealthCheckResponse.NOT_SERVING)
    if not any(argument.startswith("--server-number=") for argument in socket):
        server.add_insecure_port(target)
    server.add_insecure_port(envoys)
    await server.start()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGUSR2):
        loop.add_signal_handler(number, asked.set)
    loop.add_signal_handler(signal.SIGUSR1, loaded.set)
    if mode == "loads":
        await loaded.wait()
        await state.set("", health_pb2.HealthCheckResponse.SERVING)
    await asked.wait()
    print("asked to end", file=sys.stderr, flush=True)
    if mode.startswith("stubborn"):
        await asyncio.Event().wait()
    await server.stop(30)

asyncio.run(main())
"""

UP = """
import asyncio, json, logging, sys
from pathlib import Path
from types import SimpleNamespace
from ovchat_server.launch import up
from ovchat_server.settings import ModelSettings

logging.basicConfig(format="%(message)s", level="INFO")
values = json.loads(sys.argv[1])
values["models"] = [ModelSettings(name=name, path=Path(name)) for name in values["models"]]
up._SERVER_TIMEOUT = values.pop("server_timeout", up._SERVER_TIMEOUT)
values["envoy_path"] = Path(values["envoy_path"]) if values["envoy_path"] else None
sys.exit(asyncio.run(up.run_up(SimpleNamespace(**values), sys.argv[2:])))
"""


@dataclass
class Up:
    """A running `ovchat up`."""

    process: asyncio.subprocess.Process
    host: str
    rest_port: int
    grpc_port: int
    out: list[str] = field(default_factory=list)
    err: list[str] = field(default_factory=list)

    async def says(self, text: str, *, err: bool = False) -> None:
        """Read output up to a line with `text`."""
        stream = self.process.stderr if err else self.process.stdout
        assert stream is not None
        while line := (await stream.readline()).decode():
            (self.err if err else self.out).append(line)
            if text in line:
                return
        pytest.fail(f"ended without {text!r}: {self.out} {await self.rest_of_err()}")

    async def ready(self) -> None:
        await self.says("Ctrl-C")

    async def rest_of_err(self) -> str:
        assert self.process.stderr is not None
        return (await self.process.stderr.read()).decode()

    async def ends(self) -> tuple[int, str, str]:
        """Wait for the end; exit code, stdout and stderr."""
        out, err = await self.process.communicate()
        code = self.process.returncode
        assert code is not None
        return code, "".join(self.out) + out.decode(), "".join(self.err) + err.decode()

    def children(self) -> dict[str, int]:
        """Process ids of the children, by what they are."""
        found = {}
        for child in children_of(self.process.pid):
            command = Path(f"/proc/{child}/cmdline").read_bytes()
            found["envoy" if command.startswith(b"ovchat-envoy") else "server"] = child
        return found

    @property
    def rest(self) -> str:
        return f"http://{authority(self.host, self.rest_port)}"


def children_of(pid: int) -> list[int]:
    """Process ids of the children that the main thread of a process has."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@dataclass
class Launcher:
    """Starts `ovchat up` and makes sure that it has ended when the test has."""

    directory: Path
    running: list[Up] = field(default_factory=list)

    async def __call__(self, mode: str = "plain", **settings: Any) -> Up:
        for name, text in (("server.py", SERVER), ("up.py", UP)):
            (self.directory / name).write_text(text)
        host = settings.get("host", "127.0.0.1")
        values = {
            "host": host,
            "rest_port": unused_port(),
            "grpc_port": unused_port(),
            "grpc_socket": None,
            "replicas": 1,
            "admin_port": 0,
            "allowed_origins": [],
            "liveness_timeout": 15.0,
            "api_key_file": None,
            "tls": None,
            "models": ["demo"],
            "providers": [],
            "drain_timeout": 30.0,
            "max_request_bytes": 8 << 20,
            "max_concurrent_streams": 1000,
            "envoy_path": None,
            "log_level": "info",
            "log_format": "json",
            "metrics_host": "127.0.0.1",
            "metrics_port": 0,
            "metrics_socket": None,
        } | settings
        bind = authority(host, values["grpc_port"])
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            self.directory / "up.py",
            json.dumps(values),
            *(sys.executable, self.directory / "server.py", bind, mode),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        reached = {"0.0.0.0": "127.0.0.1", "localhost": "127.0.0.1"}.get(host, host)
        up = Up(process, reached, values["rest_port"], values["grpc_port"])
        self.running.append(up)
        return up


@pytest.fixture
async def launch(tmp_path: Path) -> AsyncIterator[Launcher]:
    launcher = Launcher(tmp_path)
    yield launcher
    for up in launcher.running:
        if up.process.returncode is None:
            up.process.kill()
        await up.process.communicate()


async def test_both_doors_are_open_when_the_banner_comes(launch: Launcher) -> None:
    up = await launch()
    await up.ready()
    async with httpx.AsyncClient(timeout=None) as client:
        assert (await client.get(f"{up.rest}/health")).status_code == 200
    for port in (up.grpc_port, up.rest_port):
        async with grpc.aio.insecure_channel(authority(up.host, port)) as channel:
            stub: Any = health_pb2_grpc.HealthStub(channel)
            answer = await stub.Check(health_pb2.HealthCheckRequest())
            assert answer.status == health_pb2.HealthCheckResponse.SERVING


@pytest.mark.slow
async def test_the_server_is_asked_over_rest_once_it_says_that_it_serves(launch: Launcher) -> None:
    up = await launch("loads")
    await up.says("watched", err=True)
    os.kill(up.children()["server"], signal.SIGUSR1)
    await up.ready()
    up.process.send_signal(signal.SIGTERM)
    _, _, err = await up.ends()
    # Each such answer is a line in both logs.
    assert "asked while it loads" not in err


@pytest.mark.slow
async def test_the_banner_waits_for_rest(launch: Launcher) -> None:
    up = await launch("loads for rest")
    banner = asyncio.create_task(up.ready())
    # The second time, the first answer was heard.
    for _ in range(2):
        await up.says("asked while it loads", err=True)
    assert not banner.done()
    os.kill(up.children()["server"], signal.SIGUSR1)
    await banner


@pytest.mark.parametrize(
    "number",
    [signal.SIGINT, signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.slow)],
)
async def test_a_signal_ends_everything_in_order(launch: Launcher, number: signal.Signals) -> None:
    up = await launch()
    await up.ready()
    children = up.children()
    assert set(children) == {"server", "envoy"}
    up.process.send_signal(number)
    code, _, err = await up.ends()
    assert code == 0
    assert "asked to end" in err
    assert "Traceback" not in err
    await gone(*children.values())


async def test_an_answer_under_way_is_finished_and_no_new_one_begun(launch: Launcher) -> None:
    up = await launch()
    await up.ready()
    async with (
        httpx.AsyncClient(timeout=None) as client,
        client.stream("POST", f"{up.rest}/v3/chat/completions") as answer,
    ):
        parts = answer.aiter_text()
        assert await anext(parts) == "first"
        up.process.send_signal(signal.SIGTERM)
        # The server hears of it only after the port is closed.
        await up.says("asked to end", err=True)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(up.host, up.rest_port)
        assert [part async for part in parts] == ["last"]
    code, _, _ = await up.ends()
    assert code == 0


async def test_metrics_are_there_to_the_end(launch: Launcher) -> None:
    port = unused_port()
    url = f"http://127.0.0.1:{port}/metrics"
    up = await launch(metrics_port=port)
    await up.ready()
    async with (
        httpx.AsyncClient(timeout=None) as client,
        client.stream("POST", f"{up.rest}/v3/chat/completions") as answer,
    ):
        parts = answer.aiter_text()
        await anext(parts)
        up.process.send_signal(signal.SIGTERM)
        await up.says("asked to end", err=True)
        text = (await client.get(url)).text
        assert [part async for part in parts] == ["last"]
    # The one that stands in for a server has none.
    assert text.startswith("# HELP ovchat_up ")
    assert '\novchat_up{server="1"} 0.0\n# TYPE envoy_' in text
    assert (await up.ends())[0] == 0
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)


@pytest.mark.slow
async def test_a_kept_connection_is_closed_after_its_next_answer(launch: Launcher) -> None:
    up = await launch("stubborn")
    await up.ready()
    async with httpx.AsyncClient(timeout=None) as client:
        assert "connection" not in (await client.get(f"{up.rest}/health")).headers
        up.process.send_signal(signal.SIGTERM)
        await up.says("asked to end", err=True)
        assert (await client.get(f"{up.rest}/health")).headers["connection"] == "close"


@pytest.mark.slow
async def received(admin_port: int, size: int) -> None:
    """Wait until Envoy has so many bytes of its server."""
    stat = "cluster.ovchat.upstream_cx_rx_bytes_total"
    async with httpx.AsyncClient() as client:
        while True:
            answer = await client.get(f"http://127.0.0.1:{admin_port}/stats?filter={stat}")
            if int(answer.text.rpartition(" ")[2]) >= size:
                return
            await asyncio.sleep(0.02)


async def test_a_client_that_reads_slowly_gets_all_of_its_answer(launch: Launcher) -> None:
    admin_port = unused_port()
    up = await launch("large", admin_port=admin_port)
    await up.ready()
    server = up.children()["server"]
    # More than the sockets to the client hold, and less than Envoy does: the rest waits there.
    small = [(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)]
    async with (
        httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(socket_options=small), timeout=None
        ) as client,
        client.stream("POST", f"{up.rest}/v3/chat/completions") as answer,
    ):
        parts = answer.aiter_bytes()
        size = len(await anext(parts))
        # Before the server goes: what a socket holds that is closed may be lost.
        await received(admin_port, 200 << 10)
        up.process.send_signal(signal.SIGTERM)
        await gone(server)
        async for part in parts:
            size += len(part)
    assert size == len("first") + (200 << 10)
    assert (await up.ends())[0] == 0


async def test_ctrl_c_reaches_the_parent_alone(launch: Launcher) -> None:
    up = await launch()
    await up.ready()
    for pid in up.children().values():
        assert os.getpgid(pid) == pid


@pytest.mark.slow
async def test_children_share_the_parents_session_which_is_what_the_kernel_schedules(
    launch: Launcher,
) -> None:
    up = await launch()
    await up.ready()
    assert {os.getsid(pid) for pid in up.children().values()} == {os.getsid(up.process.pid)}


@pytest.mark.slow
async def test_a_second_signal_ends_at_once(launch: Launcher) -> None:
    up = await launch("stubborn parent", drain_timeout=300.0)
    await up.ready()
    children = up.children()
    # Its own children too, such as the engine of a server that cannot end it any more.
    grandchildren = children_of(children["server"])
    assert grandchildren
    up.process.send_signal(signal.SIGINT)
    await up.says("asked to end", err=True)
    up.process.send_signal(signal.SIGINT)
    code, _, _ = await up.ends()
    assert code == 0
    await gone(*children.values(), *grandchildren)


@pytest.mark.slow
async def test_a_server_that_does_not_end_is_killed_after_the_drain_timeout(
    launch: Launcher,
) -> None:
    up = await launch("stubborn", drain_timeout=0.2, server_timeout=0.2)
    await up.ready()
    children = up.children()
    up.process.send_signal(signal.SIGTERM)
    code, _, err = await up.ends()
    assert code == 0
    assert "asked to end" in err
    await gone(*children.values())


def printed(out: str) -> str:
    """What `ovchat up` printed: not what Envoy logs of requests that ask whether it is ready."""
    return "".join(line for line in out.splitlines(keepends=True) if not line.startswith("{"))


async def test_a_signal_while_starting_ends_everything(launch: Launcher) -> None:
    up = await launch("never ready")
    await up.says("own words", err=True)
    children = up.children()
    up.process.send_signal(signal.SIGINT)
    code, out, _ = await up.ends()
    assert (code, printed(out)) == (0, "")
    await gone(*children.values())


async def test_a_server_that_cannot_start_ends_everything_without_a_banner(
    launch: Launcher,
) -> None:
    up = await launch("exits with 2")
    code, out, err = await up.ends()
    assert (code, printed(out)) == (1, "")
    # It has said why.
    assert re.fullmatch(r"Metrics are on .*\nthe server's own words\n", err)
    for port in (up.rest_port, up.grpc_port):
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(up.host, port)


async def test_a_server_that_ends_without_a_word_is_told_of(launch: Launcher) -> None:
    _, _, err = await (await launch("exits with 99")).ends()
    assert err.endswith("\nthe server cannot start: it ended with exit code 99\n")


async def test_one_line_tells_what_several_servers_wait_for(launch: Launcher) -> None:
    up = await launch(replicas=2)
    await up.ready()
    async with (
        httpx.AsyncClient(timeout=None) as client,
        client.stream("POST", f"{up.rest}/v3/chat/completions") as answer,
    ):
        parts = answer.aiter_text()
        await anext(parts)
        up.process.send_signal(signal.SIGINT)
        assert [part async for part in parts] == ["last"]
    _, _, err = await up.ends()
    told = [line for line in err.splitlines() if line.startswith("stopping")]
    assert told == [
        "stopping: 1 answer is under way, up to 30 s for it; Ctrl-C again ends it at once"
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("dead", "name"), [("server", "the server"), ("envoy", "Envoy")])
async def test_what_dies_is_started_again_on_the_same_ports(
    launch: Launcher, dead: str, name: str
) -> None:
    up = await launch()
    await up.ready()
    before = up.children()
    os.kill(before[dead], signal.SIGKILL)
    await up.says(f"{name} was ended by signal SIGKILL; starting it again in 0.", err=True)
    await up.says(f"{name} serves again", err=True)
    after = up.children()
    assert {kind for kind in before if before[kind] != after[kind]} == {dead}
    async with httpx.AsyncClient(timeout=None) as client:
        assert (await client.get(f"{up.rest}/health")).status_code == 200
    up.process.send_signal(signal.SIGTERM)
    code, _, err = await up.ends()
    assert code == 0
    assert "Traceback" not in err
    await gone(*before.values(), *after.values())


@pytest.mark.slow
async def test_a_server_asked_to_end_is_started_again(launch: Launcher) -> None:
    up = await launch()
    await up.ready()
    os.kill(up.children()["server"], signal.SIGTERM)
    await up.says("the server ended, as it does on SIGTERM; starting it again in 0.", err=True)
    await up.says("the server serves again", err=True)


@pytest.mark.slow
async def test_a_server_killed_while_it_starts_is_started_again(launch: Launcher) -> None:
    up = await launch("never ready")
    await up.says("own words", err=True)
    os.kill(up.children()["server"], signal.SIGKILL)
    await up.says("the server was ended by signal SIGKILL", err=True)
    await up.says("own words", err=True)
    up.process.send_signal(signal.SIGTERM)
    assert (await up.ends())[0] == 0


async def test_what_is_asked_while_the_only_server_is_away_is_told_so(launch: Launcher) -> None:
    up = await launch("ready once")
    await up.ready()
    os.kill(up.children()["server"], signal.SIGKILL)
    await up.says("was ended by signal SIGKILL", err=True)
    async with httpx.AsyncClient(timeout=None) as client:
        answer = await client.get(f"{up.rest}/health")
    assert answer.status_code == 503
    assert answer.headers["retry-after"]


async def test_children_do_not_outlive_a_killed_parent(launch: Launcher) -> None:
    up = await launch("stubborn")
    await up.ready()
    children = up.children()
    up.process.kill()
    await gone(*children.values())


@pytest.mark.parametrize("option", ["rest_port", "grpc_port", "admin_port", "metrics_port"])
async def test_a_port_in_use_is_named_before_anything_starts(launch: Launcher, option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        up = await launch(**{option: port})
        code, out, err = await up.ends()
    assert (code, out) == (1, "")
    flag = "--" + option.replace("_", "-")
    assert err == f"port {port} is already in use: choose another with {flag}\n"


@pytest.mark.slow
async def test_a_port_of_another_envoy_is_in_use(launch: Launcher) -> None:
    # Envoy shares its port with whoever sets SO_REUSEPORT: the second would take half.
    first = await launch()
    await first.ready()
    second = await launch(rest_port=first.rest_port)
    code, _, err = await second.ends()
    assert code == 1
    assert f"port {first.rest_port} is already in use" in err


@pytest.mark.slow
async def test_a_port_just_left_is_free(launch: Launcher) -> None:
    first = await launch()
    await first.ready()
    async with httpx.AsyncClient(timeout=None) as client:
        await client.get(f"{first.rest}/health")
        first.process.send_signal(signal.SIGTERM)
        await first.ends()
    second = await launch(rest_port=first.rest_port, grpc_port=first.grpc_port)
    await second.ready()


@pytest.mark.parametrize("other", ["grpc_port", "metrics_port"])
async def test_one_port_for_both_is_refused(launch: Launcher, other: str) -> None:
    port = unused_port()
    up = await launch(**{"rest_port": port, other: port})
    code, _, err = await up.ends()
    assert code == 1
    flag = "--" + other.replace("_", "-")
    assert err == f"--rest-port and {flag} are both {port}: choose another for one\n"


@pytest.mark.slow
async def test_a_rest_port_of_0_is_a_free_one(launch: Launcher) -> None:
    up = await launch(rest_port=0)
    await up.ready()
    found = re.search(r"REST (http://\S+)/v3", "".join(up.out))
    assert found
    async with httpx.AsyncClient(timeout=None) as client:
        assert (await client.get(f"{found[1]}/health")).status_code == 200


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"grpc_port": 0}, "--grpc-port 0 is for `ovchat serve`"),
        ({"host": "no.such.host.invalid"}, "--host: cannot resolve host 'no.such.host.invalid'"),
        ({"host": "192.0.2.1"}, "192.0.2.1 is not an address of this machine"),
        ({"metrics_host": "no.such.host.invalid"}, "--metrics-host: cannot resolve host"),
        (
            {"metrics_host": "192.0.2.1"},
            "192.0.2.1 is not an address of this machine: choose another with --metrics-host",
        ),
        ({"envoy_path": "/bin/echo"}, "/bin/echo is not Envoy: name Envoy's binary"),
    ],
)
async def test_what_cannot_work_is_said_before_anything_starts(
    launch: Launcher, settings: dict[str, Any], words: str
) -> None:
    up = await launch(**settings)
    code, out, err = await up.ends()
    assert (code, out) == (1, "")
    assert err.startswith(words)
    assert err.count("\n") == 1


def has_ipv6() -> bool:
    with contextlib.suppress(OSError), socket.create_server(("::1", 0), family=socket.AF_INET6):
        return True
    return False


@pytest.mark.parametrize(
    ("settings", "warned"),
    [
        ({"host": "0.0.0.0"}, True),
        ({"host": "0.0.0.0", "api_key_file": "keys"}, False),
        ({}, False),
    ],
)
async def test_who_listens_to_everybody_without_keys_is_warned(
    launch: Launcher, settings: dict[str, Any], *, warned: bool
) -> None:
    up = await launch("exits with 2", **settings)
    _, _, err = await up.ends()
    assert ("everybody who reaches this machine may call: --api-key-file" in err) is warned


@pytest.mark.slow
@pytest.mark.parametrize(
    "host",
    [
        "0.0.0.0",
        "localhost",
        pytest.param("::1", marks=pytest.mark.skipif(not has_ipv6(), reason="no IPv6 here")),
    ],
)
async def test_other_hosts_work(launch: Launcher, host: str) -> None:
    up = await launch(host=host)
    await up.ready()
    assert up.rest in "".join(up.out)
    async with httpx.AsyncClient(timeout=None) as client:
        assert (await client.get(f"{up.rest}/health")).status_code == 200
    up.process.send_signal(signal.SIGTERM)
    assert (await up.ends())[0] == 0
