"""TLS and certificates of clients on both doors and both ports, while the files change."""

from __future__ import annotations

import asyncio
import os
import shutil
import ssl
import subprocess
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import grpc
import httpx
import openai
import pytest
from cryptography import x509

from tests.certificates import Authority
from tests.rest.conftest import POLL, Stack, load_of, running_stack
from tests.tls_clients import KEY, Caller, ask

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
    from pathlib import Path

    from ovchat_server.settings import ModelSettings

NAMES = ("cert.pem", "key.pem")
REFUSED = (openai.APIConnectionError, grpc.aio.AioRpcError)


@dataclass(frozen=True)
class Files:
    """The server's files, mounted as Kubernetes mounts a Secret: behind a link that is swapped."""

    folder: Path
    authority: Authority

    @classmethod
    def new(cls, folder: Path) -> Files:
        made = cls(folder, Authority.new(folder / "ours"))
        made.swap_link()
        for name in NAMES:
            (folder / name).symlink_to(f"..data/{name}")
        shutil.copy(made.authority.file, folder / "clients.pem")
        return made

    @property
    def options(self) -> list[str]:
        given = zip(("cert", "key", "client-ca"), (*NAMES, "clients.pem"), strict=True)
        return [f"--tls-{option}={self.folder / name}" for option, name in given]

    def issued(self) -> tuple[Path, Path]:
        return self.authority.files("server", "127.0.0.1")

    def swap_link(self) -> int:
        certificate, key = self.issued()
        data = self.folder / f"..{certificate.name}"
        data.mkdir()
        number = serial_of(certificate)
        for path, name in zip((certificate, key), NAMES, strict=True):
            path.rename(data / name)
        new = self.folder / "..data_tmp"
        new.symlink_to(data.name)
        new.rename(self.folder / "..data")
        return number

    def rename(self) -> int:
        certificate, key = self.issued()
        number = serial_of(certificate)
        for path, name in zip((certificate, key), NAMES, strict=True):
            path.rename(self.folder / name)
        return number

    def overwrite(self) -> int:
        certificate, key = self.issued()
        for path, name in zip((certificate, key), NAMES, strict=True):
            (self.folder / name).write_bytes(path.read_bytes())
        return serial_of(certificate)


