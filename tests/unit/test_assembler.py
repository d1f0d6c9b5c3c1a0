"""One choice, from tokens to deltas: the stages together."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovchat_server.chat.assembler import AssemblyOptions
from ovchat_server.domain.blocks import BlockKind
from ovchat_server.domain.completion import FinishReason
from tests.unit.assembler_tools import Assembled, assembled, options_of
from tests.unit.text_tools import PieceDecoder, byte_tokenizer, mixed

if TYPE_CHECKING:
    from ovchat_server.domain.completion import Choice

TOKENIZER = byte_tokenizer()
END = TOKENIZER.encode("<|im_end|>")
GOOD = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
EVERYTHING = options_of(stop=("END",), reasoning=True, tool_calls=True)
TEXTS = mixed("<think>", "</think>", "<tool_call>", GOOD, "END", "😀", "\n", "hi")
OPTIONS = st.builds(
    options_of,
    stop=st.sampled_from([(), ("END",), ("i", "hi"), ("\n", "<tool")]),
    reasoning=st.booleans(),
    reasoning_opened=st.booleans(),
    tool_calls=st.booleans(),
)


def answered(
    text: str, options: AssemblyOptions, reason: FinishReason = FinishReason.STOP
) -> Assembled:
    """A text as an engine says it, token by token; a stop is the end token's."""
    tokens = [*TOKENIZER.encode(text), *(END if reason is FinishReason.STOP else [])]
    return assembled(TOKENIZER, [[token] for token in tokens], options, reason)


def choice(text: str, options: AssemblyOptions, reason: FinishReason = FinishReason.STOP) -> Choice:
    return answered(text, options, reason).choice


def told(one: Choice) -> tuple[object, ...]:
    """A choice without the ids of its calls, which are random."""
    calls = [(call.name, call.arguments) for call in one.message.tool_calls]
    message = one.message
    return message.text, message.reasoning_content, calls, one.finish_reason, one.stop_reason


@given(st.lists(st.integers(0, 255), max_size=30), OPTIONS)
def test_no_tokens_raise_and_no_delta_is_empty(tokens: list[int], options: AssemblyOptions) -> None:
    groups = [[token] for token in tokens]
    *parts, last = assembled(TOKENIZER, groups, options, FinishReason.LENGTH).chunks
    deltas = [part.delta for part in parts]
    assert all(d.content or d.reasoning_content or d.tool_calls for d in deltas)
    assert all(d.role is None for d in deltas)
    assert last.finish_reason is not None
    assert all(part.finish_reason is None for part in parts)


@given(TEXTS.filter(lambda text: "\ufffd" not in text))
def test_without_options_the_text_passes_untouched(text: str) -> None:
    assert choice(text, AssemblyOptions()).message.text == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hi", ("Hi", None, [], "stop", None)),
        ("", ("", None, [], "stop", None)),
        ("<think>\nHm\n</think>\n\nYes END no", ("Yes ", "Hm", [], "stop", "END")),
        # What is no content is not searched: reasoning, white space around it, markup, arguments.
        ("<think>Hm END", ("", "Hm END", [], "stop", None)),
        ("<think>END</think>Yes END no", ("Yes ", "END", [], "stop", "END")),
        (
            '<tool_call>{"name": "f", "arguments": {"END": 1}}</tool_call>',
            ("", None, [("f", '{"END": 1}')], "tool_calls", None),
        ),
        (f"{GOOD}\nEND, more", ("", None, [("f", '{"a": 1}')], "tool_calls", "END")),
        (f"END\n{GOOD}", ("", None, [], "stop", "END")),
        ("<tool_call>END()</tool_call>", ("<tool_call>", None, [], "stop", "END")),
        (f"<think>Hm</think>{GOOD}", ("", "Hm", [("f", '{"a": 1}')], "tool_calls", None)),
        (f"Look:\n{GOOD}\n", ("Look:", None, [("f", '{"a": 1}')], "tool_calls", None)),
        (f"{GOOD}{GOOD}", ("", None, [("f", '{"a": 1}')] * 2, "tool_calls", None)),
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
    assert told(choice(text, options_of(tool_calls=True))) == (text, None, [], "stop", None)


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
    assert choice("a EN", EVERYTHING, length).message.text == "a EN"
    assert choice("<think>Hm </th", EVERYTHING, length).message.reasoning_content == "Hm </th"


