"""Grammars, on the real engine with the demo model."""

from __future__ import annotations

import asyncio
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.models import ModelState
from ovchat_server.domain.structured_output import Constraint, ConstraintKind
from ovchat_server.engine.client.grammar_lane import DIED
from ovchat_server.engine.client.grammar_process import GrammarProcess
from ovchat_server.engine.client.lately_slow import SLOW_FOR
from ovchat_server.engine.contract.generation import GenerationRequest, Sampling, TokenFinish
from ovchat_server.engine.contract.prompt import Prompt
from ovchat_server.grammar.formats import Reasoning, after_reasoning, grammar_text
from ovchat_server.tokenizer.huggingface import Tokenizer
from tests.conftest import ROOT
from tests.engine.conftest import Watched, spec
from tests.grammars import format_of
from tests.structured_output import SCHEMA

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

DEMO = "models/demo"
TOKENIZER = Tokenizer.load(ROOT / DEMO)
END = TOKENIZER.token("<|im_end|>")
PROMPT = "<|im_start|>user\nTell me about Anna.<|im_end|>\n<|im_start|>assistant\n"
BOMBS = {
    "nested parentheses": ("regex", "(" * 20_000 + "a" + ")" * 20_000),
    "nested repetition": ("regex", "((a{1000}){1000}){1000}"),
    "many repetitions": ("regex", "[a-z]{1,500}-" * 50),
    "a deep schema": ("json_schema", None),
    "a pattern of a schema": ("json_schema", {"pattern": "^" + "[a-z]{1,500}-" * 50 + "$"}),
    "nested groups of a grammar": ("grammar", "root ::= " + "(" * 20_000 + '"a"' + ")" * 20_000),
}

# It takes too long to compile, the others too much memory or stack.
TOO_SLOW = "many repetitions"


def demo_spec(**changes: object) -> Any:
    return spec(DEMO, name="demo", end_tokens=(END,), context_length=1024, **changes)


def grammar(kind: str, value: Any, reasoning: Reasoning | None = None) -> str:
    return grammar_text(
        after_reasoning(format_of(Constraint(ConstraintKind(kind), value, FieldPath())), reasoning)
    )


def bomb(name: str) -> str:
    kind, value = BOMBS[name]
    if value is None:
        inside = '{"type":"array","items":' * 3000 + "{}" + "}" * 3000
        form = f'{{"type":"json_schema","json_schema":{inside}}}'
        return f'{{"type":"structural_tag","format":{form}}}'
    return grammar(kind, value)


def request(grammar: str, seed: int = 0, max_tokens: int = 150, **fields: Any) -> GenerationRequest:
    tokens = tuple(TOKENIZER.encode(fields.pop("prompt", PROMPT)))
    sampling = Sampling(temperature=1, seed=seed)
    return GenerationRequest(Prompt(tokens), max_tokens, sampling, grammar=grammar, **fields)


async def answer(watched: Watched, asked: GenerationRequest) -> tuple[str, TokenFinish | None]:
    tokens: list[int] = []
    finish = None
    with watched.engine.generate([asked]) as generation:
        async for piece in generation:
            tokens += piece.tokens
            finish = piece.finish
    if finish is TokenFinish.STOP:
        tokens.pop()
    return TOKENIZER.decode(tokens, special_tokens=True), finish


@pytest.fixture(scope="module")
async def demo() -> AsyncIterator[Watched]:
    watched = Watched(demo_spec(kv_blocks=256))
    watched.engine.start()
    await watched.until(ModelState.READY)
    yield watched
    await watched.engine.close()


@pytest.mark.parametrize(
    ("kind", "value", "pattern"),
    [
        ("regex", "[0-9]{3}-[a-z]{2}", "[0-9]{3}-[a-z]{2}"),
        ("choice", ["Größe", "a|b", 'q"(\n'], r'Größe|a\|b|q"\(\n'),
        ("grammar", 'root ::= item ("," item)? \nitem ::= [a-c]', "[abc](,[abc])?"),
        ("structural_tag", {"type": "const_string", "value": "hi there"}, "hi there"),
    ],
)
async def test_answers_have_the_form(demo: Watched, kind: str, value: Any, pattern: str) -> None:
    text = grammar(kind, value)
    assert await demo.engine.check_grammar(text) == ""

    answers = await asyncio.gather(*(answer(demo, request(text, seed)) for seed in range(8)))

    for said, finish in answers:
        assert finish is TokenFinish.STOP
        assert re.fullmatch(pattern, said)


