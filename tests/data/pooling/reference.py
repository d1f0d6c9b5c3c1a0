"""What sentence-transformers and transformers say of a model: to compare our answers with."""

from __future__ import annotations

import json
from itertools import chain
from typing import TYPE_CHECKING, Any

import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling
from texts import DOCUMENTS, INSTRUCTION, QUERY, RERANK_PREFIX, RERANK_SUFFIX, with_longest
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy as np

MODES = ("cls", "mean", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")


def digits(numbers: np.ndarray | torch.Tensor) -> Any:
    """Numbers as JSON has them: of f32, seven digits matter."""
    if numbers.ndim:
        return [digits(each) for each in numbers]
    return float(f"{float(numbers):.7g}")


def of_embedding(folder: Path, longest: int) -> dict[str, Any]:
    """Vectors of the texts, one by one, so that no padding is in them."""
    model = SentenceTransformer(str(folder), device="cpu")
    texts = with_longest(model.tokenizer, longest)
    encoded = [model.tokenizer(text, return_tensors="pt") for text in texts]
    vectors: dict[str, list[list[float]]] = {mode: [] for mode in MODES}
    for tokens in encoded:
        with torch.no_grad():
            features = model[0](dict(tokens))
        for mode in MODES:
            pooling = Pooling(model.get_embedding_dimension(), pooling_mode=mode)
            pooled = pooling(dict(features))["sentence_embedding"][0]
            vectors[mode].append(digits(pooled))
    expected = {
        "texts": texts,
        "tokens": [tokens.input_ids.shape[1] for tokens in encoded],
        "vectors": vectors,
        "encoded": digits(model.encode(texts, batch_size=1)),
    }
    if model.prompts.get("query"):
        # There is no room for a prompt before the longest.
        queries = model.encode(texts[:-1], batch_size=1, prompt_name="query")
        expected["query"] = digits(queries)
    return expected


def of_cross_encoder(folder: Path) -> dict[str, Any]:
    """Scores of the documents, by the model's own activation."""
    model = CrossEncoder(str(folder), device="cpu")
    pairs = [(QUERY, document) for document in DOCUMENTS]
    return _ranked(model.predict(pairs, batch_size=1))


def rerank_prompt(document: str) -> str:
    """Ask about a document as Qwen3-Reranker is asked."""
    pair = f"<Instruct>: {INSTRUCTION}\n<Query>: {QUERY}\n<Document>: {document}"
    return f"{RERANK_PREFIX}{pair}{RERANK_SUFFIX}"


def of_judge(folder: Path) -> dict[str, Any]:
    """How likely "yes" is, of "yes" and "no", as Qwen3-Reranker's model card has it."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    answers = tokenizer.convert_tokens_to_ids(["no", "yes"])
    assert None not in answers
    scores = []
    for document in DOCUMENTS:
        # In three parts, none of which changes how the others are cut.
        prompt = rerank_prompt(document)
        tokens = tokenizer(prompt, return_tensors="pt")
        body = prompt.removeprefix(RERANK_PREFIX).removesuffix(RERANK_SUFFIX)
        parts = [tokenizer.encode(part) for part in (RERANK_PREFIX, body, RERANK_SUFFIX)]
        assert [*chain(*parts)] == tokens.input_ids[0].tolist()
        with torch.no_grad():
            logits = model(**tokens).logits[0, -1, answers]
        scores.append(torch.softmax(logits, dim=0)[1])
    return _ranked(torch.stack(scores))


def of_judging_classifier(folder: Path) -> dict[str, Any]:
    """The same prompts, of which a classifier gives one number.

    Not by `CrossEncoder`, which takes any chat template for one with roles `query` and `document`.
    """
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    prompts = [tokenizer(rerank_prompt(document), return_tensors="pt") for document in DOCUMENTS]
    with torch.no_grad():
        return _ranked(torch.cat([torch.sigmoid(model(**each).logits[0]) for each in prompts]))


def _ranked(scores: Sequence[float] | np.ndarray | torch.Tensor) -> dict[str, Any]:
    return {"query": QUERY, "documents": DOCUMENTS, "scores": digits(scores)}


def write(path: Path, expected: dict[str, Any]) -> None:
    """Write them, a vector a line."""
    lines = []
    for name, value in expected.items():
        lines.append(f'"{name}": {_lines(value)}')
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _lines(value: Any) -> str:
    if isinstance(value, dict):
        inside = ",\n".join(f'"{name}": {_lines(each)}' for name, each in value.items())
        return f"{{\n{inside}\n}}"
    if isinstance(value, list) and isinstance(value[0], list | str):
        rows = ",\n".join(json.dumps(each, ensure_ascii=False) for each in value)
        return f"[\n{rows}\n]"
    return json.dumps(value, ensure_ascii=False)
