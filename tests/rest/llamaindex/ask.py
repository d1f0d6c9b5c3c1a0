"""Embeds texts with LlamaIndex and prints their vectors as JSON.

Runs in an environment of its own. The server is the one that OPENAI_BASE_URL names.
"""  # noqa: INP001 - a script

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llama_index.embeddings.openai import OpenAIEmbedding
from llama_index.embeddings.openai_like import OpenAILikeEmbedding

if TYPE_CHECKING:
    from collections.abc import Sequence

POOLING = Path(__file__).resolve().parents[2] / "data/pooling"
AS_QUERY = {"extra_body": {"input_type": "query"}}


def texts_for(model: str) -> list[str]:
    return json.loads((POOLING / model / "expected.json").read_text())["texts"]


def embedding(kind: type[OpenAIEmbedding], model: str, **fields: Any) -> OpenAIEmbedding:
    server = {"api_base": os.environ["OPENAI_BASE_URL"], "api_key": "unused", "max_retries": 0}
    # Fewer than there are texts, so that it asks several times.
    return kind(model_name=model, embed_batch_size=4, **server, **fields)


async def later(model: OpenAIEmbedding, texts: Sequence[str]) -> Any:
    return await model.aget_text_embedding_batch(texts)


def texts(kind: type[OpenAIEmbedding]) -> Any:
    asked = texts_for("bert")
    model = embedding(kind, "bert")
    return {
        "one": model.get_text_embedding(asked[0]),
        "whole": model.get_text_embedding_batch(asked),
        "later": asyncio.run(later(model, asked)),
        "fewer": embedding(kind, "cut", dimensions=8).get_text_embedding(asked[0]),
    }


def query(kind: type[OpenAIEmbedding]) -> Any:
    model = embedding(kind, "qwen3-embedding", additional_kwargs=AS_QUERY)
    return model.get_query_embedding(texts_for("qwen3-embedding")[0])


kinds = {kind.__name__: kind for kind in (OpenAIEmbedding, OpenAILikeEmbedding)}
json.dump(
    {name: {"texts": texts(kind), "query": query(kind)} for name, kind in kinds.items()},
    sys.stdout,
)
