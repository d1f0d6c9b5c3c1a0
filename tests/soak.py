"""All kinds of requests, for long, and what the service's processes take meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import random
import statistics
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc.aio
import httpx
import openai
from grpc_health.v1 import health_pb2, health_pb2_grpc

from ovchat.v1 import chat_service_pb2_grpc
from tests.conftest import ROOT
from tests.grpc.requests import successor, text_of
from tests.launch.stack import CHILDREN, Stack
from tests.successor import successor_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

# The model besides the one that tests/launch starts.
DEMO = ("--model", f"demo={ROOT / 'models/demo'}")
RESOURCES = ("memory", "descriptors", "threads")
# Between two looks at the processes.
INTERVAL = 2.0
# Where a call is given up: with nothing of it seen, or with some of it.
SOON = 0.05
# Seconds after which an answer does not come any more, however busy the machine is.
PATIENCE = 240
FIELDS = ("city", "unit", "street", "name", "age", "mail", "phone", "tag")


@dataclass(frozen=True)
class Taken:
    """What the processes of one kind take together.

    Attributes:
        memory: Resident bytes that are theirs alone: files that are mapped do not count.
    """

    memory: int = 0
    descriptors: int = 0
    threads: int = 0

    def __add__(self, other: Taken) -> Taken:
        """What both take."""
        return Taken(
            self.memory + other.memory,
            self.descriptors + other.descriptors,
            self.threads + other.threads,
        )


def taken(pid: int) -> Taken:
    """What a process takes; nothing where it has just ended."""
    with contextlib.suppress(OSError):
        folder = Path(f"/proc/{pid}")
        status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
        return Taken(
            int(status["RssAnon"].split()[0]) * 1024,
            len([*(folder / "fd").iterdir()]),
            int(status["Threads"]),
        )
    return Taken()


@dataclass
class Soak:
    """A mixed load on `ovchat up` with the models "successor" and "demo".

    Attributes:
        answered: Requests that ended as they should, by their kind.
        wrong: What came of those that did not.
        samples: What each kind of process took, over time.
    """

    stack: Stack
    answered: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    samples: dict[str, list[Taken]] = field(default_factory=dict)

    async def run(self, seconds: float, callers: int, pause: float = 0.0) -> None:
        """Ask for so long, each of `callers` with a `pause` between two requests."""
        end = time.monotonic() + seconds
        async with contextlib.AsyncExitStack() as stack:
            self._sdk = await stack.enter_async_context(self.stack.sdk())
            http = httpx.AsyncClient(base_url=self.stack.url, timeout=PATIENCE)
            self._http = await stack.enter_async_context(http)
            channel = grpc.aio.insecure_channel(f"127.0.0.1:{self.stack.grpc_port}")
            self._channel = await stack.enter_async_context(channel)
            watching = asyncio.create_task(self._watch())
            await asyncio.gather(*(self._ask_until(end, pause, seed) for seed in range(callers)))
            watching.cancel()
            await asyncio.wait([watching])

    async def _watch(self) -> None:
        while True:
            for kind in CHILDREN:
                # Looking takes a moment, in which nothing else of this process should wait.
                pids = await asyncio.to_thread(self.stack.processes, kind)
                together = sum(map(taken, pids), Taken())
                self.samples.setdefault(kind, []).append(together)
            await asyncio.sleep(INTERVAL)

    async def _ask_until(self, end: float, pause: float, seed: int) -> None:
        rng = random.Random(seed)
        kinds: dict[str, Callable[[random.Random], Awaitable[None]]] = {
            "whole": self._whole,
            "streamed": self._streamed,
            "several choices": self._several,
            "left half way": self._left,
            "a connection of its own": self._anew,
            "a long prompt": self._long,
            "grpc": self._grpc,
            "grpc with a deadline": self._impatient,
            "grpc health": self._health,
            "structured": self._structured,
            "tools": self._tools,
            "biased": self._biased,
            "scored": self._scored,
            "refused": self._refused,
            "models": self._models,
        }
        while (begun := time.monotonic()) < end:
            kind = rng.choice([*kinds])
            try:
                await kinds[kind](rng)
                self.answered[kind] += 1
            except Exception as error:  # noqa: BLE001  it is told
                left, took = end - begun, time.monotonic() - begun
                self.wrong.append(
                    f"{kind}, {left:.0f} s before the end, after {took:.1f} s: "
                    f"{error!r} of {error.__cause__!r}"
                )
            await asyncio.sleep(rng.uniform(0, 2 * pause))

    async def _whole(self, rng: random.Random) -> None:
        request, expected = _question(rng)
        completion = await self._sdk.chat.completions.create(**request)
        assert completion.choices[0].message.content == expected

    async def _streamed(self, rng: random.Random) -> None:
        request, expected = _question(rng)
        stream = await self._sdk.chat.completions.create(**request, stream=True)
        text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
        assert text == expected

    async def _several(self, rng: random.Random) -> None:
        request, expected = _question(rng)
        completion = await self._sdk.chat.completions.create(**request, n=3)
        assert [choice.message.content for choice in completion.choices] == [expected] * 3

    async def _left(self, rng: random.Random) -> None:
        request, expected = _question(rng)
        stream = await self._sdk.chat.completions.create(**request, stream=True)
        text = ""
        async with stream:
            async for chunk in stream:
                text += chunk.choices[0].delta.content or ""
                if len(text) >= 5:
                    break
        assert expected.startswith(text)

    async def _anew(self, rng: random.Random) -> None:
        request, expected = _question(rng)
        async with httpx.AsyncClient(base_url=self.stack.url, timeout=PATIENCE) as client:
            answer = await client.post("/v3/chat/completions", json=request)
        assert answer.json()["choices"][0]["message"]["content"] == expected

    async def _long(self, rng: random.Random) -> None:
        filler = "#" * rng.randint(1000, 3000)
        request, expected = _question(rng, filler)
        completion = await self._sdk.chat.completions.create(**request)
        assert completion.choices[0].message.content == expected

    async def _grpc(self, rng: random.Random) -> None:
        stub = chat_service_pb2_grpc.ChatServiceStub(self._channel)
        length = rng.randint(1, 200)
        completion = await stub.CreateChatCompletion(successor("a", length))
        assert text_of(completion) == successor_text("a", length)

    async def _impatient(self, rng: random.Random) -> None:
        stub = chat_service_pb2_grpc.ChatServiceStub(self._channel)
        try:
            await stub.CreateChatCompletion(successor("a", 3000), timeout=rng.uniform(0, SOON))
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.DEADLINE_EXCEEDED:
                raise

    async def _health(self, _: random.Random) -> None:
        watch = health_pb2_grpc.HealthStub(self._channel).Watch(health_pb2.HealthCheckRequest())
        update = await watch.read()
        assert update.status == health_pb2.HealthCheckResponse.SERVING
        watch.cancel()

    async def _structured(self, rng: random.Random) -> None:
        names = rng.sample(FIELDS[:4], 2)
        schema = {
            "type": "object",
            "properties": {name: {"type": "string", "maxLength": 5} for name in names},
            "required": names,
            "additionalProperties": False,
        }
        form = {"type": "json_schema", "json_schema": {"name": "form", "schema": schema}}
        completion = await self._sdk.chat.completions.create(
            **_demo("Tell me of Paris."), max_tokens=60, response_format=form
        )
        [choice] = completion.choices
        if choice.finish_reason == "stop":
            assert sorted(json.loads(choice.message.content or "")) == sorted(names)

    async def _tools(self, rng: random.Random) -> None:
        name = rng.choice(FIELDS)
        parameters = {"type": "object", "properties": {name: {"type": "string"}}}
        tool = {"type": "function", "function": {"name": f"get_{name}", "parameters": parameters}}
        stream = await self._sdk.chat.completions.create(
            **_demo("What is the weather in Oslo?"), max_tokens=60, tools=[tool], stream=True
        )
        reasons = [chunk.choices[0].finish_reason async for chunk in stream]
        assert reasons[-1] in ("stop", "tool_calls", "length")

    async def _biased(self, rng: random.Random) -> None:
        request, _ = _question(rng)
        completion = await self._sdk.chat.completions.create(
            **request, logit_bias={str(ord("Q")): 100}, logprobs=True, top_logprobs=5
        )
        assert completion.choices[0].message.content == "Q" * request["max_tokens"]

    async def _scored(self, rng: random.Random) -> None:
        prompt = "#" * rng.randint(2, 300) + "abc"
        completion = await self._sdk.completions.create(
            model="successor", prompt=prompt, max_tokens=0, echo=True, logprobs=1
        )
        told = completion.choices[0].logprobs
        assert told is not None
        assert told.tokens == [*prompt]
        assert told.token_logprobs is not None
        first, second, *_, b, c = told.token_logprobs
        assert first is None
        assert second < -10 < -1 < b <= 0
        assert -1 < c <= 0

    async def _refused(self, rng: random.Random) -> None:
        request, _ = _question(rng)
        change = rng.choice([{"temperature": 9}, {"model": "nobody"}, {"messages": []}])
        try:
            await self._sdk.chat.completions.create(**request | change)
        except (openai.BadRequestError, openai.NotFoundError):
            return
        raise AssertionError("it was served")

    async def _models(self, _: random.Random) -> None:
        answer = await self._http.get("/v3/models")
        assert len(answer.json()["data"]) == 2


def _question(rng: random.Random, filler: str = "") -> tuple[dict[str, Any], str]:
    """A chat, and what the successor model says to it."""
    length, prompt = rng.randint(1, 200), filler + chr(rng.randint(ord("a"), ord("z")))
    messages = [{"role": "user", "content": prompt}]
    request = {
        "model": "successor",
        "messages": messages,
        "max_tokens": length,
        "temperature": 0,
    }
    return request, successor_text(prompt, length)


def _demo(text: str) -> dict[str, Any]:
    return {"model": "demo", "messages": [{"role": "user", "content": text}], "temperature": 0}


def quarters(samples: list[Taken], resource: str) -> list[float]:
    """The medians of one resource of one kind of process, in each quarter of the time."""
    values = [getattr(sample, resource) for sample in samples]
    borders = [len(values) * count // 4 for count in range(5)]
    return [statistics.median(values[begin:end]) for begin, end in itertools.pairwise(borders)]