@pytest.mark.parametrize("reason", [FinishReason.LENGTH, FinishReason.STOP])
@pytest.mark.parametrize("lost", [1, 2, 3])
def test_half_a_character_at_the_end_is_no_text_but_its_tokens_are_told(
    reason: FinishReason, lost: int
) -> None:
    options = AssemblyOptions(token_ids=True, logprobs=True)
    smile = TOKENIZER.encode("a😀")[:-lost]
    tokens = [*smile, 0] if reason is FinishReason.STOP else smile
    one = assembled(TOKENIZER, [tokens], options, reason, [0.0] * len(tokens))
    assert one.choice.message.text == "a"
    assert one.choice.token_ids == tuple(tokens)
    assert len(one.choice.logprobs or ()) == len(smile)


@pytest.mark.parametrize("opening", ["<tool_call>", '<tool_call>\n{"name": "get_we', "<tool_ca"])
def test_a_call_that_was_cut_at_its_opening_leaves_no_markup(opening: str) -> None:
    said = choice(f"a\n{opening}", EVERYTHING, FinishReason.LENGTH)
    assert (said.message.text, said.message.tool_calls) == (
        "a\n" if opening == "<tool_ca" else "a",
        (),
    )
    assert said.finish_reason is FinishReason.LENGTH
    stop = AssemblyOptions(stop_tokens=frozenset(TOKENIZER.encode("!")), parser=EVERYTHING.parser)
    said = choice(f"a\n{opening}!", stop, FinishReason.LENGTH)
    assert (said.message.text).strip() == "a"
    assert (said.stop_reason, said.finish_reason) == (TOKENIZER.encode("!")[0], FinishReason.STOP)
    # The model's own end is no cut.
    said = choice(f"a\n{opening}", EVERYTHING, FinishReason.STOP)
    assert said.message.text == f"a\n{opening}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hi\n", ("Hi", None, [], "stop", "\n")),
        ("Hi\n\nyou", ("Hi", None, [], "stop", "\n")),
        ("<think>\na\nb\n</think>\n\n42\n43", ("42", "a\nb", [], "stop", "\n")),
        # Between an answer and its calls it is markup.
        (f"Look:\n{GOOD}\n", ("Look:", None, [("f", '{"a": 1}')], "tool_calls", None)),
    ],
)
@pytest.mark.parametrize("reason", [FinishReason.STOP, FinishReason.LENGTH])
def test_a_line_break_ends_an_answer_where_callers_see_it(
    text: str, expected: tuple[object, ...], reason: FinishReason
) -> None:
    options = options_of(stop=("\n",), reasoning=True, tool_calls=True)
    *parts, finish, stopped_by = expected
    if reason is FinishReason.LENGTH and not stopped_by:
        finish = "length"
    assert told(choice(text, options, reason)) == (*parts, finish, stopped_by)


def test_calls_are_numbered_and_have_ids_of_their_own() -> None:
    chunks = answered(GOOD * 2, EVERYTHING).chunks
    calls = [call for chunk in chunks for call in chunk.delta.tool_calls]
    assert [call.index for call in calls] == [0, 1]
    assert len({call.id for call in calls}) == 2
    assert all(call.id and call.id.startswith("call_") for call in calls)


def test_tokens_are_counted_up_to_the_stop_string() -> None:
    one = answered("a END, more", EVERYTHING)
    assert one.choice.stop_reason == "END"
    assert one.assembler.completion_tokens == len("a END")


def test_control_tokens_count_and_do_not_show() -> None:
    one = answered("H<|im_start|>i", EVERYTHING)
    assert "".join(chunk.delta.content or "" for chunk in one.chunks) == "Hi"
    # The end token is one of them.
    assert one.assembler.completion_tokens == 4


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
    options = options_of(reasoning=True, reasoning_opened=opened)
    length = FinishReason.LENGTH
    assembler = answered(text, options, length).assembler
    assert (assembler.marks_reasoning, assembler.reasoning_tokens) == (True, count)


def test_a_model_that_does_not_reason_counts_no_reasoning() -> None:
    assert not answered("A", AssemblyOptions()).assembler.marks_reasoning


def tokens_of(*texts: str) -> list[list[int]]:
    return [[token] for text in texts for token in TOKENIZER.encode(text)]


STOP_TOKENS = AssemblyOptions(stop_tokens=frozenset(TOKENIZER.encode("!")), token_ids=True)
INCLUDED = dataclasses.replace(STOP_TOKENS, include_stop=True)


