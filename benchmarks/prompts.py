"""Prompts of an exact number of tokens, which no cache has seen."""

from __future__ import annotations

import dataclasses
import json
import random
import re
from typing import TYPE_CHECKING

import msgspec
import tokenizers

from benchmarks.images import draw_image
from benchmarks.plan import Ask, Lane, Plan
from benchmarks.request_forms import TEMPLATE_ARGUMENTS, messages_of, tools_of
from ovchat.v1 import tokenizer_service_pb2, tokenizer_service_pb2_grpc
from ovchat_server.serving.model_path import is_vision_model

if TYPE_CHECKING:
    from pathlib import Path

    import grpc.aio

# The letter that stands for a space where tokens begin with one.
WORD = re.compile("\u0120?([A-Za-z]{3,})")
OPENING = "Read:"
# A token of its own everywhere.
FILLER = "!"
# Tokens of a prompt that is drawn to see that its number is exact.
PROBE = 1000


@dataclasses.dataclass(frozen=True, slots=True)
class Prompts:
    """Draws texts of words that all take the same number of tokens.

    Attributes:
        words: Each with the space before it.
        cost: Tokens of each.
        overhead: Tokens of a conversation of one message besides its words.
        image: Tokens that an image adds to it; 0: the model takes none.
    """

    words: tuple[str, ...]
    cost: int
    overhead: int
    draw: random.Random
    image: int = 0

    def words_of(self, tokens: int) -> str:
        """So many tokens of text, to come after a word or a sign."""
        words = self.draw.choices(self.words, k=tokens // self.cost)
        return "".join(words) + FILLER * (tokens % self.cost)

    def message(self, tokens: int) -> tuple[tuple[str, str], ...]:
        """A conversation of so many tokens in all, of one message."""
        return (("user", OPENING + self.words_of(tokens - self.overhead)),)


class Tokenizer:
    """The server's, so that the bare loop reads exactly what the server's engine reads."""

    def __init__(self, model: str, channel: grpc.aio.Channel) -> None:
        """Ask the server of a channel."""
        self._model = model
        # Stands for images of its size: those that are asked are to be new to the server.
        self._image = draw_image(random.Random())
        self._stub = tokenizer_service_pb2_grpc.TokenizerServiceStub(channel)

    async def prompts(self, directory: Path) -> Prompts:
        """A source of prompts for the model in a folder.

        Raises:
            RuntimeError: They are not as long as they are to be.
        """
        tokenizer = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
        found = map(WORD.fullmatch, tokenizer.get_vocab(with_added_tokens=False))
        words = sorted({f" {match[1]}" for match in found if match})
        costs = {word: len(tokenizer.encode(word).ids) for word in words}
        cost = min(costs.values())
        cheap = tuple(word for word in words if costs[word] == cost)
        empty = Ask(messages=(("user", OPENING),), max_tokens=1)
        prompts = Prompts(cheap, cost, len(await self._tokens(empty)), random.Random())
        # In some vocabularies a word may cost more beside another.
        probe = Ask(messages=prompts.message(PROBE), max_tokens=1)
        if (length := len(await self._tokens(probe))) != PROBE:
            raise RuntimeError(f"a prompt that was to have {PROBE} tokens has {length}")
        if not is_vision_model(directory):
            return prompts
        seen = await self._tokens(msgspec.structs.replace(empty, image=self._image))
        return dataclasses.replace(prompts, image=len(seen) - prompts.overhead)

    async def complete(self, plan: Plan) -> Plan:
        """The plan with the tokens of every request."""
        phases = []
        for phase in plan.phases:
            lanes = []
            for lane in phase:
                asks = [
                    msgspec.structs.replace(ask, tokens=await self._tokens(ask))
                    for ask in lane.asks
                ]
                lanes.append(Lane(tuple(asks), lane.delay))
            phases.append(tuple(lanes))
        return Plan(tuple(phases))

    async def _tokens(self, ask: Ask) -> tuple[int, ...]:
        if ask.image:
            ask = msgspec.structs.replace(ask, image=self._image)
        request = tokenizer_service_pb2.TokenizeRequest(
            model=self._model,
            messages=messages_of(ask),
            tools=tools_of(ask),
            chat_template_kwargs=json.dumps(TEMPLATE_ARGUMENTS),
        )
        answer = await self._stub.Tokenize(request)
        return tuple(answer.sequences[0].tokens)
