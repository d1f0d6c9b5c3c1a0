"""Vectors and scores of models as their exporters write them: sentence-transformers' own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tokenizers import Tokenizer

from ovchat_server.engine.contract.pooling_engine import TokenizedText
from ovchat_server.engine.pooling.model import PoolingModel
from tests import pooling
from tests.conftest import ROOT
from tests.data.pooling.texts import INSTRUCTION, RERANK_PREFIX, RERANK_SUFFIX
from tests.engine.test_pooling_engine import Watched, running

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FOLDER = ROOT / "tests/data/pooling"
MINILM = ROOT / ".cache/models/minilm"
# Numbers of f32, added up in another order.
CLOSE = 1e-4


class Model:
    """A model's folder: its tokenizer, and what is expected of it."""

    def __init__(self, name: str) -> None:
        self.folder = FOLDER / name
        self.expected: dict[str, Any] = json.loads((self.folder / "expected.json").read_text())
        self._tokenizer = tokenizer_of(self.folder)
        config = json.loads((self.folder / "config.json").read_text())
        self.pad_token: int = config["pad_token_id"]

    def tokens(self, text: str) -> TokenizedText:
        return TokenizedText.of(self._tokenizer.encode(text).ids)

    def pair(self, document: str) -> TokenizedText:
        encoded = self._tokenizer.encode(self.expected["query"], document)
        types = encoded.type_ids
        return TokenizedText.of(encoded.ids, types.index(1) if 1 in types else 0)

    def judged(self, document: str) -> TokenizedText:
        query = self.expected["query"]
        pair = f"<Instruct>: {INSTRUCTION}\n<Query>: {query}\n<Document>: {document}"
        return self.tokens(f"{RERANK_PREFIX}{pair}{RERANK_SUFFIX}")

    @property
    def answers(self) -> tuple[int, ...]:
        return tuple(self._tokenizer.token_to_id(word) for word in ("no", "yes"))


def tokenizer_of(folder: Any) -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


async def alone_and_together(
    watched: Watched, texts: Sequence[TokenizedText], **how: Any
) -> list[pooling.Floats]:
    """The vectors of texts, one by one; those of a crowd of all of them must be the same."""
    alone = [(await watched.engine.pool([text], **how))[0] for text in texts]
    together = await watched.engine.pool(texts, **how)
    each = await watched.together(*(watched.engine.pool([text], **how) for text in texts))
    vectors = [pooling.numbers(vector) for vector in alone]
    for crowd in (together, [vector for [vector] in each]):
        assert np.allclose([*map(pooling.numbers, crowd)], vectors, rtol=0, atol=CLOSE)
    return vectors


@pytest.mark.parametrize("name", ["bert", "xlm-r", "qwen3-embedding"])
@pytest.mark.parametrize(
    "how", ["cls", "lasttoken", "max", "mean", "mean_sqrt_len_tokens", "weightedmean"]
)
async def test_vectors_are_those_of_sentence_transformers(name: str, how: str) -> None:
    model = Model(name)
    texts = [model.tokens(text) for text in model.expected["texts"]]
    assert [text.count for text in texts] == model.expected["tokens"]
    changes = {"pooling": how, "pad_token": model.pad_token}
    async with running(model.folder, **changes) as watched:
        vectors = await alone_and_together(watched, texts)
    assert np.allclose(vectors, model.expected["vectors"][how], rtol=0, atol=CLOSE)


def sigmoid(logits: pooling.Floats) -> pooling.Floats:
    return 1 / (1 + np.exp(-logits[:, 0]))


def softmax_of_yes(logits: pooling.Floats) -> pooling.Floats:
    return sigmoid(logits[:, 1:] - logits[:, :1])


@pytest.mark.parametrize(
    ("name", "asked", "score"),
    [
        ("bert-rerank", Model.pair, lambda logits: logits[:, 0]),
        ("xlm-r-rerank", Model.pair, sigmoid),
        ("qwen3-seq-cls", Model.judged, sigmoid),
        ("qwen3-rerank", Model.judged, softmax_of_yes),
    ],
)
async def test_scores_are_those_of_sentence_transformers(
    name: str,
    asked: Callable[[Model, str], TokenizedText],
    score: Callable[[pooling.Floats], pooling.Floats],
) -> None:
    model = Model(name)
    texts = [asked(model, document) for document in model.expected["documents"]]
    answers = model.answers if score is softmax_of_yes else ()
    changes = {"pooling": "graph", "answer_tokens": answers, "pad_token": model.pad_token}
    async with running(model.folder, **changes) as watched:
        logits = await alone_and_together(watched, texts)
    assert np.allclose(score(np.array(logits)), model.expected["scores"], rtol=0, atol=CLOSE)


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("bert", "max"),
        ("xlm-r", "mean"),
        ("qwen3-embedding", "lasttoken"),
        ("bert-rerank", "graph"),
        ("xlm-r-rerank", "graph"),
        ("qwen3-seq-cls", "graph"),
        ("qwen3-rerank", "answers"),
    ],
)
def test_padding_changes_nothing_however_much_it_is(name: str, how: str) -> None:
    model = Model(name)
    answers = {"pooling": "graph", "answer_tokens": model.answers}
    changes = answers if how == "answers" else {"pooling": how}
    loaded = PoolingModel(pooling.spec(model.folder, pad_token=model.pad_token, **changes))
    # A language model's single token reads its own key and value from a cache of 8 bits.
    shortest = 2 if how == "answers" else 1
    lengths = (shortest, 60, 2, 33, 5, 59)
    texts = [pooling.as_input(range(20, 20 + length)) for length in lengths]
    alone = [loaded.run([text])[0] for text in texts]
    assert np.allclose(loaded.run(texts), alone, rtol=0, atol=CLOSE)


async def test_a_real_model_answers_as_sentence_transformers_does() -> None:
    if not MINILM.is_dir():
        pytest.skip("there is no minilm: models/minilm/recipe.py makes it")
    expected = json.loads((FOLDER / "minilm.json").read_text())
    tokenizer = tokenizer_of(MINILM)
    texts = [TokenizedText.of(tokenizer.encode(text).ids) for text in expected["texts"]]
    async with running(MINILM, pad_token=0) as watched:
        vectors = await alone_and_together(watched, texts, normalize=True)
    assert np.allclose(vectors, expected["vectors"], rtol=0, atol=CLOSE)