@pytest.mark.parametrize(("options", "text"), [(STOP_TOKENS, "Hi"), (INCLUDED, "Hi!")])
# The engine ends at a stop token, too, but where it was told to go on past its own end.
@pytest.mark.parametrize("said", ["Hi!", "Hi! You"])
def test_a_stop_token_ends_the_answer_and_is_told(
    options: AssemblyOptions, text: str, said: str
) -> None:
    one = assembled(TOKENIZER, tokens_of(said), options, FinishReason.STOP)
    assert told(one.choice) == (text, None, [], "stop", TOKENIZER.encode("!")[0])
    assert one.choice.token_ids == tuple(TOKENIZER.encode("Hi!"))
    assert one.assembler.completion_tokens == 3


def test_the_models_own_end_token_is_no_reason_to_tell() -> None:
    assert choice("Hi", STOP_TOKENS).stop_reason is None


@pytest.mark.parametrize(
    ("include", "text"), [(False, "H<|im_start|>i"), (True, "H<|im_start|>i<|im_end|>")]
)
def test_control_tokens_show_where_asked_for_but_the_one_that_ends_only_if_included(
    include: bool,  # noqa: FBT001
    text: str,
) -> None:
    options = AssemblyOptions(special_tokens=True, include_stop=include)
    assert choice("H<|im_start|>i", options).message.text == text


def test_an_included_end_token_is_no_text_by_itself() -> None:
    assert choice("Hi", AssemblyOptions(include_stop=True)).message.text == "Hi"


def test_a_cut_off_answer_shows_its_control_tokens() -> None:
    options = AssemblyOptions(special_tokens=True)
    one = assembled(TOKENIZER, tokens_of("Hi<|im_end|>"), options, FinishReason.LENGTH)
    assert one.choice.message.text == "Hi<|im_end|>"


def test_an_included_stop_string_is_the_end_of_the_text() -> None:
    options = AssemblyOptions(stop=("END",), include_stop=True)
    assert told(choice("a END b", options)) == ("a END", None, [], "stop", "END")


@pytest.mark.parametrize(
    ("fewest", "expected"),
    [(0, ("", "!")), (1, ("!", "!")), (2, ("!!", "!")), (5, ("!!!!!", None))],
)
def test_nothing_ends_an_answer_before_the_fewest_tokens(
    fewest: int, expected: tuple[str, str | None]
) -> None:
    token = TOKENIZER.encode("!")[0]
    by_text = AssemblyOptions(stop=("!",), min_tokens=fewest)
    by_token = AssemblyOptions(stop_tokens=frozenset({token}), min_tokens=fewest)
    length = FinishReason.LENGTH
    text, reason = expected
    first = choice("!!!!!", by_text, length)
    second = choice("!!!!!", by_token, length)
    assert (first.message.text, first.stop_reason) == (text, reason)
    assert (second.message.text, second.stop_reason) == (text, reason and token)


@pytest.mark.parametrize(("min_tokens", "text"), [(0, ""), (1, ""), (2, "ab"), (6, "ababab")])
def test_a_stop_string_may_begin_in_the_first_tokens_but_not_end_there(
    min_tokens: int, text: str
) -> None:
    options = AssemblyOptions(stop=("ab",), min_tokens=min_tokens)
    one = choice("ababab", options, FinishReason.LENGTH)
    stopped = None if text == "ababab" else "ab"
    assert (one.message.text, one.stop_reason) == (text, stopped)


def test_half_a_character_at_the_end_is_no_stop_string() -> None:
    options = AssemblyOptions(stop=("a\ufffd", "\ufffd"))
    smile = TOKENIZER.encode("a😀")[:-1]
    one = assembled(TOKENIZER, [smile], options, FinishReason.LENGTH).choice
    assert (one.message.text, one.stop_reason) == ("a", None)
    assert one.finish_reason is FinishReason.LENGTH


@pytest.mark.parametrize(
    ("given", "reported"),
    [(-0.5, -0.5), (0.0, 0.0), (1e-7, 0.0), (-math.inf, -9999.0), (-1e9, -9999.0)],
)
def test_a_log_probability_is_one_that_json_can_hold(given: float, reported: float) -> None:
    options = AssemblyOptions(logprobs=True)
    one = assembled(TOKENIZER, tokens_of("H"), options, FinishReason.LENGTH, [given])
    [item] = one.choice.logprobs or ()
    assert item.logprob == reported
    assert str(item.logprob) != "-0.0"


def likeliest(own: bool, *tops: tuple[int, float], said: float = -1.0) -> list[tuple[str, float]]:  # noqa: FBT001
    """What is told beside an "H"."""
    options = AssemblyOptions(logprobs=True, own_alternative=own)
    one = assembled(
        TOKENIZER, tokens_of("H"), options, FinishReason.LENGTH, [said], alternatives=[tops]
    )
    [item] = one.choice.logprobs or ()
    assert all(top.bytes == top.text.encode() for top in item.alternatives)
    return [(top.text, top.logprob) for top in item.alternatives]


