"""What compiled grammars hold is bounded, on the real engine's pipelines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from ovchat_server.engine.contract.generation import GenerationRequest, Sampling
from ovchat_server.engine.contract.generation_messages import SequenceRequest
from ovchat_server.engine.contract.prompt import Prompt
from ovchat_server.engine.genai.grammar_compiler import load_compiler
from ovchat_server.engine.genai.native_heap import NativeHeap
from ovchat_server.engine.genai.pipeline import GenaiPipeline
from ovchat_server.engine.scheduling.speculator import Speculator
from tests.conftest import ROOT
from tests.engine.test_structured_output import DEMO, PROMPT, TOKENIZER, demo_spec, grammar
from tests.grammar_sets import schema

if TYPE_CHECKING:
    from ovchat_server.engine.genai.pipeline import GenaiHandle

MIB = 1 << 20
# What a compile needs besides what it leaves behind.
COMPILING = 4 * MIB


@pytest.mark.slow
def test_grammars_are_forgotten_before_they_hold_more_than_they_may() -> None:
    compiler = load_compiler(str(ROOT / DEMO), max_bytes=4 * MIB)
    heap = NativeHeap()
    cleared, most = 0, 0
    for number in range(300):
        if compiler.full:
            compiler.clear()
            cleared += 1
        compiler.compile(grammar("json_schema", schema(number)))
        most = max(most, heap.growth)

    assert cleared > 1
    assert most < 4 * MIB + COMPILING


def test_who_follows_a_grammar_follows_it_when_it_is_forgotten() -> None:
    pipeline = GenaiPipeline(demo_spec(), Speculator())
    digits = grammar("regex", "[0-9]{40}")
    pipeline.grammar_compiler.compile(digits)
    tokens = tuple(TOKENIZER.encode(PROMPT))
    generation = GenerationRequest(
        Prompt(tokens), 100, Sampling(temperature=1, seed=1), grammar=digits
    )
    before = pipeline.add(SequenceRequest(1, generation), 0, None)
    while not before.answered:
        pipeline.step()
        said = text(before)

    pipeline.grammar_compiler.clear()
    after = pipeline.add(SequenceRequest(2, generation), 0, None)
    said_after = ""
    while not (re.fullmatch("[0-9]{40}", said) and re.fullmatch("[0-9]{40}", said_after)):
        pipeline.step()
        said += text(before)
        said_after += text(after)
        assert len(said) <= 40
        assert len(said_after) <= 40


def text(handle: GenaiHandle) -> str:
    tokens = [token for output in handle.take() for token in output.tokens]
    return TOKENIZER.decode(tokens, special_tokens=False)
