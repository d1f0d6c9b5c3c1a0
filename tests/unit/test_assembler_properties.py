"""One choice over any tokens, grouped in any way: what always holds."""

from __future__ import annotations

import codecs
import dataclasses
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, TypeVar

from hypothesis import given
from hypothesis import strategies as st

from ovchat_server.chat.assembler import AssemblyOptions
from ovchat_server.domain.completion import Alternative, FinishReason
from tests.effort import examples
from tests.unit.assembler_tools import Assembled, assembled, options_of
from tests.unit.text_tools import PieceDecoder, byte_pieces, character_offsets, mixed

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")

CALL = '<tool_call>{"name": "f", "arguments": {"a": "é"}}</tool_call>'
TEXTS = mixed("<think>", "</think>", CALL, "END", "😀", "e\u0301", "👩\u200d🚀", "\n", "hi", "你好")
PLAIN = mixed("😀", "e\u0301", "👩\u200d🚀", "\n", "hi", "你好").filter(
    lambda text: "\ufffd" not in text
)
CONTROL = b"<|im_end|>"
STOPS = st.sampled_from(
    [(), ("END",), ("i", "hi"), ("\n", "<tool"), ("😀",), ("\u0301", "好"), ("\ufffd",)]
)


@dataclasses.dataclass(frozen=True)
class Said:
    """What an engine says: the bytes of each token, which of them is a control token."""

    pieces: tuple[bytes, ...]
    control: frozenset[int]
    reason: FinishReason

    @property
    def decoder(self) -> PieceDecoder:
        return PieceDecoder(self.pieces, self.control)

    @property
    def tokens(self) -> range:
        return range(len(self.pieces))

    @property
    def logprobs(self) -> list[float]:
        return [-number / 8 for number in self.tokens]

    @property
    def alternatives(self) -> list[list[tuple[int, float]]]:
        """The token itself is the likeliest now and then."""
        return [[(number - number % 2, -0.125), (0, -0.5)] for number in self.tokens]

    def assembled(self, options: AssemblyOptions, groups: list[list[int]]) -> Assembled:
        return assembled(
            self.decoder,
            groups,
            options,
            self.reason,
            self.logprobs,
            alternatives=self.alternatives,
        )

    def singly(self, options: AssemblyOptions) -> Assembled:
        return self.assembled(options, [[token] for token in self.tokens])


def cut(draw: st.DrawFn, items: Sequence[T], most: int) -> list[Sequence[T]]:
    cuts = draw(st.sets(st.integers(0, len(items)), max_size=most))
    return [items[a:b] for a, b in pairwise(sorted({0, len(items)} | cuts))]


@st.composite
def said(draw: st.DrawFn, texts: st.SearchStrategy[str] = TEXTS, *, control: bool = True) -> Said:
    """A text as tokens that cut it, and its characters, anywhere."""
    data = draw(texts).encode()
    pieces = list(cut(draw, data, 30))
    places = sorted(draw(st.sets(st.integers(0, len(pieces)), max_size=2 if control else 0)))
    for number, place in enumerate(places):
        pieces.insert(place + number, CONTROL)
    marked = frozenset(place + number for number, place in enumerate(places))
    return Said(
        tuple(bytes(piece) for piece in pieces),
        marked,
        draw(st.sampled_from([FinishReason.STOP, FinishReason.LENGTH])),
    )


OPTIONS = st.builds(
    options_of,
    stop=STOPS,
    stop_tokens=st.frozensets(st.integers(0, 20), max_size=1),
    include_stop=st.booleans(),
    min_tokens=st.sampled_from([0, 0, 1, 4, 10]),
    special_tokens=st.booleans(),
    reasoning=st.booleans(),
    reasoning_opened=st.booleans(),
    tool_calls=st.booleans(),
    logprobs=st.booleans(),
    own_alternative=st.booleans(),
    token_ids=st.booleans(),
)
SEARCHED = st.builds(
    options_of,
    stop=st.sampled_from([("END",), ("\n", "<tool")]),
    include_stop=st.booleans(),
    reasoning=st.just(value=True),
    reasoning_opened=st.booleans(),
    tool_calls=st.just(value=True),
    logprobs=st.booleans(),
)


def everything(one: Assembled) -> tuple[object, ...]:
    """All that a caller learns, but for the ids of calls, which are random."""
    choice, assembler = one.choice, one.assembler
    message = choice.message
    return (
        message.text,
        message.reasoning_content,
        [(call.name, call.arguments) for call in message.tool_calls],
        choice.finish_reason,
        choice.stop_reason,
        choice.logprobs,
        [item for block in choice.blocks for item in block.logprobs],
        choice.token_ids,
        assembler.completion_tokens,
        assembler.reasoning_tokens,
    )


@given(said(), OPTIONS, st.data())
@examples(300)
def test_the_groups_of_the_tokens_change_nothing(
    engine: Said, options: AssemblyOptions, data: st.DataObject
) -> None:
    groups = data.draw(st.composite(lambda draw: cut(draw, list(engine.tokens), 10))())
    once = everything(engine.assembled(options, [list(engine.tokens)]))
    assert everything(engine.assembled(options, [list(group) for group in groups])) == once
    assert everything(engine.singly(options)) == once


