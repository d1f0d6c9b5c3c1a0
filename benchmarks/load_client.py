"""A neutral client: raw HTTP/1.1 with server-sent events, and gRPC.

While requests run it does nothing but note what came when; it reads what came afterwards.
`client_cost` measures what that costs.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Protocol

from benchmarks.plan import Ask, Lane, Plan, Trace
from benchmarks.request_forms import grpc_request, rest_body
from benchmarks.sse import LAST_CHUNK, AnswerError, is_complete, timed_events
from ovchat.v1 import chat_service_pb2_grpc

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import grpc.aio

    from ovchat.v1 import chat_pb2

PATH = "/v3/chat/completions"


class Contender(Protocol):
    """Something that answers plans."""

    name: str

    async def run(self, plan: Plan) -> list[Trace]:
        """Ask everything, in the plan's order and at its times."""


class _Client(Protocol):
    async def ask(self, ask: Ask) -> Trace: ...


async def run_plan(client: _Client, plan: Plan) -> list[Trace]:
    """The traces of a plan, lane after lane."""

    async def run_lane(lane: Lane) -> list[Trace]:
        await asyncio.sleep(lane.delay)
        return [await client.ask(ask) for ask in lane.asks]

    traces: list[Trace] = []
    for phase in plan.phases:
        for found in await asyncio.gather(*map(run_lane, phase)):
            traces += found
    return traces


def post(body: Mapping[str, object], path: str = PATH) -> bytes:
    """A request for an answer, as it is sent."""
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(data)}\r\n\r\n".encode() + data


class Connection(asyncio.Protocol):
    """An HTTP/1.1 connection that is kept, for one request at a time."""

    def __init__(self) -> None:
        """Wait to be connected."""
        self.closed = False
        self._transport: asyncio.WriteTransport | None = None
        self._reset()

    def _reset(self) -> None:
        self._parts: list[tuple[float, bytes]] = []
        self._tail = b""
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Asyncio's."""
        assert isinstance(transport, asyncio.WriteTransport)  # noqa: S101  for the type
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Asyncio's: the only work that is done while a stream runs."""
        self._parts.append((time.perf_counter(), data))
        self._tail = (self._tail + data)[-len(LAST_CHUNK) :]
        # Whole answers with a length are short and come at once.
        if self._tail == LAST_CHUNK or (len(self._parts) < 3 and is_complete(self._joined())):
            self._finish()

    def connection_lost(self, exc: Exception | None) -> None:
        """Asyncio's."""
        self.closed = True
        if not self._done.done():
            self._done.set_exception(AnswerError(f"the connection was closed: {exc}"))
            # Nobody asks where nothing was under way.
            self._done.exception()

    async def send(self, request: bytes) -> list[tuple[float, bytes]]:
        """Send, and wait for the whole answer: what came, and when."""
        self._reset()
        assert self._transport is not None  # noqa: S101  for the type
        self._transport.write(request)
        await self._done
        return self._parts

    def close(self) -> None:
        """Close it."""
        if self._transport is not None:
            self._transport.close()

    def _joined(self) -> bytes:
        return b"".join(data for _, data in self._parts)

    def _finish(self) -> None:
        if not self._done.done():
            self._done.set_result(None)


class RestClient:
    """Asks over REST."""

    def __init__(self, model: str, port: int, name: str = "REST") -> None:
        """A client of the server on a port of this machine."""
        self.name = name
        self._model = model
        self._port = port
        self._idle: list[Connection] = []

    async def run(self, plan: Plan) -> list[Trace]:
        """See Contender.run."""
        return await run_plan(self, plan)

    async def ask(self, ask: Ask) -> Trace:
        """One request, on a connection that is kept for the next."""
        start, parts = await self.send(self.request(ask))
        return _trace_of_events(ask, start, parts[-1][0], timed_events(parts))

    def request(self, ask: Ask) -> bytes:
        """What is sent."""
        return post(rest_body(self._model, ask))

    async def tokens_before_text(self, ask: Ask) -> int:
        """How many tokens were generated when the first text left."""
        body = rest_body(self._model, ask)
        body["stream_options"]["continuous_usage_stats"] = True
        _, parts = await self.send(post(body))
        for _, data in timed_events(parts):
            chunk = json.loads(data)
            if any(choice["delta"].get("content") for choice in chunk["choices"]):
                return int(chunk["usage"]["completion_tokens"])
        raise AnswerError("there is no text")

    async def get(self, path: str) -> float:
        """Seconds that a GET takes.

        Raises:
            AnswerError: It is not answered with 200.
        """
        start, parts = await self.send(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
        if not parts[0][1].startswith(b"HTTP/1.1 200 "):
            raise AnswerError(f"{path}: {parts[0][1][:200]!r}")
        return parts[-1][0] - start

    async def send(self, request: bytes) -> tuple[float, list[tuple[float, bytes]]]:
        """When it was sent, and what came."""
        connection = await self._connection()
        start = time.perf_counter()
        parts = await connection.send(request)
        self._idle.append(connection)
        return start, parts

    async def close(self) -> None:
        """Close all connections."""
        while self._idle:
            self._idle.pop().close()

    async def _connection(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if not connection.closed:
                return connection
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(Connection, "127.0.0.1", self._port)
        return connection


class GrpcClient:
    """Asks over gRPC, all on one channel."""

    def __init__(self, model: str, channel: grpc.aio.Channel, name: str = "gRPC") -> None:
        """A client of a channel."""
        self.name = name
        self._model = model
        self._stub = chat_service_pb2_grpc.ChatServiceStub(channel)

    async def run(self, plan: Plan) -> list[Trace]:
        """See Contender.run."""
        return await run_plan(self, plan)

    async def ask(self, ask: Ask) -> Trace:
        """One request."""
        request = grpc_request(self._model, ask)
        chunks: list[tuple[float, chat_pb2.ChatCompletionChunk]] = []
        start = time.perf_counter()
        async for chunk in self._stub.StreamChatCompletion(request):
            chunks.append((time.perf_counter(), chunk))  # noqa: PERF401  the time is the point
        end = time.perf_counter()
        trace = _empty_trace(ask, start, end)
        for moment, chunk in chunks:
            for choice in chunk.choices:
                delta = choice.delta
                if delta.content or delta.reasoning_content or delta.tool_calls:
                    trace.arrivals.setdefault(choice.index, []).append(moment)
            if chunk.HasField("usage"):
                trace.prompt_tokens = chunk.usage.prompt_tokens
                trace.completion_tokens = chunk.usage.completion_tokens
        return trace


def _empty_trace(ask: Ask, start: float, end: float) -> Trace:
    return Trace(
        label=ask.label, start=start, end=end, arrivals={}, prompt_tokens=0, completion_tokens=0
    )


def _trace_of_events(
    ask: Ask, start: float, end: float, events: Iterable[tuple[float, bytes]]
) -> Trace:
    trace = _empty_trace(ask, start, end)
    for moment, data in events:
        if data == b"[DONE]":
            continue
        chunk = json.loads(data)
        if "error" in chunk:
            raise AnswerError(data.decode())
        for choice in chunk["choices"]:
            delta = choice["delta"]
            if any(map(delta.get, ("content", "reasoning_content", "tool_calls"))):
                trace.arrivals.setdefault(choice["index"], []).append(moment)
        if usage := chunk.get("usage"):
            trace.prompt_tokens = usage["prompt_tokens"]
            trace.completion_tokens = usage["completion_tokens"]
    return trace
