"""Texts are cut into words as the models' own tokenizers cut them.

On 10,000 lines of code, prose, digits, emoji and CJK the tokens of `smollm`, `llama-bpe`, `qwen2`,
`gpt-2` and `tekken` are llama.cpp's, but for Unicode's NFC, which it leaves out for `qwen2`.
"""

from __future__ import annotations

import pytest

from ovchat_server.conversion.pre_tokenizers import PRE_TOKENIZERS

TEXT = "I'LL pay 12345 ab12 x=y;\n\n  ok  "


def words(name: str, text: str) -> list[str]:
    rules = PRE_TOKENIZERS[name]
    if normalizer := rules.normalizer():
        text = normalizer.normalize_str(text)
    cut = rules.pre_tokenizer().pre_tokenize_str(text)
    return [text[start:end] for _, (start, end) in cut]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gpt-2", "I|'|LL| pay| 12345| ab|12| x|=|y|;|\n\n | ok|  "),
        ("smollm", "I|'|LL| pay| |1|2|3|4|5| ab|1|2| x|=|y|;|\n\n | ok|  "),
        ("qwen2", "I|'LL| pay| |1|2|3|4|5| ab|1|2| x|=y|;\n\n| | ok|  "),
        ("llama-bpe", "I|'LL| pay| |123|45| ab|12| x|=y|;\n\n| | ok|  "),
        ("tekken", "I|'LL| pay| |1|2|3|4|5| ab|1|2| x|=y|;\n\n| | ok|  "),
    ],
)
def test_words(name: str, expected: str) -> None:
    assert "|".join(words(name, TEXT)) == expected


def test_letters_and_their_marks() -> None:
    composed, apart = "caf\u00e9", "cafe\u0301"

    assert words("qwen2", apart) == [composed]
    assert words("llama-bpe", apart) == ["cafe", "\u0301"]
    assert words("tekken", apart) == [apart]
    assert words("tekken", "camelCase HTTPServer") == ["camel", "Case", " HTTPServer"]
