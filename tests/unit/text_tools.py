"""What tests of text share: a byte-level tokenizer of the size of a test, and chunkings."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import tokenizers
from hypothesis import strategies as st
from tokenizers import decoders, models, pre_tokenizers

from ovchat_server.tokenizer.huggingface import Tokenizer

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

CONTROL = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")
MARKUP = ("<think>", "</think>", "<tool_call>", "</tool_call>")


def byte_tokenizer() -> Tokenizer:
    """A token a byte, Qwen's control tokens, and its markup as tokens of their own."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    inner = tokenizers.Tokenizer(models.BPE({char: i for i, char in enumerate(alphabet)}, []))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens([tokenizers.AddedToken(text, special=True) for text in CONTROL])
    inner.add_tokens([tokenizers.AddedToken(text, special=False) for text in MARKUP])
    return Tokenizer(inner)


class PieceDecoder:
    """Tokens that stand for any bytes: also halves of characters, or several and a half."""

    def __init__(self, pieces: Sequence[bytes], special: Collection[int] = ()) -> None:
        self._pieces = tuple(pieces)
        self._special = frozenset(special)

    def decode(self, tokens: Sequence[int], *, special_tokens: bool = False) -> str:
        shown = (t for t in tokens if special_tokens or t not in self._special)
        return b"".join(self._pieces[token] for token in shown).decode("utf-8", "replace")

    def token_bytes(self, token: int) -> bytes:
        return self._pieces[token]


@st.composite
def chunked(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> list[str]:
    """A text, cut into pieces anywhere."""
    text = draw(texts)
    cuts = draw(st.sets(st.integers(0, len(text)), max_size=12))
    return [text[a:b] for a, b in pairwise(sorted({0, len(text)} | cuts))]


# Whole characters of every length, what is not UTF-8, and what looks like its beginning.
_FRAGMENTS = st.sampled_from(
    [b"a", b" \xc3\xa9", "你".encode(), "😀".encode(), b"\xff", b"\x80", b"\xf0\x9f", b"\xe4"]
)
DATA = st.one_of(st.lists(_FRAGMENTS, max_size=16).map(b"".join), st.binary(max_size=40))


@st.composite
def byte_pieces(draw: st.DrawFn) -> list[bytes]:
    """Any bytes, cut into tokens anywhere."""
    data = draw(DATA)
    cuts = draw(st.sets(st.integers(0, len(data))))
    return [data[a:b] for a, b in pairwise(sorted({0, len(data)} | cuts))]


def character_offsets(pieces: Sequence[bytes]) -> list[int]:
    """Where each of some tokens begins in their text, whose other bytes are replaced."""
    data = b"".join(pieces)
    starts = [*accumulate(map(len, pieces), initial=0)][:-1]
    return [len(data[: start + 1].decode(errors="replace")) - 1 for start in starts]


def mixed(*fragments: str) -> st.SearchStrategy[str]:
    """Texts that the given fragments, whole or nearly so, and a little else make up."""
    parts = st.sampled_from([*fragments, *(part[:-1] for part in fragments if part)])
    return st.lists(st.one_of(parts, st.text(max_size=2)), max_size=8).map("".join)


def byte_characters() -> dict[int, str]:
    """GPT-2's names of the bytes: a printable byte is its own, others follow from 256."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = [byte for byte in range(256) if byte not in printable]
    names = {byte: chr(byte) for byte in printable}
    return names | {byte: chr(256 + n) for n, byte in enumerate(others)}


def byte_tokens(tokenizer: Tokenizer, data: bytes) -> list[int]:
    """The tokens of bytes that need not be text."""
    names = byte_characters()
    tokens = [tokenizer.token(names[byte]) for byte in data]
    return [token for token in tokens if token is not None]
