"""Envoy before two servers: which requests are tried again, and what callers hear of it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import grpc
import pytest

from ovchat_server.launch.envoy_config import Address
from tests.ports import unused_port
from tests.rest.envoy.edge import (
    Edge,
    assert_error,
    chat_request,
    chat_stub,
    edge,
    request_for,
)
from tests.rest.envoy.paths import CHAT, DOORS
from tests.rest.envoy.scripted import ERROR, Rest, Seen, scripted_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

# Of which each reaches a server that cannot answer with a probability of one half at least.
TRIES = 20


@dataclass
class Pair:
    """Two servers behind one Envoy."""

    gate: Edge
    other: Rest

    @property
    def arrived(self) -> int:
        return len(self.gate.seen.metadata) + len(self.other.seen.metadata)


@pytest.fixture(scope="module")
async def pair(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Pair]:
    other = Rest(Seen())
    server = scripted_server(other)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    directory = tmp_path_factory.mktemp("pair")
    async with edge(directory, others=[Address("127.0.0.1", port)]) as gate:
        yield Pair(gate, other)
    await server.stop(None)


async def test_what_one_server_cannot_answer_now_the_other_does(pair: Pair) -> None:
    pair.other.ready = False
    try:
        answers = [await pair.gate.http.get("/health") for _ in range(TRIES)]
    finally:
        pair.other.ready = True
    assert {answer.status_code for answer in answers} == {200}


async def test_what_none_can_answer_now_is_told_in_the_servers_own_words(pair: Pair) -> None:
    pair.other.ready = pair.gate.rest.ready = False
    try:
        answer = await pair.gate.http.get("/health")
    finally:
        pair.other.ready = pair.gate.rest.ready = True
    assert answer.status_code == 503
    assert answer.json() == ERROR
    assert answer.headers["retry-after"] == "7"


@pytest.mark.parametrize("path", DOORS)
async def test_a_request_that_no_server_takes_is_tried_on_both(pair: Pair, path: str) -> None:
    before = pair.arrived
    answer = await pair.gate.post(request_for(path, {"abort": "UNAVAILABLE"}), path)
    assert_error(answer, 503, "service_unavailable")
    assert pair.arrived - before > 2


@pytest.mark.parametrize("code", ["INTERNAL", "RESOURCE_EXHAUSTED", "INVALID_ARGUMENT", "ABORTED"])
async def test_other_refusals_are_final(pair: Pair, code: str) -> None:
    before = pair.arrived
    await pair.gate.post({"abort": code})
    with pytest.raises(grpc.aio.AioRpcError):
        await chat_stub(pair.gate).CreateChatCompletion(chat_request({"abort": code}))
    assert pair.arrived == before + 2


async def test_an_answer_that_began_is_not_begun_again(pair: Pair) -> None:
    before = pair.arrived
    await pair.gate.post({"abort": "UNAVAILABLE", "initial": True})
    answer = await pair.gate.post({"stream": True, "late_abort": True})
    assert answer.text.startswith("data: 0")
    assert pair.arrived == before + 2


async def test_the_one_with_the_fewest_requests_gets_the_next(pair: Pair) -> None:
    script = {"stream": True, "stepwise": True, "events": 1}
    servers = (pair.gate.seen, pair.other.seen)
    async with pair.gate.http.stream("POST", CHAT, json=script) as answer:
        # Kept: collected, it would close the stream.
        events = answer.aiter_bytes()
        await anext(events)
        counts = [len(seen.metadata) for seen in servers]
        for _ in range(3 * TRIES):
            await pair.gate.post({})
        gained = sorted(len(s.metadata) - c for s, c in zip(servers, counts, strict=True))
    # The busy one only where it is drawn three times: of eight requests one.
    assert gained[0] < TRIES < gained[1]


async def test_a_server_that_is_down_costs_no_request(tmp_path: Path) -> None:
    async with edge(tmp_path, others=[Address("127.0.0.1", unused_port())]) as gate:
        answers = await asyncio.gather(*(gate.post({}) for _ in range(TRIES)))
        assert {answer.status_code for answer in answers} == {200}
        for _ in range(TRIES):
            await chat_stub(gate).CreateChatCompletion(chat_request({}))


async def test_servers_that_are_all_down_are_unavailable(tmp_path: Path) -> None:
    others = [Address("127.0.0.1", unused_port())]
    async with edge(tmp_path, others=others, server_runs=False) as gate:
        answer = await gate.post({})
    assert_error(answer, 503, "service_unavailable")
    assert answer.headers["retry-after"] == "1"
