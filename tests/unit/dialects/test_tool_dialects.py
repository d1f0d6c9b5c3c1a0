"""What every parser of calls must hold. A new one needs a writer, and no test of its own."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovchat_server.chat.dialects.base import CombinedDialect, ToolDialect
from ovchat_server.chat.dialects.registry import TOOL_DIALECTS
from tests.effort import examples
from tests.unit.dialects.reading import Read, read, squeezed
from tests.unit.dialects.writers import WRITERS, Writer, Written, tools_for

if TYPE_CHECKING:
    from ovchat_server.domain.chat import Tool

Dialect = ToolDialect | CombinedDialect
DIALECTS = {dialect.name: dialect for dialect in TOOL_DIALECTS}
every_dialect = pytest.mark.parametrize("name", sorted(WRITERS))
# Letters that no name begins with, and what markup is made of.
TEXTS = st.text(st.sampled_from("xyz. <>[]{}|/:,\n"), max_size=12)
F = Written("f", {"a": 1, "b": "x"}, '{"a": 1, "b": "x"}')


def tools(name: str = "f") -> tuple[Tool, ...]:
    return tools_for([Written(name, F.arguments, F.text)])


def cut(draw: st.DrawFn, text: str) -> list[str]:
    """The text, in pieces that begin anywhere."""
    cuts = draw(st.sets(st.integers(0, len(text)), max_size=12))
    return [text[a:b] for a, b in pairwise(sorted({0, len(text)} | cuts))]


def mixed(draw: st.DrawFn, dialect: Dialect, writer: Writer) -> str:
    """What a confused model writes: pieces of markup and calls, in any order."""
    calls = writer.write([F, F])
    fragments = [*dialect.special_tokens, *writer.damaged, calls, writer.say("x"), "\n", " ", '"']
    cuts = st.tuples(st.integers(0, len(calls)), st.integers(0, len(calls)))
    parts = st.one_of(
        st.sampled_from(fragments), cuts.map(lambda ends: calls[min(ends) : max(ends)]), TEXTS
    )
    return "".join(draw(st.lists(parts, max_size=6)))


def known(result: Read) -> list[tuple[str, object]]:
    return [(name, json.loads(arguments)) for name, arguments in result.calls]


def is_subsequence(part: str, whole: str) -> bool:
    characters = iter(whole)
    return all(character in characters for character in part)


def test_every_registered_dialect_is_tested() -> None:
    assert set(WRITERS) == set(DIALECTS)


@every_dialect
@given(data=st.data())
@examples(60)
def test_calls_are_found_as_written_and_text_around_them_is_content(
    name: str, data: st.DataObject
) -> None:
    writer = WRITERS[name]
    groups = data.draw(st.lists(writer.calls(), min_size=1, max_size=2))
    texts = [data.draw(TEXTS) for _ in range(len(groups) + 1)]
    text = writer.say(texts[0])
    for group, after in zip(groups, texts[1:], strict=True):
        text += writer.write(group) + "\n" + writer.say(after)
    written = [call for group in groups for call in group]
    offered = tools_for(written)
    # Of two calls of the same tool the types may differ, where the schema knows one.
    result = read(DIALECTS[name], cut(data.draw, text), offered)
    assert [call for call, _ in result.calls] == [call.name for call in written]
    assert squeezed(result.content) == squeezed("".join(texts))
    for call, (_, arguments) in zip(written, result.calls, strict=True):
        if writer.keeps_json:
            assert arguments == call.text
        elif len(offered) == len(written):
            assert json.loads(arguments) == call.arguments
            assert list(json.loads(arguments)) == list(call.arguments)
    enforced = read(DIALECTS[name], cut(data.draw, text), offered, enforced=True)
    assert known(enforced) == known(result)
    assert enforced.content == result.content


@every_dialect
@given(data=st.data())
@examples(150)
def test_whatever_it_is_the_borders_of_the_pieces_change_nothing(
    name: str, data: st.DataObject
) -> None:
    dialect = DIALECTS[name]
    text = mixed(data.draw, dialect, WRITERS[name])
    for enforced in (False, True):
        whole = read(dialect, [text], tools(), enforced=enforced)
        assert read(dialect, cut(data.draw, text), tools(), enforced=enforced) == whole
        assert read(dialect, text, tools(), enforced=enforced) == whole


@every_dialect
@given(data=st.data())
@examples(100)
def test_whatever_it_is_nothing_is_lost_and_nothing_invented(
    name: str, data: st.DataObject
) -> None:
    dialect = DIALECTS[name]
    text = mixed(data.draw, dialect, WRITERS[name])
    result = read(dialect, cut(data.draw, text), tools())
    assert is_subsequence(squeezed(result.content), squeezed(text))
    assert all(isinstance(arguments, dict) for _, arguments in known(result))
    assert all(call in text for call, _ in result.calls)
    # The markup of messages is none of calls.
    if not result.calls and not isinstance(dialect, CombinedDialect):
        assert result.content == text


@every_dialect
def test_cut_off_anywhere_a_call_is_whole_or_text(name: str) -> None:
    dialect, writer = DIALECTS[name], WRITERS[name]
    text = "x" + writer.write([F, F]) if writer.say("") == "" else writer.write([F, F])
    for end in range(len(text)):
        result = read(dialect, [text[:end]], tools())
        assert known(result) in ([], [("f", F.arguments)], [("f", F.arguments)] * 2)
        if not result.calls and not isinstance(dialect, CombinedDialect):
            assert result.content == text[:end]


@every_dialect
def test_cut_off_anywhere_a_trusted_call_stays_one_with_what_it_has(name: str) -> None:
    dialect, text = DIALECTS[name], WRITERS[name].write([F, F])
    whole = read(dialect, [text], tools(), enforced=True).calls
    begun = 0
    for end in range(len(text) + 1):
        calls = read(dialect, [text[:end]], tools(), enforced=True).calls
        assert len(calls) >= begun
        begun = len(calls)
        for (call, arguments), (all_of_it, all_arguments) in zip(calls, whole, strict=False):
            assert call == all_of_it
            assert all_arguments.startswith(arguments)
    assert begun == 2


@every_dialect
def test_a_trusted_call_is_handed_out_as_it_is_written(name: str) -> None:
    parts = []
    dialect, text = DIALECTS[name], WRITERS[name].write([F])
    for end in range(len(text)):
        calls = read(dialect, [text[:end]], tools(), enforced=True).calls
        parts += [arguments for _, arguments in calls]
    # First the name alone, and then more than one piece of the arguments.
    assert parts[0] == ""
    assert len(set(parts)) > (2 if name != "gemma" else 0)


@pytest.mark.parametrize(
    ("name", "damaged"),
    [(name, damaged) for name, writer in WRITERS.items() for damaged in writer.damaged],
    ids=lambda value: value[:40],
)
@pytest.mark.parametrize(("before", "after"), [("", ""), ("x\n", " \n"), (" y\n ", "\nz ")])
def test_what_does_not_parse_comes_back_byte_for_byte(
    name: str, damaged: str, before: str, after: str
) -> None:
    text = before + damaged + after
    assert read(DIALECTS[name], [text], tools()) == Read(text, [])
    assert read(DIALECTS[name], text, tools()) == Read(text, [])


@pytest.mark.parametrize(
    ("name", "damaged"),
    [(name, damaged) for name, writer in WRITERS.items() for damaged in writer.damaged[:3]],
    ids=lambda value: value[:40],
)
def test_a_damaged_call_takes_no_other_with_it(name: str, damaged: str) -> None:
    good = WRITERS[name].write([F])
    result = read(DIALECTS[name], good + "\n" + damaged + "\n" + good, tools())
    assert known(result) == [("f", F.arguments)] * 2
    assert squeezed(result.content) == squeezed(damaged)
