"""Two keys that ask for three times what they may have, for a minute, on both doors."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import grpc.aio
import openai
import pytest

from ovchat.v1 import chat_service_pb2_grpc
from tests.grpc import requests
from tests.rest.conftest import Stack, running_stack

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from ovchat_server.settings import ModelSettings

    # Whether it was served.
    Ask = Callable[[], Awaitable[bool]]
    Door = Callable[[Stack, str], Awaitable[Ask]]

pytestmark = pytest.mark.slow
LIMITS = {"sk-thirty": 30, "sk-ninety": 90}
SECONDS = 60


async def over_rest(stack: Stack, key: str) -> Ask:
    sdk = openai.AsyncOpenAI(base_url=f"{stack.url}/v1", api_key=key, max_retries=0)
    asked = {"role": "user", "content": "a"}

    async def ask() -> bool:
        try:
            await sdk.chat.completions.create(model="successor", messages=[asked], max_tokens=1)  # type: ignore[list-item]
        except openai.RateLimitError:
            return False
        return True

    return ask


async def over_grpc(stack: Stack, key: str) -> Ask:
    channel = grpc.aio.insecure_channel(f"127.0.0.1:{stack.grpc_port}")
    stub = chat_service_pb2_grpc.ChatServiceStub(channel)  # type: ignore[no-untyped-call]

    async def ask() -> bool:
        call = stub.CreateChatCompletion(requests.successor("a", 1), metadata=(("x-api-key", key),))
        code = await call.code()
        assert code in {grpc.StatusCode.OK, grpc.StatusCode.RESOURCE_EXHAUSTED}
        return bool(code is grpc.StatusCode.OK)

    return ask


@pytest.mark.parametrize("door", [over_rest, over_grpc])
@pytest.mark.timeout(180)
async def test_each_gets_its_share(
    tmp_path: Path,
    successor: ModelSettings,
    door: Callable[[Stack, str], Awaitable[Callable[[], Awaitable[bool]]]],
) -> None:
    file = tmp_path / "keys"
    lines = (f"key-{limit} {key} requests_per_minute={limit}" for key, limit in LIMITS.items())
    file.write_text("\n".join(lines))
    with running_stack(tmp_path, successor, options=["--api-key-file", str(file)]) as stack:

        async def served(key: str, limit: int) -> int:
            ask, count = await door(stack, key), 0
            loop = asyncio.get_running_loop()
            end = loop.time() + SECONDS - 1
            while loop.time() < end:
                count += await ask()
                # The rate is what the test is about.
                await asyncio.sleep(SECONDS / (3 * limit))
            return count

        counts = await asyncio.gather(*(served(key, limit) for key, limit in LIMITS.items()))
    print(f"served: {counts}, limits: {[*LIMITS.values()]}")
    for count, limit in zip(counts, LIMITS.values(), strict=True):
        assert count == pytest.approx(limit, rel=0.1)