async def test_json_follows_its_schema_in_its_order(demo: Watched) -> None:
    text = grammar("json_schema", SCHEMA)

    answers = await asyncio.gather(
        *(answer(demo, request(text, seed, self_terminating=True)) for seed in range(16))
    )

    ended = [json.loads(said) for said, finish in answers if finish is TokenFinish.STOP]
    assert len(ended) >= 8
    for value in ended:
        assert list(value) == ["name", "age", "city"]
        assert value["city"] in {"Paris", "Rome"}
        assert 0 <= value["age"] <= 120


async def test_reasoning_comes_first_where_it_is_opened(demo: Watched) -> None:
    text = grammar("regex", "[0-9]{2}", Reasoning("<think>", "</think>", opened=True))
    prompt = PROMPT.replace("Tell me about Anna.", "What is 12 + 30?") + "<think>\n"
    asked = request(text, prompt=prompt)

    answers = [
        said
        for said, finish in await asyncio.gather(
            *(
                answer(
                    demo, GenerationRequest(asked.prompt, 400, Sampling(0.7, seed=n), grammar=text)
                )
                for n in range(8)
            )
        )
        if finish is TokenFinish.STOP
    ]

    assert answers
    for said in answers:
        assert re.fullmatch(r"[0-9]{2}", said.rpartition("</think>")[2].strip())


async def test_many_follow_grammars_beside_free_ones(demo: Watched) -> None:
    text = grammar("regex", "[0-9]{3}-[a-z]{2}")

    answers = await asyncio.gather(
        *(answer(demo, request(text if seed % 2 else "", seed, 40)) for seed in range(32))
    )

    for said, finish in answers[1::2]:
        assert (finish, bool(re.fullmatch("[0-9]{3}-[a-z]{2}", said))) == (TokenFinish.STOP, True)


@pytest.mark.slow
async def test_in_a_small_pool_none_starts_anew() -> None:
    watched = Watched(demo_spec(kv_blocks=16))
    watched.engine.start()
    try:
        await watched.until(ModelState.READY)
        text = grammar("regex", "[0-9]{60,70}")
        answers = await watched.together(
            *(answer(watched, request("" if seed % 3 else text, seed, 120)) for seed in range(12)),
        )
        for said, finish in answers[::3]:
            assert finish is TokenFinish.STOP
            assert re.fullmatch("[0-9]{60,70}", said)
        assert watched.engine.status.load is not None
        assert watched.engine.status.load.preemptions > 0
    finally:
        await watched.engine.close()


async def test_cancelled_while_it_is_compiled_it_leaves_nothing(demo: Watched) -> None:
    slow = grammar("regex", "".join(f"[a-z]{{1,80}}{number}" for number in range(10)))
    with demo.engine.generate([request(slow)]):
        pass

    said, finish = await answer(demo, request(grammar("regex", "[ab]{2}")))

    assert finish is TokenFinish.STOP
    assert re.fullmatch("[ab]{2}", said)
    load = demo.engine.status.load
    assert load is not None
    assert (load.running_requests, load.waiting_requests) == (0, 0)


