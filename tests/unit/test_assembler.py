"""One choice, from tokens to deltas: the stages together."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ovchat_server.api.completion import ChunkChoice, Delta, FinishReason
from ovchat_server.chat.assembler import AssemblyOptions, ChoiceAssembler
from ovchat_server.chat.collector import ChoiceCollector
from tests.unit.text_tools import byte_tokenizer, mixed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.api.completion import Choice

TOKENIZER = byte_tokenizer()
GOOD = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
EVERYTHING = AssemblyOptions(stop=("END",), reasoning=True, tool_calls=True)
TEXTS = mixed("<think>", "</think>", "<tool_call>", GOOD, "END", "😀", "\n", "hi")


def deltas(
    groups: Sequence[Sequence[int]],
    options: AssemblyOptions,
    reason: FinishReason = FinishReason.STOP,
) -> tuple[list[Delta], FinishReason, ChoiceAssembler]:
    assembler = ChoiceAssembler(TOKENIZER, options)
    came = [assembler.feed(group) for group in groups]
    last, reason = assembler.finish(reason)
    return [delta for delta in (*came, last) if delta is not None], reason, assembler


def choice(text: str, options: AssemblyOptions, reason: FinishReason = FinishReason.STOP) -> Choice:
    parts, reason, assembler = deltas([[t] for t in TOKENIZER.encode(text)], options, reason)
    return joined(parts, reason, assembler)


def joined(parts: list[Delta], reason: FinishReason, assembler: ChoiceAssembler) -> Choice:
    collector = ChoiceCollector()
    for part in parts:
        collector.add(ChunkChoice(0, part))
    collector.add(ChunkChoice(0, Delta(), reason, assembler.stopped_by))
    return collector.choice()


def told(one: Choice) -> tuple[object, ...]:
    """A choice without the ids of its calls, which are random."""
    calls = [(call.name, call.arguments) for call in one.message.tool_calls]
    message = one.message
    return message.content, message.reasoning_content, calls, one.finish_reason, one.stop_reason


@st.composite
def grouped(draw: st.DrawFn) -> list[list[int]]:
    """Tokens, in groups as a slow or a fast reader gets them."""
    tokens = TOKENIZER.encode(draw(TEXTS))
    cuts = draw(st.sets(st.integers(0, len(tokens)), max_size=10))
    return [tokens[a:b] for a, b in pairwise(sorted({0, len(tokens)} | cuts))]


OPTIONS = st.builds(
    AssemblyOptions,
    stop=st.sampled_from([(), ("END",), ("i", "hi"), ("\n", "<tool")]),
    reasoning=st.booleans(),
    reasoning_opened=st.booleans(),
    tool_calls=st.booleans(),
)


@given(grouped(), OPTIONS)
@settings(max_examples=150)
def test_the_groups_of_the_tokens_change_nothing(
    groups: list[list[int]], options: AssemblyOptions
) -> None:
    whole = [[token for group in groups for token in group]]
    first, second = deltas(groups, options), deltas(whole, options)
    assert told(joined(*first)) == told(joined(*second))
    for name in ("completion_tokens", "reasoning_tokens", "stopped_by"):
        assert getattr(first[2], name) == getattr(second[2], name)


@given(st.lists(st.integers(0, 255), max_size=30), OPTIONS)
def test_no_tokens_raise_and_no_delta_is_empty(tokens: list[int], options: AssemblyOptions) -> None:
    parts, _, _ = deltas([[token] for token in tokens], options, FinishReason.LENGTH)
    assert all(p.content or p.reasoning_content or p.tool_calls for p in parts)
    assert all(p.role is None for p in parts)


@given(TEXTS.filter(lambda text: "\ufffd" not in text))
def test_without_options_the_text_passes_untouched(text: str) -> None:
    assert choice(text, AssemblyOptions()).message.content == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hi", ("Hi", None, [], "stop", None)),
        ("", ("", None, [], "stop", None)),
        ("<think>\nHm\n</think>\n\nYes END no", ("Yes ", "Hm", [], "stop", "END")),
        ("<think>Hm END", ("", "Hm", [], "stop", "END")),
        (f"<think>Hm</think>{GOOD}", (None, "Hm", [("f", '{"a": 1}')], "tool_calls", None)),
        (f"Look:\n{GOOD}\n", ("Look:", None, [("f", '{"a": 1}')], "tool_calls", None)),
        (f"{GOOD}{GOOD}", (None, None, [("f", '{"a": 1}')] * 2, "tool_calls", None)),
        # A call that is thought about is not made.
        (f"<think>{GOOD}</think>No.", ("No.", GOOD, [], "stop", None)),
        ("<tool_call>f()</tool_call>", ("<tool_call>f()</tool_call>", None, [], "stop", None)),
    ],
)
def test_an_answer_is_taken_apart(text: str, expected: tuple[object, ...]) -> None:
    assert told(choice(text, EVERYTHING)) == expected


def test_without_tools_a_call_is_text() -> None:
    assert told(choice(GOOD, AssemblyOptions())) == (GOOD, None, [], "stop", None)


def test_a_model_that_does_not_reason_may_write_the_tags() -> None:
    text = "<think>Hm</think>"
    assert told(choice(text, AssemblyOptions(tool_calls=True))) == (text, None, [], "stop", None)


@pytest.mark.parametrize(
    ("text", "reason", "expected"),
    [
        (GOOD, FinishReason.STOP, FinishReason.TOOL_CALLS),
        (GOOD, FinishReason.LENGTH, FinishReason.LENGTH),
        ("Hi", FinishReason.STOP, FinishReason.STOP),
        ("Hi", FinishReason.LENGTH, FinishReason.LENGTH),
        ("<tool_call>f()</tool_call>", FinishReason.STOP, FinishReason.STOP),
    ],
)
def test_the_reason_is_the_callers_view_of_the_end(
    text: str, reason: FinishReason, expected: FinishReason
) -> None:
    assert choice(text, EVERYTHING, reason).finish_reason is expected


def test_a_cut_off_answer_keeps_all_that_was_held_back() -> None:
    length = FinishReason.LENGTH
    assert choice("a EN", EVERYTHING, length).message.content == "a EN"
    assert choice("a\n<tool_call>{", EVERYTHING, length).message.content == "a\n<tool_call>{"
    assert choice("<think>Hm </th", EVERYTHING, length).message.reasoning_content == "Hm </th"
    smile = TOKENIZER.encode("a😀")[:-1]
    parts, _, _ = deltas([smile], AssemblyOptions(), length)
    assert "".join(part.content or "" for part in parts) == "a\ufffd"


def test_calls_are_numbered_and_have_ids_of_their_own() -> None:
    parts, _, _ = deltas([TOKENIZER.encode(GOOD * 2)], EVERYTHING)
    calls = [call for part in parts for call in part.tool_calls]
    assert [call.index for call in calls] == [0, 1]
    assert len({call.id for call in calls}) == 2
    assert all(call.id and call.id.startswith("call_") for call in calls)


def test_tokens_are_counted_up_to_the_stop_string() -> None:
    _, _, assembler = deltas([TOKENIZER.encode("a END, more")], EVERYTHING)
    assert assembler.stopped_by == "END"
    assert assembler.completion_tokens == len("a END")


def test_control_tokens_count_and_do_not_show() -> None:
    parts, _, assembler = deltas([TOKENIZER.encode("Hi<|im_end|>")], EVERYTHING)
    assert [part.content for part in parts] == ["Hi"]
    assert assembler.completion_tokens == 3


@pytest.mark.parametrize(
    ("text", "opened", "count"),
    [
        ("<think>Hm</think>Yes.", False, 4),
        ("Hm</think>Yes.", True, 3),
        ("Hm", True, 2),
        ("Yes.", False, 0),
    ],
)
def test_tokens_of_reasoning_are_counted_with_its_tags(
    text: str,
    opened: bool,  # noqa: FBT001
    count: int,
) -> None:
    options = AssemblyOptions(reasoning=True, reasoning_opened=opened)
    _, _, assembler = deltas([TOKENIZER.encode(text)], options)
    assert (assembler.reasons, assembler.reasoning_tokens) == (True, count)


def test_a_model_that_does_not_reason_counts_no_reasoning() -> None:
    assert not deltas([[65]], AssemblyOptions())[2].reasons