def serial_of(certificate: Path) -> int:
    return x509.load_pem_x509_certificate(certificate.read_bytes()).serial_number


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files.new(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def strange(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.new(tmp_path_factory.mktemp("strange"))


@pytest.fixture(scope="module")
def served(
    files: Files, tmp_path_factory: pytest.TempPathFactory, successor: ModelSettings
) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("served")
    (folder / "keys").write_text(KEY)
    options = [*files.options, "--host=0.0.0.0", f"--api-key-file={folder}/keys"]
    with running_stack(folder, successor, options=options) as stack:
        yield stack
    log = stack.log.read_text()
    # gRPC's own words of each handshake.
    assert "ssl_transport_security" not in log


@pytest.fixture(scope="module")
def ours(files: Files) -> Caller:
    return Caller(files.authority, files.authority.files("ours"))


@pytest.fixture
async def http(served: Stack, ours: Caller) -> AsyncIterator[httpx.AsyncClient]:
    url = served.url.replace("http:", "https:")
    headers = {"x-api-key": KEY}
    async with httpx.AsyncClient(
        base_url=url, verify=ours.context, headers=headers, timeout=None
    ) as client:
        yield client


def ways(stack: Stack, caller: Caller) -> dict[str, Callable[[], Coroutine[Any, Any, str]]]:
    """Each door, on each port that it is on."""
    return {
        "REST": lambda: caller.over_rest(stack.rest_port),
        "gRPC through Envoy": lambda: caller.over_grpc(stack.rest_port),
        "gRPC": lambda: caller.over_grpc(stack.grpc_port),
    }


async def test_who_shows_the_right_certificate_is_answered(served: Stack, ours: Caller) -> None:
    for way in ways(served, ours).values():
        assert await way() == "bcd"


CALLERS: dict[str, Callable[[Caller, Authority], Caller]] = {
    "no certificate": lambda ours, _: Caller(ours.authority),
    "of another authority": lambda ours, strange: Caller(ours.authority, strange.files("ours")),
    "expired": lambda ours, _: Caller(ours.authority, expired(ours)),
    "without TLS": lambda _ours, _: Caller(None),
    "under another name": lambda ours, _: ours.at("localhost"),
    "who trusts others": lambda ours, strange: Caller(strange, ours.shows),
}


def expired(ours: Caller) -> tuple[Path, Path]:
    assert ours.authority
    return ours.authority.files("ours", days=-1)


@pytest.mark.parametrize("who", CALLERS)
async def test_nobody_else_reaches_the_engine(
    who: str, served: Stack, ours: Caller, strange: Authority, http: httpx.AsyncClient
) -> None:
    caller = CALLERS[who](ours, strange)
    before = await load_of(http, "successor")
    for way in ways(served, caller).values():
        with pytest.raises(REFUSED) as caught:
            await way()
        if isinstance(caught.value, grpc.aio.AioRpcError):
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert await load_of(http, "successor") == before


async def test_a_certificate_does_not_replace_a_key(
    served: Stack, ours: Caller, http: httpx.AsyncClient
) -> None:
    before = await load_of(http, "successor")
    for way in ways(served, replace(ours, key="wrong")).values():
        with pytest.raises((openai.AuthenticationError, grpc.aio.AioRpcError)) as caught:
            await way()
        if isinstance(caught.value, grpc.aio.AioRpcError):
            assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert await load_of(http, "successor") == before


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
@pytest.mark.parametrize("port", ["rest_port", "grpc_port"])
async def test_what_is_older_than_tls_1_2_is_refused(
    port: str, served: Stack, ours: Caller
) -> None:
    context = ours.context
    context.set_alpn_protocols(["h2"])
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    address = "127.0.0.1", getattr(served, port)
    (await asyncio.open_connection(*address, ssl=context))[1].close()
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    # Its alert, or the end of the connection.
    with pytest.raises(OSError):  # noqa: PT011
        await asyncio.open_connection(*address, ssl=context)


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *command],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_our_own_clients_speak_tls(served: Stack, files: Files, ours: Caller) -> None:
    assert ours.shows
    shows = [f"--{flag}={path}" for flag, path in zip(("cert", "key"), ours.shows, strict=True)]
    trusts = f"--cacert={files.authority.file}"
    for port in (served.rest_port, served.grpc_port):
        command = ["ovchat_server", "top", f"127.0.0.1:{port}", "--interval=0.1", trusts, *shows]
        top = run(*command, OVCHAT_API_KEY=KEY)
        assert "successor" in top.stdout, top.stderr
    health, here = "ovchat_server.launch.healthcheck", f"127.0.0.1:{served.grpc_port}"
    assert run(health, here, trusts, *shows).stdout == "SERVING\n"
    assert run(health, here, trusts, *shows, "--servername=elsewhere").returncode == 1
    assert run(health, here, trusts).returncode == 1
    # In the server's own container: it trusts that very certificate, as whatever it is reached.
    own = {"OVCHAT_TLS_CERT": str(files.folder / "cert.pem")}
    model = "--service=ovchat.v1.ChatService/successor"
    for address in (here, f"localhost:{served.grpc_port}"):
        assert run(health, address, *shows, model, **own).stdout == "SERVING\n"
    ended = run(health, here, *shows, "--service=nothing", **own)
    assert (ended.returncode, "NOT_FOUND" in ended.stderr) == (1, True)
    assert "--cert and --key need each other" in run(health, here, trusts, shows[0]).stderr


async def shown(caller: Caller, serial: int, *ports: int) -> None:
    """Wait until new connections are shown a certificate."""
    for port in ports:
        while True:
            if await caller.serial(port) == serial:
                break
            await asyncio.sleep(POLL)


@pytest.mark.parametrize("replicas", [1, 2])
async def test_certificates_are_replaced_while_callers_call(
    replicas: int, tmp_path: Path, successor: ModelSettings
) -> None:
    files = Files.new(tmp_path / "tls")
    caller = Caller(files.authority, files.authority.files("caller"))
    options = [*files.options, f"--replicas={replicas}", "--host=0.0.0.0"]
    with running_stack(tmp_path, successor, options=options) as stack:
        await no_call_fails(stack, files, caller)
    # As it is warned of without keys and certificates.
    assert "everybody" not in stack.log.read_text()


async def no_call_fails(stack: Stack, files: Files, caller: Caller) -> None:
    async with caller.rest_client(stack.rest_port) as kept:
        # Each call on a new connection, and one caller that keeps its own.
        callers = [*ways(stack, caller).values(), lambda: ask(kept)]
        answered = [0] * len(callers)

        async def calls(number: int, way: Callable[[], Coroutine[Any, Any, str]]) -> None:
            while True:
                assert await way() == "bcd"
                answered[number] += 1

        tasks = [asyncio.create_task(calls(*numbered)) for numbered in enumerate(callers)]

        async def each_answered() -> None:
            before = [*answered]
            # Two: the first may have begun before.
            while min(now - then for now, then in zip(answered, before, strict=True)) < 2:
                assert not any(task.done() for task in tasks), [*map(str, tasks)]
                await asyncio.sleep(POLL)

        await each_answered()
        for change in (files.swap_link, files.swap_link, files.rename, files.overwrite):
            number = change()
            await shown(caller, number, stack.rest_port, stack.grpc_port)
            await each_answered()
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert {*map(type, ended)} == {asyncio.CancelledError}


async def test_a_pair_that_does_not_fit_changes_nothing(
    served: Stack, files: Files, ours: Caller
) -> None:
    before, begin = await ours.serial(served.rest_port), len(served.log.read_text())
    certificate, key = files.issued()
    number = serial_of(certificate)
    certificate.rename(files.folder / "cert.pem")
    for ports, kept in ((served.rest_port, "Envoy"), (served.grpc_port, "The gRPC port")):
        told = f"{kept} keeps the certificate that it has"
        while told not in served.log.read_text()[begin:]:
            assert await ours.serial(ports) == before
            await asyncio.sleep(POLL)
        assert await ours.serial(ports) == before
    for way in ways(served, ours).values():
        assert await way() == "bcd"
    # The other half.
    key.rename(files.folder / "key.pem")
    await shown(ours, number, served.rest_port, served.grpc_port)
    assert served.log.read_text()[begin:].count("keeps the certificate that it has") == 2


async def test_the_authority_of_clients_is_replaced(
    served: Stack, files: Files, ours: Caller, strange: Authority
) -> None:
    theirs = Caller(ours.authority, strange.files("theirs"))
    for authority, welcome, other in ((strange, theirs, ours), (files.authority, ours, theirs)):
        shutil.copy(authority.file, files.folder / "clients.pem.new")
        (files.folder / "clients.pem.new").rename(files.folder / "clients.pem")
        for name, way in ways(served, other).items():
            while True:
                try:
                    await way()
                except REFUSED:
                    break
                await asyncio.sleep(POLL)
            assert await ways(served, welcome)[name]() == "bcd"