@pytest.mark.parametrize(
    "name",
    [name if name == TOO_SLOW else pytest.param(name, marks=pytest.mark.slow) for name in BOMBS],
)
async def test_a_bomb_is_refused_while_a_stream_flows(
    demo: Watched, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = bomb(name)
    free = GenerationRequest(Prompt((1, 2, 3)), 900, Sampling(1), ignore_eos=True)
    with demo.engine.generate([free]) as stream, monkeypatch.context() as impatient:
        checks = demo.engine._grammar_process
        for lane in (checks._lane, checks._slow_lane):
            impatient.setattr(lane, "_spec", demo_spec(grammar_timeout=0.5))
        await anext(stream)
        checking = asyncio.create_task(demo.engine.check_grammar(text))
        pieces = 0
        while not checking.done():
            piece = await anext(stream)
            pieces += 1
            if piece.finish:
                break
        assert await checking
        assert pieces > 0
    # The next one finds a process that works.
    assert await demo.engine.check_grammar(grammar("regex", f"after {name}")) == ""


@pytest.mark.slow
async def test_verdicts_are_kept_good_and_bad() -> None:
    grammars = GrammarProcess(demo_spec())
    good, bad = grammar("regex", "a"), grammar("regex", "(")
    try:
        assert await grammars.check(good) == ""
        reason = await grammars.check(bad)
    finally:
        await grammars.close()

    # No process is left to ask.
    assert await grammars.check(good) == ""
    assert (
        await grammars.check(bad)
        == reason
        == "Regex parsing error at position 2: The parenthesis is not closed"
    )
    assert grammars._lane._starting is None


@pytest.mark.slow
async def test_those_who_wait_are_checked_when_a_bomb_killed_the_process() -> None:
    grammars = GrammarProcess(demo_spec())
    texts = [bomb("nested parentheses"), *(grammar("regex", f"a{n}") for n in range(4))]
    try:
        verdicts = await asyncio.gather(*map(grammars.check, texts))
    finally:
        await grammars.close()

    assert verdicts == [DIED, "", "", "", ""]


async def test_a_compile_that_takes_too_long_is_ended() -> None:
    grammars = GrammarProcess(demo_spec(grammar_timeout=0.5))
    try:
        reason = await grammars.check(bomb(TOO_SLOW))
    finally:
        await grammars.close()

    assert reason == "it takes more than 0.5 seconds to compile"


@pytest.mark.slow
async def test_that_a_compile_takes_too_long_is_believed_for_a_minute_only() -> None:
    now = 0.0
    grammars = GrammarProcess(demo_spec(grammar_timeout=0.5), lambda: now)
    slow = bomb(TOO_SLOW)
    try:
        reason = await grammars.check(slow)
        await grammars.close()
        now = SLOW_FOR - 1
        assert await grammars.check(slow) == reason
        assert grammars._lane._starting is None
        now = SLOW_FOR
        checking = asyncio.create_task(grammars.check(slow))
        await asyncio.sleep(0)
        # It is asked again, in the process for those who were slow before.
        assert [*grammars._checks]
        assert await checking == reason
    finally:
        await grammars.close()


@pytest.mark.slow
async def test_a_grammar_that_nobody_waits_for_any_more_is_not_checked() -> None:
    grammars = GrammarProcess(demo_spec())
    asked, shared, after = (grammar("regex", text) for text in ("asked", "shared", "after"))
    gone = [asyncio.create_task(grammars.check(text)) for text in (asked, shared, shared, after)]
    compiled = []
    asking = asyncio.Event()
    ask = grammars._lane._ask

    async def noted(text: str) -> Any:
        compiled.append(text)
        asking.set()
        return await ask(text)

    grammars._lane._ask = noted  # type: ignore[method-assign]
    try:
        await asking.wait()
        for task in (gone[1], gone[3]):
            task.cancel()
        await asyncio.wait([gone[1], gone[3]])
        # The same again has its turn.
        assert await grammars.check(shared) == ""
        assert await gone[0] == await gone[2] == ""
    finally:
        await grammars.close()

    assert compiled == [asked, shared]


async def test_reasons_hold_no_paths_and_no_source() -> None:
    grammars = GrammarProcess(demo_spec())
    cases = {
        ("regex", "[a"): "Unclosed '['",
        ("grammar", "root ::= missing"): 'Rule "missing" is not defined',
        ("grammar", "start ::= []"): "The root rule with name",
        (
            "structural_tag",
            json.dumps({"type": "nonsense"}),
        ): "Format type not recognized: nonsense",
    }
    try:
        for (kind, value), part in cases.items():
            parsed = json.loads(value) if value.startswith("{") else value
            reason = await grammars.check(grammar(kind, parsed))
            assert part in reason
            assert not re.search(r"/|\.c|Exception|Check failed", reason)
    finally:
        await grammars.close()


async def test_close_leaves_no_process_whatever_it_does() -> None:
    before = set(Path("/proc/self/fd").iterdir())
    for wait in (False, True):
        grammars = GrammarProcess(demo_spec())
        grammars.start()
        checking = asyncio.create_task(grammars.check(bomb(TOO_SLOW)))
        if wait:
            assert grammars._lane._starting is not None
            process = await asyncio.shield(grammars._lane._starting)
            pid = process._process.pid
        else:
            await asyncio.sleep(0)
        await grammars.close()
        await asyncio.wait([checking])
        assert checking.exception() is not None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert set(Path("/proc/self/fd").iterdir()) == before


@pytest.mark.slow
async def test_a_grammar_is_not_blamed_for_the_death_before_it() -> None:
    grammars = GrammarProcess(demo_spec())
    try:
        assert await grammars.check(grammar("regex", "a")) == ""
        process = (await grammars._lane._process())._process
        process.kill()
        await process.wait()
        assert await grammars.check(grammar("regex", "b")) == ""
    finally:
        await grammars.close()
