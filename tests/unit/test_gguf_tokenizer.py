"""Tokenizer, template and end tokens of a GGUF file, as a folder has them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from ovchat_server.chat.template import load_chat_template
from ovchat_server.conversion.gguf_file import GgufFile
from ovchat_server.conversion.tokenizer_files import TokenizerFiles
from ovchat_server.tokenizer.huggingface import Tokenizer
from tests.gguf_files import DEMO, write_gguf

if TYPE_CHECKING:
    from pathlib import Path

END_OF_TEXT, START, END, THINK = 1527, 1528, 1529, 1530


def folder(tmp_path: Path, **fields: Any) -> Path:
    """What a file with these fields becomes; "__" in a name is "." in the file."""
    keys = {name.replace("__", "."): value for name, value in fields.items()}
    file = write_gguf(tmp_path / "x.gguf", fields=keys, tensors={})
    TokenizerFiles(GgufFile(file)).write(tmp_path)
    return tmp_path


def test_tokens_are_those_of_the_vocabulary(tmp_path: Path) -> None:
    tokenizer = Tokenizer.load(folder(tmp_path))
    demo = Tokenizer.load(DEMO)

    assert tokenizer.vocabulary_size == demo.vocabulary_size
    assert tokenizer.control_tokens == demo.control_tokens
    assert tokenizer.markup_tokens == demo.markup_tokens
    for token in range(demo.vocabulary_size):
        assert tokenizer.token_bytes(token) == demo.token_bytes(token)
    text = "<|im_start|>user\nHello, wörld 😀<|im_end|>"
    assert tokenizer.decode(tokenizer.encode(text), special_tokens=True) == text
    assert tokenizer.encode(text)[0] == START


@pytest.mark.parametrize(
    ("fields", "added"),
    [
        ({}, False),
        ({"tokenizer__ggml__add_bos_token": True}, True),
        ({"tokenizer__ggml__pre": "llama-bpe"}, True),
        ({"tokenizer__ggml__pre": "llama-bpe", "tokenizer__ggml__add_bos_token": False}, False),
    ],
)
def test_a_text_begins_with_bos_where_the_file_or_its_kind_says_so(
    tmp_path: Path, fields: dict[str, Any], *, added: bool
) -> None:
    place = folder(tmp_path, tokenizer__ggml__bos_token_id=START, **fields)
    tokenizer = Tokenizer.load(place)

    plain = tokenizer.encode("Hello")
    assert tokenizer.encode("Hello", special_tokens=True) == [START] * added + plain


def test_templates_are_those_of_the_file(tmp_path: Path) -> None:
    place = folder(
        tmp_path,
        tokenizer__chat_template="plain {{ bos_token }}",
        tokenizer__chat_templates=["tool_use"],
        tokenizer__chat_template__tool_use="with tools",
        tokenizer__ggml__bos_token_id=START,
    )

    template = load_chat_template(place)

    assert template.render([]) == "plain <|im_start|>"
    assert "with tools" in template.source


def test_answers_end_with_every_end_token(tmp_path: Path) -> None:
    place = folder(
        tmp_path,
        tokenizer__ggml__eot_token_id=THINK,
        general__sampling__temp=0.6,
        general__sampling__top_k=20,
    )

    config = json.loads((place / "generation_config.json").read_bytes())

    ends = [END_OF_TEXT, END, THINK]
    assert config == {"eos_token_id": ends, "temperature": pytest.approx(0.6), "top_k": 20}
