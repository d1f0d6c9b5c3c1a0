"""Many requests at once to the successor model, whose every token can be checked."""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import grpc
import grpc.aio

from ovchat.v1 import (
    chat_pb2,
    chat_service_pb2_grpc,
    completion_pb2,
    completion_service_pb2_grpc,
)
from tests.grpc.requests import user
from tests.successor import FIRST, LAST, successor_text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from ovchat_server.app import Server
    from ovchat_server.domain.models import EngineLoad
    from ovchat_server.engine.contract.generation_messages import SequenceOutput
    from ovchat_server.engine.contract.messages import Report

LONGEST_PROMPT, LONGEST_ANSWER, MOST_CHOICES = 200, 150, 3
# All characters that the model knows, less the one that a prompt ends with.
LONGEST_UNTIL_STOP = LAST - FIRST
CANCELLED_SHARE, UNLIMITED_SHARE, ENDLESS_SHARE = 0.2, 0.5, 0.02
# The engine restarts, or has no place in time: callers are to come back.
REFUSALS = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED)
# Between a refusal and the next attempt.
PATIENCE = 0.2


@dataclass(frozen=True)
class Question:
    """A request and what the model answers each of its choices.

    Attributes:
        patience: Pieces of the answer after which it is cancelled; None: it is not.
    """

    prompt: str
    answer: str
    choices: int
    stop: str | None = None
    limited: bool = True
    patience: int | None = None


def drawn(rng: random.Random, context_length: int) -> Question:
    """A request of any length: of so many tokens, until a text comes, or until there is no room.

    Only those of the first kind say how long the answer may become.
    """
    # Many share a beginning, which the prefix cache keeps.
    prompt = "#" * rng.randint(0, LONGEST_PROMPT - 1) + chr(rng.randint(FIRST, LAST))
    choices = rng.randint(1, MOST_CHOICES)
    patience = rng.randint(0, 40) if rng.random() < CANCELLED_SHARE else None
    if rng.random() >= UNLIMITED_SHARE:
        answer = successor_text(prompt, rng.randint(1, LONGEST_ANSWER))
        return Question(prompt, answer, choices, patience=patience)
    if rng.random() < ENDLESS_SHARE:
        answer = successor_text(prompt, context_length - len(prompt))
        return Question(prompt, answer, choices, limited=False, patience=patience)
    said = successor_text(prompt, rng.randint(1, LONGEST_UNTIL_STOP))
    return Question(prompt, said[:-1], choices, said[-1], limited=False, patience=patience)


@dataclass
class Storm:
    """Requests of mixed length, some of them cancelled half way.

    Attributes:
        context_length: Of the model.
        outcomes: How requests ended: "whole", "cancelled", "again" (refused before they began,
            and repeated), or the status of those that were lost.
        wrong: Texts that are not what the model says.
    """

    channel: grpc.aio.Channel
    context_length: int
    model: str = "successor"
    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    async def run(self, requests: int, at_once: int, seed: int = 0) -> None:
        """Send so many requests, `at_once` of them at any time."""
        seeds = iter(range(seed, seed + requests))

        async def worker() -> None:
            for number in seeds:
                await self._ask(drawn(random.Random(number), self.context_length))

        await asyncio.gather(*(worker() for _ in range(at_once)))

    @property
    def lost(self) -> Counter[str]:
        """Requests that ended as they should not."""
        known = ("whole", "cancelled", "again")
        return Counter({how: n for how, n in self.outcomes.items() if how not in known})

    async def _ask(self, question: Question) -> None:
        while True:
            try:
                self.outcomes[await self._read(question)] += 1
            except grpc.aio.AioRpcError as error:
                if error.code() in REFUSALS:
                    # Told so before it began.
                    self.outcomes["again"] += 1
                    await asyncio.sleep(PATIENCE)
                    continue
                self.outcomes[error.code().name] += 1
            return

    async def _read(self, question: Question) -> str:
        texts = [""] * question.choices
        pieces = self._limited(question) if question.limited else self._unlimited(question)
        count = 0
        try:
            async with contextlib.aclosing(pieces):
                async for index, text in pieces:
                    texts[index] += text
                    if not question.answer.startswith(texts[index]):
                        self.wrong.append(texts[index])
                    if count == question.patience:
                        return "cancelled"
                    count += 1
        except grpc.aio.AioRpcError as error:
            if error.code() in REFUSALS and any(texts):
                return "LOST"
            raise
        if any(text != question.answer for text in texts):
            self.wrong.append(repr(texts))
        return "whole"

    async def _limited(self, question: Question) -> AsyncGenerator[tuple[int, str], None]:
        """The pieces of the answers and whose they are, from the service that wants a limit."""
        call = completion_service_pb2_grpc.CompletionServiceStub(self.channel).StreamCompletion(
            completion_pb2.CreateCompletionRequest(
                model=self.model,
                prompt=[completion_pb2.Prompt(text=question.prompt)],
                max_tokens=len(question.answer),
                n=question.choices,
                temperature=0,
            )
        )
        try:
            async for chunk in call:
                for choice in chunk.choices:
                    yield choice.index, choice.text
        finally:
            call.cancel()

    async def _unlimited(self, question: Question) -> AsyncGenerator[tuple[int, str], None]:
        call = chat_service_pb2_grpc.ChatServiceStub(self.channel).StreamChatCompletion(
            chat_pb2.CreateChatCompletionRequest(
                model=self.model,
                messages=[user(question.prompt)],
                stop=[question.stop] if question.stop else [],
                n=question.choices,
                temperature=0,
            )
        )
        try:
            async for chunk in call:
                for choice in chunk.choices:
                    yield choice.index, choice.delta.content
        finally:
            call.cancel()


@contextlib.contextmanager
def dying_engines(
    server: Server, model: str, tokens: float, times: float = math.inf
) -> Iterator[list[EngineLoad]]:
    """Kill the engine of a model whenever it has generated so many tokens, and so many times.

    However long one takes to load, and however slow it is: each brings requests nearer to their
    ends. Yields what each of the dead had reported last.
    """
    supervisor = server._engines[model].supervisor
    in_flight = supervisor.in_flight
    deliver, deaths, dead = in_flight.deliver, [], []

    def count(report: Report[SequenceOutput]) -> None:
        deliver(report)
        connection = supervisor._connection
        # What comes from it is on its way still.
        if connection is None or connection in dead or len(deaths) >= times:
            return
        if report.load.generated_tokens >= tokens:
            connection.kill()
            dead.append(connection)
            deaths.append(report.load)

    in_flight.deliver = count
    try:
        yield deaths
    finally:
        in_flight.deliver = deliver
