"""Providers behind Envoy: what reaches them, and what is said of those that do not answer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from ovchat_server.launch.http import request as plain_request
from ovchat_server.provider_settings import ProviderSettings
from tests.certificates import Authority
from tests.ports import unused_port
from tests.rest.envoy.way_out import FAILURE, provider, way_out

if TYPE_CHECKING:
    from pathlib import Path


# What Envoy takes as orders, unless it is told not to.
STEERING = {
    "x-envoy-retry-on": "5xx",
    "x-envoy-max-retries": "3",
    "x-envoy-upstream-rq-timeout-ms": "1",
    "x-envoy-original-path": "/",
}


def at(url: str, name: str = "one", **settings: Any) -> ProviderSettings:
    return ProviderSettings(name=name, base_url=url, **settings)


async def is_open(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


async def test_a_provider_sees_itself_addressed_and_nothing_of_the_way() -> None:
    async with (
        provider() as one,
        way_out(
            at(f"http://127.0.0.1:{one.port}/v1"),
            at(f"http://localhost:{one.port}", "other"),
        ) as way,
    ):
        traces = {"x-forwarded-for": "192.0.2.1", "x-request-id": "1"}
        own = {"authorization": "Bearer key", "user-agent": "ovchat", "traceparent": "00-1"}
        headers = {**STEERING, **traces, **own}
        answer = await way.post("http://one/chat/completions?a=1", data=b"{}", headers=headers)
        other = await way.post("http://other/models", headers={"x-request-id": "1"})
        unknown = await way.post("http://unknown/models")
    first, second = one.requests
    assert first.path_qs == "/v1/chat/completions?a=1"
    assert second.path_qs == "/models"
    plain = {"host", "accept", "accept-encoding", "content-length", "content-type"}
    assert {name.lower() for name in first.headers} == plain | own.keys()
    assert first.headers["authorization"] == "Bearer key"
    assert first.headers["host"] == f"127.0.0.1:{one.port}"
    assert second.headers["host"] == f"localhost:{one.port}"
    for got in (answer, other):
        assert (got.status, got.text) == (200, "hello")
        # It says that Envoy failed, which is not its to say.
        assert FAILURE not in got.headers
        assert got.headers["server"] == "they"
    assert (unknown.status, unknown.flags) == (404, {"NR"})


async def test_a_provider_with_tls_is_who_it_says(tmp_path: Path) -> None:
    authority = Authority.new(tmp_path)
    async with (
        provider(authority.server("localhost")) as right,
        provider(authority.server("127.0.0.1")) as address,
        provider(authority.server("elsewhere.example")) as wrong,
        provider(authority.server("localhost", days=-1)) as expired,
        provider() as plain,
        way_out(
            at(f"https://localhost:{right.port}", "right", ca_file=authority.file),
            at(f"https://127.0.0.1:{address.port}", "address", ca_file=authority.file),
            at(f"https://localhost:{wrong.port}", "wrong", ca_file=authority.file),
            at(f"https://localhost:{expired.port}", "expired", ca_file=authority.file),
            at(f"https://localhost:{plain.port}", "plain", ca_file=authority.file),
            at(f"https://localhost:{right.port}", "unknown"),
        ) as way,
    ):
        assert (await way.post("http://right/")).status == 200
        assert (await way.post("http://address/")).status == 200
        reasons = {
            "wrong": "verify_SAN_list",
            "expired": "certificate_has_expired",
            "plain": "WRONG_VERSION_NUMBER",
            "unknown": "unable_to_get_local_issuer_certificate",
        }
        for name, reason in reasons.items():
            answer = await way.post(f"http://{name}/", headers={"authorization": "Bearer key"})
            assert answer.status == 503
            assert "UF" in answer.flags
            assert reason in answer.text
    assert len(right.requests) == 1
    assert not wrong.requests + expired.requests + plain.requests


async def test_a_provider_that_is_down_is_soon_not_tried_any_more() -> None:
    async with way_out(at(f"http://127.0.0.1:{unused_port()}")) as way:
        answer = await way.post("http://one/")
        assert (answer.status, answer.flags) == (503, {"UF", "URX"})
        assert "Connection_refused" in answer.text
        while "UF" in answer.flags:
            answer = await way.post("http://one/")
        assert (answer.status, answer.flags) == (503, {"UH"})
        # And is again, when it has been left alone for a second.
        while "UH" in answer.flags:
            await asyncio.sleep(0.05)
            answer = await way.post("http://one/")
        assert "UF" in answer.flags


async def test_more_requests_than_a_provider_may_have_are_refused() -> None:
    async with (
        provider() as one,
        way_out(at(f"http://127.0.0.1:{one.port}", max_requests=1)) as way,
    ):
        async with way.client.post("http://one/stalls") as begun:
            assert await begun.content.readline() == b"data: 1\n"
            answer = await way.post("http://one/")
            assert (answer.status, answer.flags) == (503, {"UO"})
        # Whoever asked has gone: the provider need not go on, and the next one may ask.
        await one.left.wait()
        while (answer := await way.post("http://one/")).flags == {"UO"}:
            pass
        assert answer.status == 200


async def test_a_silent_provider_is_given_up() -> None:
    async with (
        provider() as one,
        way_out(at(f"http://127.0.0.1:{one.port}", timeout=0.3)) as way,
    ):
        answer = await way.post("http://one/silent")
        assert (answer.status, answer.flags) == (504, {"SI"})
        await one.left.wait()
        one.left.clear()
        with pytest.raises(aiohttp.ClientPayloadError):
            await way.post("http://one/stalls")
        await one.left.wait()
        # Neither was tried again.
        assert len(one.requests) == 2


async def test_an_error_of_a_provider_is_its_answer() -> None:
    async with provider() as one, way_out(at(f"http://127.0.0.1:{one.port}")) as way:
        for status in (429, 500, 502, 503, 504):
            for _ in range(3):
                answer = await way.post(f"http://one/{status}", headers=STEERING)
                assert (answer.status, answer.text, answer.flags) == (status, "hello", set())
        # Each arrived once, and so many in a row have nobody sent away.
        assert len(one.requests) == 15


async def test_a_connection_that_closes_under_a_request_is_replaced() -> None:
    # More than Envoy buffers elsewhere.
    body = bytes(2 << 20)
    requests = 0

    async def answer_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal requests
        for answer in (b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n1", b""):
            await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(len(body))
            requests += 1
            writer.write(answer)
        writer.close()

    async with await asyncio.start_server(answer_one, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with way_out(at(f"http://127.0.0.1:{port}")) as way:
            assert (await way.post("http://one/", data=body)).status == 200
            assert (await way.post("http://one/", data=body)).status == 200
            assert requests == 3


async def test_a_body_as_large_as_may_be_arrives(tmp_path: Path) -> None:
    authority = Authority.new(tmp_path)
    async with (
        provider(authority.server("localhost")) as one,
        way_out(at(f"https://localhost:{one.port}", ca_file=authority.file)) as way,
    ):
        body = bytes(range(256)) * (32 << 12)
        assert (await way.post("http://one/", data=body)).status == 200
        assert one.bodies == [body]


async def test_the_way_out_stays_open_while_the_ports_are_closed() -> None:
    # What servers still answer may have to ask a provider.
    async with provider() as one, way_out(at(f"http://127.0.0.1:{one.port}")) as way:
        for path in ("/healthcheck/fail", "/drain_listeners?inboundonly"):
            await plain_request("POST", "127.0.0.1", way.admin_port, path)
        # Envoy answers before it has closed them.
        while await is_open(way.rest_port):
            pass
        for _ in range(2):
            answer = await way.post("http://one/", headers={"connection": "close"})
            assert answer.status == 200
