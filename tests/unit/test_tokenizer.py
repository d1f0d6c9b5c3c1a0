"""Tokens and the bytes they stand for, with each way of writing them that tokenizers have."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import (
    AddedToken,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)

from ovchat_server.tokenizer.huggingface import FEW_TOKENS, Tokenizer, TokenizerError
from ovchat_server.tokenizer.token_bytes import TokenBytes
from tests.conftest import ROOT
from tests.unit.text_tools import byte_tokenizer, mixed

if TYPE_CHECKING:
    from pathlib import Path

SPACE = "\N{LOWER ONE EIGHTH BLOCK}"
CONTROL = ["<s>", "</s>"]
PIECES = ["a", "b", "é", "你", SPACE, f"{SPACE}a", SPACE * 2, "ab"]
FALLBACK = [f"<0x{byte:02X}>" for byte in range(256)]


def finished(inner: tokenizers.Tokenizer) -> Tokenizer:
    inner.add_special_tokens([AddedToken(text, special=True) for text in CONTROL])
    inner.post_processor = processors.TemplateProcessing(
        "<s> $A </s>", None, [(text, inner.token_to_id(text)) for text in CONTROL]
    )
    return Tokenizer(inner, pad_token="</s>")


def llama() -> Tokenizer:
    """As Llama 2 and Mistral: BPE, spaces written by the normaliser."""
    vocabulary = {text: number for number, text in enumerate(["<unk>", *FALLBACK, *PIECES])}
    merges = [(SPACE, "a"), (SPACE, SPACE), ("a", "b")]
    inner = tokenizers.Tokenizer(
        models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    )
    inner.normalizer = normalizers.Sequence(
        [normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)]
    )
    inner.decoder = decoders.Sequence(
        [
            decoders.Replace(SPACE, " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    return finished(inner)


def metaspace() -> Tokenizer:
    """As SentencePiece's unigram models: spaces written by the pre-tokenizer."""
    scores = [(text, -10.0 + len(text)) for text in PIECES]
    inner = tokenizers.Tokenizer(
        models.Unigram(
            [("<unk>", 0.0), *[(text, -20.0) for text in FALLBACK], *scores],
            unk_id=0,
            byte_fallback=True,
        )
    )
    inner.pre_tokenizer = pre_tokenizers.Metaspace(SPACE, prepend_scheme="first")
    inner.decoder = decoders.Sequence(
        [decoders.ByteFallback(), decoders.Metaspace(SPACE, prepend_scheme="first")]
    )
    return finished(inner)


DEMO = Tokenizer.load(ROOT / "models/demo")
BYTE_LEVEL = byte_tokenizer()
LLAMA, METASPACE = llama(), metaspace()
WITH_PREFIX = [LLAMA, METASPACE]

DEMO_TEXTS = mixed("Hello there", "<|im_end|>", "<think>", "é", "\n\n", "你好", "😀", "\x00")
# The sign for a space is a space to these tokenizers.
PLAIN_TEXTS = st.one_of(mixed("ab", " a", "  ", "é", "你", "😀"), st.text()).map(
    lambda text: text.replace(SPACE, "_")
)


# What a decoder may be made of.
NESTED = [
    {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]},
    {"type": "Metaspace", "replacement": "▁"},
]


def joined(tokenizer: Tokenizer, text: str) -> bytes:
    return b"".join(map(tokenizer.token_bytes, tokenizer.encode(text)))


@given(DEMO_TEXTS)
@pytest.mark.parametrize("tokenizer", [DEMO, BYTE_LEVEL], ids=["demo", "byte-level"])
def test_the_bytes_of_its_tokens_are_the_text(tokenizer: Tokenizer, text: str) -> None:
    assert joined(tokenizer, text) == text.encode()


@given(PLAIN_TEXTS)
@pytest.mark.parametrize("tokenizer", WITH_PREFIX, ids=["llama", "metaspace"])
def test_the_bytes_of_its_tokens_are_the_text_behind_a_space(
    tokenizer: Tokenizer, text: str
) -> None:
    assert joined(tokenizer, text) in {b" " + text.encode(), text.encode()}


