"""Texts that are not tokenized whole: which surely are too long, and where others may be cut."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, models, normalizers, pre_tokenizers

from ovchat_server.tokenizer import huggingface, long_texts
from ovchat_server.tokenizer.huggingface import Tokenizer
from ovchat_server.tokenizer.long_texts import MAX_LOST, MAX_UNCUT, LongTextError, LongTexts
from tests.conftest import ROOT
from tests.unit.test_tokenizer import BYTE_LEVEL, LLAMA, METASPACE

FOLDERS = [
    *["models/demo", "models/demo-vision", "models/successor", "tests/data/qwen2-vl"],
    *[f"tests/data/pooling/{name}" for name in ("bert", "xlm-r", "qwen3-embedding")],
]
SYNTHETIC = {"byte-level": BYTE_LEVEL, "llama": LLAMA, "metaspace": METASPACE}
NAMES = [*FOLDERS, *SYNTHETIC]
# Tokenizers that lose characters: of spaces, of words that they do not know.
LOSSY = {"tests/data/pooling/bert", "tests/data/pooling/xlm-r"}

# What pre-tokenizers and normalizers take together, and tokens that texts may hold.
PIECES = [
    *["the", " ", "  ", " " * 40, "\n", "\r\n", "\t", " \n \n", "Hello there", "ab", "a" * 50],
    *[
        "你好",
        "。",
        "é",
        "e\u0301",
        "😀",
        "12345",
        "don't",
        ", ",
        '": "',
        "{",
        "<|im_end|>",
        "<mask>",
    ],
    *["½", "ﬁ", "\u200b", "-", "_", "Ġ", "▁", "ß and", " über dem"],
]


@cache
def tokenizer(name: str) -> Tokenizer:
    return SYNTHETIC.get(name) or Tokenizer.load(Path(ROOT / name))


def a_text(seed: int) -> str:
    """A long one, of words and of everything else."""
    chosen = random.Random(seed)
    weights = [chosen.random() ** 3 for _ in PIECES]
    return "".join(
        piece + chosen.choice(["", " ", " word "])
        for piece in chosen.choices(PIECES, weights, k=1500)
    )


@given(st.integers(0, 1 << 30), st.integers(0, 900), st.booleans(), st.booleans())
@pytest.mark.parametrize("name", NAMES)
def test_the_tokens_of_a_part_are_those_of_the_whole_text(
    name: str,
    seed: int,
    most: int,
    left: bool,  # noqa: FBT001
    special: bool,  # noqa: FBT001
) -> None:
    subject, text = tokenizer(name), a_text(seed)
    [whole] = subject.encode_batch([text], special_tokens=special)
    [part] = subject.encode_batch([text], special_tokens=special, most_tokens=most, cut_left=left)
    frame = subject.frame if special else huggingface.NO_FRAME
    inner = whole[len(frame.before) : len(whole) - len(frame.behind)]
    room = max(most - frame.count, 0)
    kept = inner[max(len(inner) - room, 0) :] if left else inner[:room]
    assert part == [*frame.before, *kept, *frame.behind][:most]


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("name", sorted({*NAMES} - {"llama"}))
def test_a_long_text_is_cut_before_it_is_tokenized(name: str, left: bool) -> None:  # noqa: FBT001
    text = "words and more words " * 200_000
    part = LongTexts(tokenizer(name)._tokenizer, tokenizer(name)._tokenizer.to_str()).part(
        text, 5000, cut_left=left
    )
    assert 5000 <= len(part) < 10_000
    assert text.endswith(part) if left else text.startswith(part)


def test_what_cannot_be_cut_is_not_tokenized_if_it_is_long() -> None:
    demo, spaces = tokenizer("models/demo"), " " * (MAX_UNCUT + 1)
    with pytest.raises(LongTextError) as refused:
        demo.encode_batch(["short", spaces], most_tokens=10)
    assert (refused.value.index, refused.value.characters) == (1, len(spaces))
    assert demo.encode(" " * 9000, most_tokens=10) == demo.encode(" " * 10)


def test_a_tokenizer_with_tokens_of_two_words_is_never_cut_between_words() -> None:
    inner = tokenizers.Tokenizer.from_str(tokenizer("models/successor")._tokenizer.to_str())
    inner.add_tokens([AddedToken("and more")])
    text = "words and more words " * 2000
    assert LongTexts(inner, inner.to_str()).part(text, 5000, cut_left=False) == text


@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map("".join)))
@pytest.mark.parametrize("name", NAMES)
def test_a_text_has_no_fewer_tokens_than_is_said(name: str, text: str) -> None:
    # As if no tokenizer lost as much as a MiB.
    assert tokenizer(name).fewest_tokens(text) <= len(tokenizer(name).encode(text))


@pytest.mark.parametrize("name", NAMES)
def test_what_a_tokenizer_may_lose_does_not_count(name: str) -> None:
    spaces = " " * 10_000
    assert (tokenizer(name).fewest_tokens(spaces) > 0) == (name not in LOSSY)
    # But no text loses more than that, or is refused.
    assert tokenizer(name).fewest_tokens(" " * (MAX_LOST + 10_000)) > 0


@pytest.mark.parametrize(
    "change",
    [
        lambda inner: inner.add_tokens([AddedToken("<fill>", lstrip=True)]),
        lambda inner: setattr(inner, "normalizer", normalizers.Strip()),
        lambda inner: setattr(inner, "normalizer", normalizers.Replace("  ", "")),
        lambda inner: setattr(inner, "pre_tokenizer", pre_tokenizers.WhitespaceSplit()),
        lambda inner: setattr(inner, "model", models.BPE({"a": 0}, [], unk_token="a")),
    ],
)
def test_each_way_of_losing_text_is_known(change: object) -> None:
    inner = tokenizers.Tokenizer.from_str(tokenizer("models/demo")._tokenizer.to_str())
    assert callable(change)
    change(inner)
    assert Tokenizer(inner).fewest_tokens(" " * 100_000) == 0


def test_composed_characters_count_once() -> None:
    inner = tokenizers.Tokenizer.from_str(tokenizer("models/successor")._tokenizer.to_str())
    inner.normalizer = normalizers.NFC()
    text, plain = "e\u0301" * 3000, Tokenizer(inner)
    assert plain.fewest_tokens(text) < tokenizer("models/successor").fewest_tokens(text)
    assert plain.fewest_tokens(text) <= len(plain.encode(text))


@given(st.lists(st.integers(0, 5)))
def test_batches_are_small_or_one_text(sizes: list[int]) -> None:
    texts = ["a" * (size * long_texts.BATCH // 4) for size in sizes]
    found = [*long_texts.batches(texts)]
    assert [text for batch in found for text in batch] == texts
    for batch in found:
        assert len(batch) == 1 or sum(map(len, batch)) <= long_texts.BATCH


def test_the_memory_of_long_texts_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    returned: list[None] = []
    monkeypatch.setattr(huggingface, "return_freed_memory", lambda: returned.append(None))
    tokenizer("models/demo").encode("a" * huggingface.MANY_CHARACTERS)
    assert not returned
    tokenizer("models/demo").encode("a" * (huggingface.MANY_CHARACTERS + 1))
    assert returned
