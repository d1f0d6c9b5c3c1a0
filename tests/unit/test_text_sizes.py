"""Texts that are too long are refused by their field, and none of them is tokenized."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ovchat_server.domain.embedding_request import read_embedding_request
from ovchat_server.domain.errors import InvalidRequestError
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.text_request import read_text_request
from ovchat_server.serving.embeddings import _tokenize
from ovchat_server.serving.pair_scorers import BiEncoder, CrossEncoder, PairBounds, Pairs
from ovchat_server.serving.pairs import CrossEncoderPairs
from ovchat_server.serving.pooling_files import read_pooling_files
from ovchat_server.serving.render import render_texts
from ovchat_server.serving.scores import sigmoid
from ovchat_server.tokenizer.huggingface import Tokenizer
from ovchat_server.tokenizer.long_texts import MAX_UNCUT
from tests.conftest import ROOT
from tests.unit.serving_tools import served

if TYPE_CHECKING:
    from collections.abc import Callable

LONG = "words " * 300_000
SPACES = " " * (MAX_UNCUT + 1)
FILES = read_pooling_files(ROOT / "tests/data/pooling/qwen3-embedding")
SCORERS = {"cross": CrossEncoder(CrossEncoderPairs(), sigmoid), "bi": BiEncoder()}


@pytest.fixture
def tokenized(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of the texts that are tokenized."""
    lengths: list[int] = []
    whole = Tokenizer._ids

    def ids(self: Tokenizer, texts: list[str]) -> list[list[int]]:
        lengths.extend(map(len, texts))
        return whole(self, texts)

    monkeypatch.setattr(Tokenizer, "_ids", ids)
    return lengths


def refused(ask: Callable[[], object]) -> str | None:
    with pytest.raises(InvalidRequestError, match="is too long") as caught:
        ask()
    assert caught.value.code == "context_length_exceeded"
    return caught.value.param


def texts(**fields: Any) -> list[tuple[int, ...]]:
    request = read_text_request({"model": "demo", **fields})
    return [prompt.tokens for prompt in render_texts(served(), request)]


def embedded(prompt: str = "", **fields: Any) -> list[list[int]]:
    request = read_embedding_request({"model": "m", **fields})
    model: Any = SimpleNamespace(files=FILES)
    return [
        np.frombuffer(text.tokens, "<i4").tolist() for text in _tokenize(model, request, prompt)
    ]


def paired(scorer: str, first: str, *seconds: str, most: int | None = None) -> None:
    fields = [FieldPath.of("documents", index) for index in range(len(seconds))]
    pairs = Pairs(first, seconds, fields, FieldPath.of("query"))
    SCORERS[scorer].tokenize(FILES, pairs, PairBounds(most))


@pytest.mark.parametrize("side", ["left", "right"])
def test_of_a_prompt_to_be_truncated_a_part_is_tokenized(tokenized: list[int], side: str) -> None:
    fields: dict[str, Any] = {"truncate_prompt_tokens": 9, "truncation_side": side}
    [cut] = texts(prompt=LONG, **fields)
    assert max(tokenized) < 10_000
    assert [cut] == texts(prompt=LONG[:600], **fields)


@pytest.mark.parametrize(
    "ask",
    [
        partial(texts, prompt=["Hi", SPACES], truncate_prompt_tokens=9),
        partial(texts, prompt=["Hi", LONG]),
        partial(embedded, input=["Hi", SPACES], truncate_prompt_tokens=9),
        partial(embedded, input=["Hi", LONG]),
        partial(paired, "cross", "Hi", "Hi", LONG),
        partial(paired, "bi", "Hi", "Hi", LONG),
        partial(paired, "cross", "Hi", "Hi", SPACES, most=9),
        partial(paired, "bi", "Hi", "Hi", SPACES, most=9),
        partial(paired, "cross", LONG, "Hi"),
        partial(paired, "bi", LONG, "Hi"),
    ],
)
def test_what_is_surely_too_long_is_refused_and_never_tokenized(
    tokenized: list[int], ask: Callable[[], object]
) -> None:
    field = refused(ask)
    assert field in {"prompt[1]", "input[1]", "documents[1]", "query"}
    assert max(tokenized, default=0) < 10_000


@pytest.mark.parametrize("keep", [6, 9, 60])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("length", [3, 50, 3000])
def test_the_prompt_of_an_embedding_stays_whichever_side_is_cut(
    side: str, keep: int, length: int
) -> None:
    text = "words and more of them. " * 200
    [cut] = embedded("q: ", input=text[:length], truncate_prompt_tokens=keep, truncation_side=side)
    tokenizer = FILES.tokenizer
    whole, asked = tokenizer.encode("q: " + text[:length]), len(tokenizer.encode("q: "))
    room = keep - tokenizer.frame.count
    if len(whole) > room:
        tail = whole[asked:][asked - room :] if side == "left" else whole[asked:room]
        whole = [*whole[:asked], *tail]
    assert cut == [*tokenizer.frame.before, *whole, *tokenizer.frame.behind]
