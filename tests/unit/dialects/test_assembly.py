"""From tokens to deltas with a dialect's parsers: control tokens, ids, fragments."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import decoders, models, pre_tokenizers

from ovchat_server.chat.assembler import AssemblyOptions, ChoiceAssembler
from ovchat_server.chat.collector import ChoiceCollector
from ovchat_server.chat.dialects.base import ParserOptions
from ovchat_server.chat.dialects.chain import Chain, WithoutTags
from ovchat_server.chat.dialects.registry import choose_dialects
from ovchat_server.domain.completion import FinishReason
from ovchat_server.tokenizer.huggingface import Tokenizer
from tests.unit.dialects.reading import joined

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.chat.dialects.registry import Dialects
    from ovchat_server.domain.completion import Choice, ChunkChoice

END = "<|im_end|>"
MISTRAL = choose_dialects("", "mistral", "mistral")
HARMONY = choose_dialects("", "gpt_oss", "gpt_oss")
HERMES = choose_dialects("", "hermes", "qwen3")
CALL = '[TOOL_CALLS]f[ARGS]{"a": "é", "b": [1.0]}'


def tokenizer_of(dialects: Dialects) -> Tokenizer:
    """A token a byte, and the dialect's control tokens."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    inner = tokenizers.Tokenizer(models.BPE({char: i for i, char in enumerate(alphabet)}, []))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    inner.decoder = decoders.ByteLevel()
    control = [*dialects.special_tokens, END]
    inner.add_special_tokens([tokenizers.AddedToken(text, special=True) for text in control])
    return Tokenizer(inner)


def options(
    dialects: Dialects, *, enforced: bool = False, hidden: tuple[str, ...] | None = None
) -> AssemblyOptions:
    end = tokenizer_of(dialects).token(END)
    assert end is not None
    return AssemblyOptions(
        special_tokens=True,
        dropped_tokens=frozenset({end}),
        parser=partial(
            dialects.parser,
            ParserOptions(calls_enforced=enforced),
            opened=False,
            hidden=dialects.special_tokens if hidden is None else hidden,
        ),
        marks_reasoning=True,
    )


def chunks_of(
    text: str, dialects: Dialects, how: AssemblyOptions, sizes: Sequence[int] = ()
) -> list[ChunkChoice]:
    tokenizer = tokenizer_of(dialects)
    assembler = ChoiceAssembler(0, tokenizer, how)
    tokens = tokenizer.encode(text)
    chunks: list[ChunkChoice] = []
    for size in sizes or [1] * len(tokens):
        group, tokens = tokens[:size], tokens[size:]
        chunks += assembler.feed(group)
    return chunks + assembler.feed(tokens, finish=FinishReason.LENGTH)


def collected(chunks: list[ChunkChoice]) -> Choice:
    collector = ChoiceCollector()
    for chunk in chunks:
        collector.add(chunk)
    return collector.choice()


def told(choice: Choice) -> tuple[object, ...]:
    message = choice.message
    calls = [(call.name, call.arguments) for call in message.tool_calls]
    return message.text, message.reasoning_content, calls


@pytest.mark.parametrize(
    ("dialects", "text", "expected"),
    [
        (
            MISTRAL,
            f"[THINK]Hm[/THINK]I look. {CALL}{END}",
            ("I look.", "Hm", [("f", '{"a": "é", "b": [1.0]}')]),
        ),
        (
            HARMONY,
            (
                "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>commentary "
                'to=functions.f <|constrain|>json<|message|>{"a": 1}'
            ),
            ("", "Hm", [("f", '{"a": 1}')]),
        ),
        # What comes back of damaged markup has the text that it has without a parser.
        (MISTRAL, f"a{END} [TOOL_CALLS]f[ARGS]no b", ("a fno b", None, [])),
        (HARMONY, "<|channel|>final<|message|>Yes<|end|><|call|>", ("Yes", None, [])),
    ],
)
def test_control_tokens_are_parsed_and_never_shown(
    dialects: Dialects, text: str, expected: tuple[object, ...]
) -> None:
    assert told(collected(chunks_of(text, dialects, options(dialects)))) == expected


