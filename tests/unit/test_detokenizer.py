"""Detokenising piece by piece: no character is ever cut, lost or invented."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import decoders, models, processors

from ovchat_server.chat.detokenizer import (
    MAX_TOKENS_A_CHARACTER,
    REPLACEMENT,
    Detokenizer,
    token_offsets,
)
from ovchat_server.tokenizer.huggingface import Tokenizer
from tests.unit.text_tools import (
    CONTROL,
    DATA,
    PieceDecoder,
    byte_pieces,
    byte_tokenizer,
    byte_tokens,
    character_offsets,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

BYTES = byte_tokenizer()
END = BYTES.encode(CONTROL[1])[0]


def run(detokenizer: Detokenizer, tokens: list[int]) -> list[str]:
    return [*(detokenizer.feed(token) for token in tokens), detokenizer.flush()]


@given(byte_pieces())
def test_the_pieces_join_to_the_whole_however_tokens_cut_characters(tokens: list[bytes]) -> None:
    detokenizer = Detokenizer(PieceDecoder(tokens))
    joined = "".join(run(detokenizer, list(range(len(tokens)))))
    assert joined == b"".join(tokens).decode("utf-8", "replace")


@given(DATA)
def test_the_pieces_join_to_what_the_tokenizer_says_of_the_whole(data: bytes) -> None:
    tokens = byte_tokens(BYTES, data)
    assert len(tokens) == len(data)
    assert "".join(run(Detokenizer(BYTES), tokens)) == BYTES.decode(tokens)


@given(st.text(st.sampled_from("aé你😀"), max_size=12))
def test_text_is_handed_out_as_soon_as_a_character_is_whole(text: str) -> None:
    detokenizer = Detokenizer(BYTES)
    came = b""
    shown = ""
    for byte in text.encode():
        came += bytes([byte])
        shown += detokenizer.feed(byte_tokens(BYTES, bytes([byte]))[0])
        assert shown == came.decode("utf-8", "ignore")


@pytest.mark.parametrize("noise", [b"\xff", b"\x80", b"\xf0", b"\xf0\x9f", b"\xe4\xbd"])
def test_bytes_that_are_no_text_never_block(noise: bytes) -> None:
    detokenizer = Detokenizer(BYTES)
    shown = ""
    data = noise * 100
    for count, token in enumerate(byte_tokens(BYTES, data), 1):
        shown += detokenizer.feed(token)
        whole = data[:count].decode("utf-8", "replace")
        assert whole.startswith(shown)
        assert len(whole) - len(shown) < MAX_TOKENS_A_CHARACTER


def test_bytes_that_are_no_text_do_not_make_decoding_ever_slower() -> None:
    longest = 0

    class Watching(PieceDecoder):
        def decode(self, tokens: Sequence[int], *, special_tokens: bool = False) -> str:
            nonlocal longest
            longest = max(longest, len(tokens))
            return super().decode(tokens, special_tokens=special_tokens)

    run(Detokenizer(Watching([b"\xff"])), [0] * 500)
    assert longest < 50


def test_bytes_that_are_no_text_do_not_spoil_the_character_behind_them() -> None:
    for count in range(40):
        tokens = byte_tokens(BYTES, b"\xff" * count + "😀!".encode())
        assert "".join(run(Detokenizer(BYTES), tokens)) == REPLACEMENT * count + "😀!"


def test_control_tokens_are_no_text_and_leave_the_text_around_them_whole() -> None:
    smile = byte_tokens(BYTES, "😀".encode())
    for count in range(6):
        tokens = [*BYTES.encode("a"), *[END] * count, *smile, *[END] * count, *smile]
        assert "".join(run(Detokenizer(BYTES), tokens)) == "a😀😀"


def test_control_tokens_among_bytes_that_are_no_text_lose_nothing() -> None:
    smile = byte_tokens(BYTES, "😀".encode())
    for count in range(30):
        tokens = [*byte_tokens(BYTES, b"\xff" * count), *[END] * 6, *smile]
        assert "".join(run(Detokenizer(BYTES), tokens)) == REPLACEMENT * count + "😀"


def test_control_tokens_are_text_where_asked_for() -> None:
    tokens = [*BYTES.encode("a"), END, *byte_tokens(BYTES, "😀".encode()), END]
    pieces = run(Detokenizer(BYTES, special_tokens=True), tokens)
    assert "".join(pieces) == f"a{CONTROL[1]}😀{CONTROL[1]}"
    assert pieces[1] == CONTROL[1]


def test_a_character_that_never_becomes_whole_comes_at_the_end() -> None:
    detokenizer = Detokenizer(BYTES)
    tokens = byte_tokens(BYTES, "a😀".encode()[:-1])
    assert "".join(detokenizer.feed(token) for token in tokens) == "a"
    assert detokenizer.flush() == REPLACEMENT
    assert detokenizer.flush() == ""


def whole_characters(data: bytes) -> str:
    """The text of bytes, up to a character that their end cuts off."""
    return codecs.getincrementaldecoder("utf-8")("replace").decode(data)


def ended(detokenizer: Detokenizer, tokens: list[int]) -> str:
    return "".join([*(detokenizer.feed(token) for token in tokens), detokenizer.end()])


@given(byte_pieces())
def test_a_character_that_the_end_cuts_off_is_no_text(tokens: list[bytes]) -> None:
    detokenizer = Detokenizer(PieceDecoder(tokens))
    text = ended(detokenizer, list(range(len(tokens))))
    assert text == whole_characters(b"".join(tokens))


@given(DATA)
def test_a_character_of_a_token_a_byte_that_the_end_cuts_off_is_no_text(data: bytes) -> None:
    assert ended(Detokenizer(BYTES), byte_tokens(BYTES, data)) == whole_characters(data)


def test_bytes_of_a_fallback_that_the_end_cuts_off_are_no_text() -> None:
    tokenizer = fallback_tokenizer()
    for length in range(1, 4):
        tokens = [256, *"你".encode(), *"😀".encode()[:length]]
        assert ended(Detokenizer(tokenizer), tokens) == " a你"


def test_the_replacement_character_at_the_end_stays_where_it_was_said() -> None:
    assert ended(Detokenizer(BYTES), BYTES.encode(f"a{REPLACEMENT}")) == f"a{REPLACEMENT}"


def test_the_replacement_character_itself_may_be_said() -> None:
    tokens = BYTES.encode(f"{REPLACEMENT}{REPLACEMENT} a{REPLACEMENT}")
    assert "".join(run(Detokenizer(BYTES), tokens)) == f"{REPLACEMENT}{REPLACEMENT} a{REPLACEMENT}"


def test_spaces_between_words_of_sentencepiece_are_kept() -> None:
    words = {"\u2581the": 0, "\u2581cat": 1, "s": 2, "\u2581": 3}
    inner = tokenizers.Tokenizer(models.BPE(words, []))
    inner.decoder = decoders.Metaspace()
    tokens = [0, 1, 2, 3, 1]
    pieces = run(Detokenizer(Tokenizer(inner)), tokens)
    assert pieces == ["the", " cat", "s", " ", " cat", ""]


def fallback_tokenizer() -> Tokenizer:
    """Llama's: bytes are tokens of their own."""
    words = {f"<0x{byte:02X}>": byte for byte in range(256)} | {"\u2581a": 256}
    inner = tokenizers.Tokenizer(models.BPE(words, [], byte_fallback=True))
    inner.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    return Tokenizer(inner)