@given(said(), OPTIONS)
def test_only_the_last_chunk_tells_the_end_and_no_other_is_empty(
    engine: Said, options: AssemblyOptions
) -> None:
    *parts, last = engine.singly(options).chunks
    assert last.finish_reason is not None
    for part in parts:
        assert (part.finish_reason, part.stop_reason) == (None, None)
        assert part.delta.content or part.delta.reasoning_content or part.delta.tool_calls


@given(said(), OPTIONS)
def test_what_was_not_asked_for_is_not_reported(engine: Said, options: AssemblyOptions) -> None:
    for part in engine.singly(options).chunks:
        assert options.logprobs or part.logprobs is None
        assert (part.token_ids is not None) == options.token_ids
        for item in part.logprobs or ():
            itself = Alternative(item.text, item.logprob, item.bytes)
            assert len(item.alternatives) in ({2, 3} if options.own_alternative else {2})
            assert not options.own_alternative or itself in item.alternatives


@given(said(PLAIN), st.booleans())
def test_the_bytes_of_the_log_probabilities_are_those_of_the_answer(
    engine: Said,
    special: bool,  # noqa: FBT001
) -> None:
    options = AssemblyOptions(logprobs=True, special_tokens=special)
    choice = engine.singly(options).choice
    logprobs = choice.logprobs or ()
    data = b"".join(item.bytes for item in logprobs)
    if not special:
        data = data.replace(CONTROL, b"")
    # A character that the end cuts off is no text.
    whole = codecs.getincrementaldecoder("utf-8")("replace").decode(data)
    assert whole == choice.message.text
    expected = engine.logprobs
    if engine.reason is FinishReason.STOP:
        expected = expected[:-1]
    assert [item.logprob for item in logprobs] == expected


@given(byte_pieces())
def test_the_offset_of_a_token_is_that_of_the_character_it_begins_in(pieces: list[bytes]) -> None:
    engine = Said(tuple(pieces), frozenset(), FinishReason.LENGTH)
    choice = engine.singly(AssemblyOptions(logprobs=True)).choice
    assert [item.offset for item in choice.logprobs or ()] == character_offsets(pieces)


@given(said(PLAIN, control=False), STOPS, st.booleans())
@examples(200)
def test_a_stop_string_ends_the_text_and_its_log_probabilities(
    engine: Said,
    stops: tuple[str, ...],
    include: bool,  # noqa: FBT001
) -> None:
    engine = dataclasses.replace(engine, reason=FinishReason.LENGTH)
    text = b"".join(engine.pieces).decode()
    options = AssemblyOptions(stop=stops, include_stop=include, logprobs=True)
    choice = engine.singly(options).choice
    matches = [(at + len(stop), at, stop) for stop in stops if (at := text.find(stop)) >= 0]
    content = choice.message.text
    logprobs = choice.logprobs or ()
    if not matches:
        assert (content, choice.stop_reason) == (text, None)
        assert len(logprobs) == len(engine.pieces)
        return
    end, start, stop = min(matches)
    kept = text[:end] if include else text[:start]
    assert (content, choice.stop_reason) == (kept, stop)
    assert choice.finish_reason is FinishReason.STOP
    if not include:
        assert not any(item in kept for item in stops)
    # Those of the tokens that have a part in what is left.
    starts = list(accumulate(map(len, engine.pieces), initial=0))[:-1]
    told = [begin for begin in starts if begin < len(kept.encode())]
    assert [item.logprob for item in logprobs] == engine.logprobs[: len(told)]


@given(said(mixed("<think>", "</think>", CALL, "END", "\n")), SEARCHED)
@examples(200)
def test_a_stop_string_that_callers_would_not_see_changes_nothing(
    engine: Said, options: AssemblyOptions
) -> None:
    without = engine.singly(dataclasses.replace(options, stop=()))
    content = without.choice.message.text
    told = engine.singly(options)
    if not any(stop in content for stop in options.stop):
        assert everything(told) == everything(without)
    elif not options.min_tokens and not options.include_stop:
        assert told.choice.stop_reason in options.stop
        assert not any(stop in (told.choice.message.text) for stop in options.stop)
        assert told.choice.finish_reason is not FinishReason.LENGTH


@given(said(PLAIN, control=False), STOPS, st.integers(0, 40))
def test_no_stop_string_matches_in_the_first_tokens(
    engine: Said, stops: tuple[str, ...], fewest: int
) -> None:
    engine = dataclasses.replace(engine, reason=FinishReason.LENGTH)
    one = engine.singly(AssemblyOptions(stop=stops, min_tokens=fewest))
    if one.choice.stop_reason is not None:
        assert one.assembler.completion_tokens > fewest
    if fewest >= len(engine.pieces):
        assert one.choice.message.text == b"".join(engine.pieces).decode()