def test_control_tokens_are_shown_where_they_were_asked_for() -> None:
    how = options(MISTRAL, hidden=())
    choice = collected(chunks_of("[TOOL_CALLS]f[ARGS]no", MISTRAL, how))
    assert choice.message.text == "[TOOL_CALLS]f[ARGS]no"


@given(st.lists(st.integers(1, 5), max_size=40), st.booleans())
def test_the_groups_of_the_tokens_change_nothing(sizes: list[int], enforced: bool) -> None:  # noqa: FBT001
    text = f"[THINK]Hm[/THINK]Look: {CALL}{CALL} [ARGS] and"
    how = options(MISTRAL, enforced=enforced)
    whole = told(collected(chunks_of(text, MISTRAL, how)))
    assert told(collected(chunks_of(text, MISTRAL, how, sizes))) == whole
    assert whole == ("Look: and", "Hm", [("f", '{"a": "é", "b": [1.0]}')] * 2)


@pytest.mark.parametrize("text", ["a[ARGS]b", "[AR[ARGS]GS]", "[ARG", "[[ARGS]", "x[ARGS][ARGS]"])
def test_a_control_token_is_not_shown_either_where_it_comes_in_pieces(text: str) -> None:
    expected = text.replace("[ARGS]", "")
    for pieces in ([text], list(text)):
        parser = WithoutTags(Chain(None, None), ("[ARGS]",))
        assert joined([*map(parser.feed, pieces), parser.flush()]).content == expected


def test_a_call_has_its_id_and_name_once_and_its_arguments_in_fragments() -> None:
    chunks = chunks_of(CALL + CALL, MISTRAL, options(MISTRAL, enforced=True))
    deltas = [delta for chunk in chunks for delta in chunk.delta.tool_calls]
    for index in (0, 1):
        mine = [delta for delta in deltas if delta.index == index]
        assert mine[0].name == "f"
        assert mine[0].id is not None
        assert mine[0].id.startswith("call_")
        assert [(delta.id, delta.name) for delta in mine[1:]] == [(None, None)] * (len(mine) - 1)
        assert len(mine) > 10
        arguments = "".join(delta.arguments or "" for delta in mine)
        assert json.loads(arguments) == {"a": "é", "b": [1.0]}
    assert len({delta.id for delta in deltas if delta.id}) == 2


def test_in_one_chunk_a_call_has_one_delta() -> None:
    [chunk, _] = chunks_of(CALL + CALL, MISTRAL, options(MISTRAL, enforced=True), [100])
    assert [(d.index, d.name, d.arguments) for d in chunk.delta.tool_calls] == [
        (0, "f", '{"a": "é", "b": [1.0]}'),
        (1, "f", '{"a": "é", "b": [1.0]}'),
    ]


def test_a_call_that_is_not_trusted_comes_whole() -> None:
    chunks = chunks_of(CALL, MISTRAL, options(MISTRAL))
    [delta] = [delta for chunk in chunks for delta in chunk.delta.tool_calls]
    assert (delta.name, delta.arguments) == ("f", '{"a": "é", "b": [1.0]}')


def test_tokens_of_harmonys_reasoning_are_counted() -> None:
    tokenizer = tokenizer_of(HARMONY)
    assembler = ChoiceAssembler(0, tokenizer, options(HARMONY))
    text = "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>final<|message|>Yes"
    assembler.feed(tokenizer.encode(text), finish=FinishReason.LENGTH)
    # Its two letters, and the tags that it begins and ends with.
    assert assembler.reasoning_tokens == len("Hm") + 2


def test_a_call_inside_the_reasoning_is_thought_about_and_not_made() -> None:
    text = '<think><tool_call>{"name": "f"}</tool_call></think>No.'
    content, reasoning, calls = told(collected(chunks_of(text, HERMES, options(HERMES, hidden=()))))
    assert (content, calls) == ("No.", [])
    assert reasoning == '<tool_call>{"name": "f"}</tool_call>'