@given(st.lists(st.integers(0, DEMO.vocabulary_size - 1), max_size=12))
def test_bytes_and_decoding_agree(tokens: list[int]) -> None:
    data = b"".join(map(DEMO.token_bytes, tokens))
    assert data.decode("utf-8", "replace") == DEMO.decode(tokens, special_tokens=True)


@given(st.lists(st.integers(1, LLAMA.vocabulary_size - 1), max_size=12))
def test_bytes_and_decoding_agree_on_all_text_of_a_byte_fallback(tokens: list[int]) -> None:
    data = b"".join(map(LLAMA.token_bytes, tokens))
    try:
        text = data.decode()
    except UnicodeDecodeError:
        # There is no text to compare: decoding counts replacements in its own way.
        return
    assert text.removeprefix(" ") == LLAMA.decode(tokens, special_tokens=True)


@pytest.mark.parametrize(
    ("tokenizer", "text", "expected"),
    [
        (BYTE_LEVEL, "é", [b"\xc3", b"\xa9"]),
        (BYTE_LEVEL, " \n", [b" ", b"\n"]),
        (BYTE_LEVEL, "<think>", [b"<think>"]),
        (LLAMA, "a é", [b" a", b" ", "é".encode()]),
        (LLAMA, "b\n", [b" ", b"b", b"\n"]),
        (METASPACE, "a😀", [b" a", b"\xf0", b"\x9f", b"\x98", b"\x80"]),
    ],
)
def test_a_token_may_be_a_part_of_a_character(
    tokenizer: Tokenizer, text: str, expected: list[bytes]
) -> None:
    assert [tokenizer.token_bytes(token) for token in tokenizer.encode(text)] == expected


def test_an_added_token_is_its_text_even_in_letters_of_the_alphabet() -> None:
    inner = tokenizers.Tokenizer.from_str(BYTE_LEVEL._tokenizer.to_str())
    inner.add_tokens(["é!"])
    tokenizer = Tokenizer(inner)
    assert joined(tokenizer, "é!") == "é!".encode()
    assert tokenizer.encode("é!") == [tokenizer.vocabulary_size - 1]


def test_an_added_token_that_the_model_writes_is_read_as_the_models() -> None:
    inner = tokenizers.Tokenizer.from_str(LLAMA._tokenizer.to_str())
    inner.add_tokens([SPACE * 2])
    tokenizer = Tokenizer(inner)
    assert joined(tokenizer, "a   b") == b" a   b"
    assert tokenizer.token(SPACE * 2) in tokenizer.encode("a   b")


@pytest.mark.parametrize(
    ("decoder", "token", "expected"),
    [
        (None, "▁é", "▁é".encode()),
        ({"type": "WordPiece", "prefix": "##", "cleanup": True}, "##a", b"##a"),
        ({"type": "ByteFallback"}, "<0xE2>", b"\xe2"),
        ({"type": "ByteFallback"}, "<0xe2>", b"\xe2"),
        ({"type": "ByteFallback"}, "<0xE2>>", b"<0xE2>>"),
        ({"type": "Fuse"}, "<0xE2>", b"<0xE2>"),
        ({"type": "ByteLevel"}, "Ġa", b" a"),
        # A letter that is no byte: the token is text, as the library has it.
        ({"type": "ByteLevel"}, "Ġ你", "Ġ你".encode()),
        ({"type": "Replace", "pattern": {"String": "_"}, "content": " "}, "_a_", b" a "),
        ({"type": "Replace", "pattern": {"Regex": "_"}, "content": " "}, "_a", b"_a"),
        ({"type": "Metaspace", "replacement": "_", "prepend_scheme": "always"}, "_a", b" a"),
        ({"type": "Sequence", "decoders": NESTED}, "▁a", b" a"),
        ({"type": "Sequence", "decoders": NESTED}, "<0xE2>", b"\xe2"),
    ],
)
def test_a_decoders_description_says_how_tokens_are_written(
    decoder: dict[str, Any] | None, token: str, expected: bytes
) -> None:
    assert TokenBytes.of(decoder)(token) == expected


