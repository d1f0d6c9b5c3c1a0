"""The work for an answer grows with its length, whatever is in it: all text is looked at once."""

from __future__ import annotations

import pytest

from ovchat_server.chat.dialects.source import Source
from tests.effort import scaled
from tests.unit.dialects.reading import read, squeezed
from tests.unit.dialects.test_reasoning import DIALECTS as REASONING
from tests.unit.dialects.test_reasoning import MARKS
from tests.unit.dialects.test_reasoning import run as run_reasoning
from tests.unit.dialects.test_tool_dialects import DIALECTS, F, tools
from tests.unit.dialects.writers import WRITERS

SIZE = scaled(1 << 18)
# Longer than any tag.
MOST_UNREAD = 64


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How much of the text was looked at before, each time more of it came."""
    lengths: list[int] = [0]
    push = Source.push

    def watched(source: Source, text: str) -> None:
        lengths[0] = max(lengths[0], len(source.text) - source.at)
        push(source, text)

    monkeypatch.setattr(Source, "push", watched)
    return lengths


def pieces(text: str, length: int) -> list[str]:
    return [text[at : at + length] for at in range(0, len(text), length)]


def hostile(name: str) -> dict[str, str]:
    """Beginnings that never end, and what is repeated without an end."""
    call = WRITERS[name].write([F])
    tag = next(iter(DIALECTS[name].special_tokens), call[:8])
    argument = call.index('"x"') if '"x"' in call else call.index("x")
    repeated = {
        "tags": tag,
        "openings": call[: len(call) // 2],
        "half tags": tag[: len(tag) // 2],
        "calls": call + "\n",
        "lines": "\n",
        "spaces": " ",
    }
    texts = {key: value * (SIZE // len(value)) for key, value in repeated.items()}
    for key, value in {"brackets": '["', "list": "1, ", "string": "y", "escapes": "\\n"}.items():
        texts[key] = call[:argument] + value * (SIZE // len(value))
    texts["a long string in a call"] = call[: argument + 1] + "y" * SIZE + call[argument + 1 :]
    return texts


CASES = [(name, key) for name in sorted(WRITERS) for key in hostile(name)]


@pytest.mark.parametrize(("name", "key"), CASES)
def test_text_is_looked_at_once(name: str, key: str, unread: list[int]) -> None:
    text = hostile(name)[key]
    result = read(DIALECTS[name], pieces(text, 4096), tools())
    assert unread[0] <= MOST_UNREAD
    if not result.calls and name != "gpt_oss":
        assert result.content == text


@pytest.mark.parametrize("name", sorted(WRITERS))
def test_so_it_is_token_by_token(name: str, unread: list[int]) -> None:
    for text in hostile(name).values():
        short = text[: SIZE // 64]
        assert squeezed(read(DIALECTS[name], pieces(short, 3), tools()).content) in squeezed(short)
    assert unread[0] <= MOST_UNREAD


@pytest.mark.parametrize("name", sorted(REASONING))
@pytest.mark.parametrize("filling", ["y", " ", "<", "\n", "<think>", "</thin"])
def test_so_is_reasoning(name: str, filling: str, unread: list[int]) -> None:
    text = MARKS[name][0] + filling * (SIZE // len(filling))
    run_reasoning(REASONING[name], pieces(text, 4096))
    assert unread[0] <= MOST_UNREAD