def test_bytes_that_a_vocabulary_falls_back_to_become_characters() -> None:
    # Those of 你 and 好 in one run.
    tokens = [256, *"你好😀".encode(), 256]
    pieces = run(Detokenizer(fallback_tokenizer()), tokens)
    assert [piece for piece in pieces if piece] == [" a", "你", "好", "😀", " a"]


@given(st.text(st.sampled_from("aé你😀"), max_size=12))
def test_a_token_begins_where_its_character_does(text: str) -> None:
    expected = [place for place, char in enumerate(text) for _ in char.encode()]
    assert token_offsets(BYTES, BYTES.encode(text), text) == expected


def test_a_token_may_begin_behind_characters_of_one_that_ends_in_the_middle_of_another() -> None:
    decoder = PieceDecoder([b"ab\xc3", b"\xa9", b"c"])
    assert token_offsets(decoder, [0, 1, 2], "abéc") == [0, 2, 3]


@given(byte_pieces())
def test_a_token_begins_in_the_character_of_its_first_byte(pieces: list[bytes]) -> None:
    text = b"".join(pieces).decode(errors="replace")
    offsets = token_offsets(PieceDecoder(pieces), range(len(pieces)), text)
    assert offsets == character_offsets(pieces)


def test_tokens_put_around_a_text_begin_at_its_ends() -> None:
    inner = tokenizers.Tokenizer(models.WordLevel({"<s>": 0, "a": 1, "</s>": 2}, unk_token="<s>"))
    inner.add_special_tokens(["<s>", "</s>"])
    inner.decoder = decoders.Fuse()
    inner.post_processor = processors.TemplateProcessing(
        "<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer = Tokenizer(inner)
    tokens = tokenizer.encode("a", special_tokens=True)
    assert tokens == [0, 1, 2]
    assert token_offsets(tokenizer, tokens, "a") == [0, 0, 1]
    # As text that is returned they are part of it.
    whole = tokenizer.decode(tokens, special_tokens=True)
    assert token_offsets(tokenizer, tokens, whole) == [0, 3, 4]