@pytest.mark.parametrize("token", [DEMO.vocabulary_size, 10**6])
def test_an_id_without_a_token_has_no_text_and_no_bytes(token: int) -> None:
    assert (DEMO.token_text(token), DEMO.token_bytes(token), DEMO.decode([token])) == ("", b"", "")


def test_the_vocabulary_ends_after_its_highest_id() -> None:
    assert DEMO.vocabulary_size == 1536
    assert DEMO.token_text(1535) == "</tool_response>"
    gaps = Tokenizer(tokenizers.Tokenizer(models.WordLevel({"a": 0, "b": 7}, "a")))
    assert gaps.vocabulary_size == 8


def test_a_token_is_written_as_in_the_vocabulary() -> None:
    assert [DEMO.token_text(token) for token in DEMO.encode("a é")] == ["a", "Ġ", "Ã©"]
    assert [LLAMA.token_text(token) for token in LLAMA.encode("a\n")] == [f"{SPACE}a", "<0x0A>"]


@given(PLAIN_TEXTS)
def test_special_tokens_are_added_where_asked_for(text: str) -> None:
    plain = LLAMA.encode(text)
    start, end = (LLAMA.token(token) for token in CONTROL)
    assert LLAMA.encode(text, special_tokens=True) == [start, *plain, end]
    assert LLAMA._tokenizer.encode(text).ids == [start, *plain, end]


@given(PLAIN_TEXTS, st.integers(1, 12))
def test_most_tokens_cut_the_end_off_and_keep_the_special_ones(text: str, most: int) -> None:
    whole, special = LLAMA.encode(text), LLAMA.encode(text, special_tokens=True)
    assert LLAMA.encode(text, most_tokens=most) == whole[:most]
    cut = LLAMA.encode(text, special_tokens=True, most_tokens=most)
    assert len(cut) == min(most, len(special))
    if most >= 2:
        assert cut == [special[0], *whole[: most - 2], special[-1]]


def test_control_tokens_show_where_asked_for() -> None:
    tokens = DEMO.encode("<|im_start|>user<think>")
    assert DEMO.decode(tokens) == "user<think>"
    assert DEMO.decode(tokens, special_tokens=True) == "<|im_start|>user<think>"


@pytest.mark.parametrize("special", [False, True])
def test_many_tokens_decode_as_few_do(special: bool) -> None:  # noqa: FBT001
    tokens = DEMO.encode("<|im_start|>é ")
    many = FEW_TOKENS // len(tokens) + 1
    text = DEMO.decode(tokens, special_tokens=special)
    assert DEMO.decode(tokens * many, special_tokens=special) == text * many


@pytest.mark.parametrize(
    ("config", "pad_token"),
    [
        ({"pad_token": "<|endoftext|>"}, 256),
        ({"pad_token": {"content": "<|im_end|>", "lstrip": False}}, 258),
        ({"pad_token": "<|unheard of|>"}, None),
        ({"pad_token": None}, None),
        ({}, None),
        ([], None),
        (None, None),
    ],
)
def test_the_padding_token_is_the_configured_one(
    tmp_path: Path, config: Any, pad_token: int | None
) -> None:
    (tmp_path / "tokenizer.json").write_bytes(
        (ROOT / "models/successor/tokenizer.json").read_bytes()
    )
    if config is not None:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    assert Tokenizer.load(tmp_path).pad_token == pad_token


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "tokenizer.json").write_bytes(
        (ROOT / "models/successor/tokenizer.json").read_bytes()
    )
    (tmp_path / name).write_text("{")
    with pytest.raises(TokenizerError, match=name):
        Tokenizer.load(tmp_path)
