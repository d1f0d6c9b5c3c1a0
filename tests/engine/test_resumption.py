"""Free text in which calls are held to a form, where the KV cache is too small for all."""

from __future__ import annotations

import contextlib
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from ovchat_server.chat.dialects import hermes
from ovchat_server.chat.dialects.call_format import CalledTool
from ovchat_server.chat.prompt import Conversation, PromptRenderer
from ovchat_server.domain.chat import Message, PromptEnding, Role, Tool
from ovchat_server.domain.models import ModelState
from ovchat_server.engine.contract.generation import (
    GenerationRequest,
    ReasoningBudget,
    Resumption,
    Sampling,
)
from ovchat_server.engine.contract.prompt import Prompt
from ovchat_server.grammar.formats import grammar_text
from ovchat_server.serving.model_files import read_model_files
from tests.conftest import ROOT
from tests.engine.conftest import Watched
from tests.engine.test_structured_output import DEMO, TOKENIZER, answer, demo_spec
from tests.grammars import json_format
from tests.json_schemas import validate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

# The demo model would write {"city": ...} by itself.
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"place": {"enum": ["Lima", "Paris"]}, "days": {"enum": [1, 2]}},
    "required": ["place", "days"],
    "additionalProperties": False,
}
NAME = "get_weather"
OPEN, END = "<tool_call>", "}\n</tool_call>"
CALL = re.compile(rf'<tool_call>\n{{"name": "{NAME}", "arguments": (.*)}}\n</tool_call>')
CROWD = 7
OTHERS = 6
BLOCK = 32
ANSWER = 80


@pytest.mark.slow
async def test_a_crowd_in_a_small_cache_says_what_each_says_alone() -> None:
    asked = [request(0, 0)] * CROWD
    async with small_cache(asked[0]) as watched:
        alone = await answer(watched, asked[0])
        together, preemptions = await crowded(watched, asked)

    assert preemptions > 0
    assert together == [alone] * CROWD
    assert calls_in(alone[0]) == 1


@pytest.mark.slow
async def test_calls_follow_their_schema_wherever_their_sequence_loses_its_place() -> None:
    asked = [request(1.2, seed) for seed in range(CROWD)]
    async with small_cache(asked[0]) as watched:
        together, preemptions = await crowded(watched, asked)

    assert preemptions > 0
    assert sum(calls_in(said) for said, _ in together) > CROWD // 2


@pytest.mark.slow
async def test_reasoning_is_as_long_as_it_may_be_wherever_its_sequence_loses_its_place() -> None:
    # As if the prompt had opened it.
    budget = ReasoningBudget(BLOCK, "", tuple(TOKENIZER.encode("\n</think>")))
    asked = GenerationRequest(
        request(0, 0).prompt, ANSWER, Sampling(reasoning=budget), ignore_eos=True
    )
    async with small_cache(asked) as watched:
        alone = await answer(watched, asked)
        together, preemptions = await crowded(watched, [asked] * CROWD)

    assert preemptions > 0
    assert "\n</think>" in alone[0]
    assert together == [alone] * CROWD


def request(temperature: float, seed: int) -> GenerationRequest:
    """The weather is asked for; the answer is free to call."""
    form = hermes.DIALECT.format
    assert form is not None
    tool = CalledTool(NAME, json_format(SCHEMA))
    free = grammar_text(form.free([tool], parallel=True))
    files = read_model_files(ROOT / DEMO)
    conversation = Conversation(
        (Message(Role.USER, ("What is the weather in Paris?",)),),
        (Tool(NAME, "Get the current weather in a city.", SCHEMA),),
        {},
        (),
        PromptEnding.ASSISTANT_TURN,
    )
    return GenerationRequest(
        Prompt(PromptRenderer(files.template, files.tokenizer).render(conversation).tokens),
        ANSWER,
        Sampling(temperature=temperature, seed=seed),
        grammar=free,
        resumptions=(
            Resumption("", free, (OPEN,)),
            Resumption(OPEN, "", (END,)),
            Resumption(END, free, (OPEN,)),
        ),
    )


async def crowded(
    watched: Watched, asked: list[GenerationRequest]
) -> tuple[list[tuple[str, Any]], int]:
    """The answers, and how often one lost its place: each beside others that are older.

    These need a block more when they have said some tokens, each time others.
    """
    said = []
    for turn, one in enumerate(asked):
        prompt = one.prompt.tokens[: BLOCK - 4 * turn - 3]
        other = GenerationRequest(Prompt(prompt), BLOCK, ignore_eos=True)
        together = [*[other] * OTHERS, one]
        *_, last = await watched.together(*(answer(watched, each) for each in together))
        said.append(last)
    load = watched.engine.status.load
    assert load is not None
    return said, load.preemptions


def calls_in(said: str) -> int:
    """How many calls are in an answer, all right."""
    calls = CALL.findall(said)
    assert len(calls) == said.count("</tool_call>")
    for call in calls:
        validate(json.loads(call), SCHEMA)
    return len(calls)


@contextlib.asynccontextmanager
async def small_cache(request: GenerationRequest) -> AsyncIterator[Watched]:
    """An engine that holds two such requests at once."""
    blocks = -(-(len(request.prompt) + ANSWER) // BLOCK)
    watched = Watched(demo_spec(kv_blocks=2 * blocks + 1))
    watched.engine.start()
    await watched.until(ModelState.READY)
    try:
        yield watched
    finally:
        await watched.engine.close()
