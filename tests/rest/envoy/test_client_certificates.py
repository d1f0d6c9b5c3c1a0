"""Whose certificate a caller has shown, on both doors and both ports."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import grpc.aio
import httpx
import pytest
import yaml
from cryptography import x509

from ovchat.v1 import chat_service_pb2_grpc
from ovchat_server.launch.envoy_config import Socket
from ovchat_server.launch.tls import EnvoyTls
from ovchat_server.rpc.client_certificate import FORWARDED, certificate_name
from ovchat_server.rpc.tls import server_credentials
from ovchat_server.settings import socket_target
from ovchat_server.tls.files import CurrentTls, TlsFiles
from tests.certificates import Authority
from tests.conftest import ROOT
from tests.rest.conftest import POLL
from tests.rest.envoy.edge import chat_request, edge
from tests.rest.envoy.paths import CHAT
from tests.rest.envoy.scripted import Rest, Seen, scripted_server
from tests.tls_clients import Caller

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.rest.envoy.edge import Edge
    from tests.rest.envoy.scripted import Progress

# What is in a certificate: its common name and the others; and the name that counts.
NAMES = [
    ("cn", ["host.example", "spiffe://example/first", "https://second"], "spiffe://example/first"),
    ("cn", ["first.example", "second.example"], "first.example"),
    ("team a", [], "team a"),
    ("cn", ["10.0.0.1"], "cn"),
    ("Zoë", [], "Zoë"),
    ('a";Cert="b', [], 'a";Cert="b'),
    ("two\nlines", [], ""),
    ("x", ["spiffe://" + "x" * 300], ""),
]


@dataclass
class Named(Seen):
    """Notes the name of each caller, too."""

    names: list[str] = field(default_factory=list)

    def note(self, context: Any) -> Progress:
        self.names.append(certificate_name(context))
        return super().note(context)


@dataclass
class Doors:
    """Envoy and the server behind it, and what that has seen."""

    authority: Authority
    envoy: Edge
    port: int
    plain_port: int
    seen: Named

    async def names(self, caller: Caller, headers: dict[str, str]) -> list[str]:
        """What the server takes the caller for, on each way to it."""
        self.seen.names.clear()
        headers = {"x-request-id": "x", **headers}
        url = f"https://127.0.0.1:{self.envoy.port}"
        async with httpx.AsyncClient(base_url=url, verify=caller.context, timeout=None) as http:
            assert (await http.post(CHAT, json={}, headers=headers)).is_success
        for port in (self.envoy.port, self.port):
            async with caller.channel(port) as channel:
                await called(channel, headers)
        return self.seen.names


async def called(channel: grpc.aio.Channel, headers: dict[str, str]) -> None:
    stub = chat_service_pb2_grpc.ChatServiceStub(channel)
    await stub.CreateChatCompletion(chat_request({}), metadata=tuple(headers.items()))


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.new(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def forged(authority: Authority) -> dict[str, str]:
    """What a caller says who would like to be another."""
    certificate, _ = authority.files("another")
    return {FORWARDED: f'Hash=1;Cert="{quote(certificate.read_text())}"'}


@pytest.fixture(scope="module")
async def doors(
    authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Doors]:
    folder = tmp_path_factory.mktemp("ovchat")
    files = TlsFiles(*authority.files("server", "127.0.0.1"), authority.file)
    seen = Named()
    server = scripted_server(Rest(seen))
    socket = Socket(str(folder / "server"))
    server.add_insecure_port(socket_target(socket.name))
    current = CurrentTls(files, "The gRPC port")
    port = server.add_secure_port("127.0.0.1:0", server_credentials(current))
    plain = server.add_insecure_port("127.0.0.1:0")

    def with_tls(config: dict[str, Any]) -> None:
        [cluster] = config["static_resources"]["clusters"]
        [endpoints] = cluster["load_assignment"]["endpoints"]
        endpoints["lb_endpoints"] = [{"endpoint": {"address": socket.config}}]
        tls = EnvoyTls.make(files, folder)
        assert tls
        tls.add_to(config)

    await server.start()
    async with edge(folder, with_tls, server_runs=False) as envoy:
        yield Doors(authority, envoy, port, plain, seen)
    await server.stop(None)


@pytest.mark.parametrize(("common", "others", "name"), NAMES)
async def test_the_first_uri_counts_else_the_first_host_else_the_common_name(
    common: str, others: list[str], name: str, doors: Doors, forged: dict[str, str]
) -> None:
    caller = Caller(doors.authority, doors.authority.files(common, *others))
    assert await doors.names(caller, forged) == [name] * 3


async def test_what_others_than_envoy_say_is_not_believed(
    doors: Doors, gate: Edge, forged: dict[str, str]
) -> None:
    doors.seen.names.clear()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{doors.plain_port}") as channel:
        await called(channel, {"x-request-id": "x", **forged})
    assert doors.seen.names == [""]
    # An Envoy that asks for no certificates takes it away.
    await gate.post({}, headers=forged)
    assert FORWARDED not in gate.seen.last


async def test_the_files_for_containers_are_followed(tmp_path: Path, authority: Authority) -> None:
    """deploy/tls, as it is mounted: a Secret, whose link is swapped."""
    folder = tmp_path / "tls"
    folder.mkdir()

    def mount() -> int:
        certificate, key = authority.files("server", "127.0.0.1")
        number = x509.load_pem_x509_certificate(certificate.read_bytes()).serial_number
        data = folder / f"..{number}"
        data.mkdir()
        certificate.rename(data / "tls.crt")
        key.rename(data / "tls.key")
        shutil.copy(authority.file, data / "ca.crt")
        (folder / "..data_tmp").symlink_to(data.name)
        (folder / "..data_tmp").rename(folder / "..data")
        return number

    first = mount()
    for name in ("tls.crt", "tls.key", "ca.crt"):
        (folder / name).symlink_to(f"..data/{name}")

    def adapted(name: str) -> str:
        text = (ROOT / "deploy/tls" / name).read_text()
        return text.replace(" /tls", f" {tmp_path}/tls").replace(" /sds", f" {tmp_path}/sds")

    (tmp_path / "sds").mkdir()
    for name in ("certificate.yaml", "clients.yaml"):
        (tmp_path / "sds" / name).write_text(adapted(name))

    def with_tls(config: dict[str, Any]) -> None:
        config["node"] = {"id": "ovchat", "cluster": "ovchat"}
        [listener] = config["static_resources"]["listeners"]
        listener["filter_chains"][0] |= yaml.safe_load(adapted("transport_socket.yaml"))

    caller = Caller(authority, authority.files("caller"))
    async with edge(tmp_path, with_tls) as envoy:
        assert await caller.serial(envoy.port) == first
        second = mount()
        while True:
            if await caller.serial(envoy.port) == second:
                break
            await asyncio.sleep(POLL)
        headers = {"x-request-id": "x"}
        async with caller.channel(envoy.port) as channel:
            await called(channel, headers)
        async with Caller(authority).channel(envoy.port) as channel:
            with pytest.raises(grpc.aio.AioRpcError):
                await called(channel, headers)
