"""A weather agent comes to its answer: every choice of tools, both doors, whole and streamed."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import grpc.aio
import pytest

from ovchat.v1 import chat_service_pb2_grpc
from tests.rest.agents.conversations import Async, Conversation, Grpc, Sync, converse
from tests.rest.agents.weather import CASES, RESULTS, TOOLS, Call, Case, Turn
from tests.rest.programs import printed_by_node

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    import openai

    from tests.rest.conftest import Stack


@dataclass(frozen=True)
class Clients:
    """What conversations are had with."""

    sdk: openai.OpenAI
    async_sdk: openai.AsyncOpenAI
    stub: chat_service_pb2_grpc.ChatServiceAsyncStub


WAYS: dict[str, Callable[[Clients], Conversation]] = {
    "openai": lambda clients: Sync(clients.sdk, stream=False),
    "openai, streamed": lambda clients: Sync(clients.sdk, stream=True),
    "async openai": lambda clients: Async(clients.async_sdk, stream=False),
    "async openai, streamed": lambda clients: Async(clients.async_sdk, stream=True),
    "grpc": lambda clients: Grpc(clients.stub, stream=False),
    "grpc, streamed": lambda clients: Grpc(clients.stub, stream=True),
}
IN_GATE = ("openai, streamed", "grpc, streamed")


@pytest.fixture(scope="module")
async def clients(
    stack: Stack, sdk: openai.OpenAI, async_sdk: openai.AsyncOpenAI
) -> AsyncIterator[Clients]:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{stack.grpc_port}") as channel:
        yield Clients(sdk, async_sdk, chat_service_pb2_grpc.ChatServiceStub(channel))


@pytest.fixture(scope="module")
def on_node(stack: Stack) -> dict[str, Any]:
    """What OpenAI's SDK for Node made of each case."""
    cases = [{**asdict(case), "forced": case.forced} for case in CASES]
    asked = json.dumps({"tools": TOOLS, "results": RESULTS, "cases": cases})
    answers = printed_by_node("agent.mjs", f"{stack.url}/v3", asked)
    return dict(zip(map(str, CASES), answers, strict=True))


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize(
    "way", [way if way in IN_GATE else pytest.param(way, marks=pytest.mark.slow) for way in WAYS]
)
async def test_an_agent_comes_to_its_answer(clients: Clients, way: str, case: Case) -> None:
    case.check(await converse(WAYS[way](clients), case))


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("way", ["whole", "streamed"])
def test_so_does_one_on_node(on_node: dict[str, Any], way: str, case: Case) -> None:
    case.check(
        [
            Turn(turn["finish"], turn["content"], tuple(Call(**call) for call in turn["calls"]))
            for turn in on_node[str(case)][way]
        ]
    )


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in CASES if not case.forced], ids=str)
def test_so_does_the_loop_of_the_sdk_for_node(on_node: dict[str, Any], case: Case) -> None:
    assert on_node[str(case)]["ran"] == [case.answer, case.answer]