H, A, B = TOKENIZER.encode("Hab")


@pytest.mark.parametrize(
    ("own", "tops", "told"),
    [
        (False, [(A, -0.5), (B, -0.75)], [("a", -0.5), ("b", -0.75)]),
        (True, [(A, -0.5), (B, -0.75)], [("a", -0.5), ("b", -0.75), ("H", -1.0)]),
        # Two numbers of one token would be one too many.
        (False, [(A, -0.5), (H, -1.00001)], [("a", -0.5), ("H", -1.0)]),
        (True, [(H, -0.99999), (A, -1.5)], [("H", -1.0), ("a", -1.5)]),
        (False, [], []),
        (True, [], [("H", -1.0)]),
        (False, [(A, 1e-7), (B, -math.inf)], [("a", 0.0), ("b", -9999.0)]),
    ],
)
def test_alternatives_are_the_likeliest_tokens(
    own: bool,  # noqa: FBT001
    tops: list[tuple[int, float]],
    told: list[tuple[str, float]],
) -> None:
    assert likeliest(own, *tops) == told


def test_alternatives_come_with_their_token_and_are_cut_with_it() -> None:
    options = AssemblyOptions(stop=("b!",), logprobs=True)
    tops = [[(token, -2.0)] for [token] in tokens_of("1234")]
    said = tokens_of("abb!")
    chunks = assembled(
        TOKENIZER, said, options, FinishReason.LENGTH, [-1.0] * 4, alternatives=tops
    ).chunks
    told = [
        (
            chunk.delta.content,
            [top.text for item in chunk.logprobs or () for top in item.alternatives],
        )
        for chunk in chunks
    ]
    assert told == [("a", ["1"]), ("b", ["2"]), (None, [])]


def test_log_probabilities_come_with_the_text_of_their_tokens() -> None:
    options = AssemblyOptions(stop=("b!",), logprobs=True)
    chunks = assembled(
        TOKENIZER, tokens_of("a😀bc"), options, FinishReason.LENGTH, [-1.0] * 7
    ).chunks
    texts = [(c.delta.content, [item.offset for item in c.logprobs or ()]) for c in chunks]
    assert texts == [("a", [0]), ("😀", [1, 1, 1, 1]), ("bc", [2, 3]), (None, [])]


def test_a_token_that_is_no_text_by_itself_has_its_bytes() -> None:
    options = AssemblyOptions(logprobs=True)
    decoder = PieceDecoder([bytes([byte]) for byte in "😀".encode()])
    one = assembled(decoder, [[0], [1], [2], [3]], options, FinishReason.LENGTH, [0.0] * 4).choice
    assert [item.text for item in one.logprobs or ()] == ["\ufffd"] * 4
    assert b"".join(item.bytes for item in one.logprobs or ()) == "😀".encode()


@pytest.mark.parametrize("options", [EVERYTHING, dataclasses.replace(EVERYTHING, stop=())])
@pytest.mark.parametrize(
    ("text", "reason", "texts"),
    [
        ("<think>Hm</think>\n\n17 + 25 = 42", FinishReason.STOP, ["17 + 25 = 42"]),
        (f"Look:\n{GOOD}", FinishReason.STOP, ["Look:"]),
        (f"<think>Hm</think>\n\nLook: <b>\n{GOOD}\n", FinishReason.STOP, ["Look: <b>"]),
        ("Yes\n<tool_call>\n{", FinishReason.LENGTH, ["Yes"]),
        ("😀<tool 😀", FinishReason.LENGTH, ["😀<tool 😀"]),
        ("<think>Hm", FinishReason.LENGTH, []),
    ],
)
def test_the_log_probabilities_of_a_text_are_those_of_its_tokens(
    text: str, reason: FinishReason, texts: list[str], options: AssemblyOptions
) -> None:
    tokens = TOKENIZER.encode(text) + (END if reason is FinishReason.STOP else [])
    options = dataclasses.replace(options, logprobs=True)
    for groups in ([[token] for token in tokens], [tokens]):
        one = assembled(TOKENIZER, groups, options, reason, [-0.5] * len(tokens)).choice
        found = [block for block in one.blocks if block.kind is BlockKind.TEXT]
        assert [block.text for block in found] == texts
        for block in found:
            assert b"".join(item.bytes for item in block.logprobs).decode() == block.text
