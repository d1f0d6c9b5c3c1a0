"""Frameworks that embed with OpenAI's API must not notice the difference."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import openai
import pytest
import tiktoken
from langchain_openai import OpenAIEmbeddings

from tests.pooling_folders import TOLERANCE, expected, folder_settings, furthest
from tests.rest.conftest import running_stack
from tests.rest.programs import what_it_saw

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.rest.conftest import Stack

TEXTS = expected("bert")["texts"]
AS_QUERY = {"input_type": "query"}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Models that make embeddings, and none that chats."""
    models = [
        folder_settings("bert"),
        folder_settings("bert", name="cut", matryoshka=True),
        folder_settings("qwen3-embedding"),
    ]
    with running_stack(tmp_path_factory.mktemp("stack"), *models) as stack:
        yield stack


def langchain(stack: Stack, model: str = "bert", **fields: Any) -> OpenAIEmbeddings:
    # Its own setting for servers that are not OpenAI's: it sends texts, not OpenAI's tokens.
    defaults: dict[str, Any] = {"check_embedding_ctx_length": False, "max_retries": 0}
    return OpenAIEmbeddings(
        model=model, base_url=f"{stack.url}/v1", api_key="unused", **{**defaults, **fields}
    )


@pytest.mark.usefixtures("untraced")
async def test_langchain_embeds_documents_and_queries(stack: Stack) -> None:
    # Fewer than there are texts, so that it asks several times.
    model = langchain(stack, chunk_size=4)

    documents = model.embed_documents(TEXTS)
    later = await model.aembed_documents(TEXTS)
    query, later_query = model.embed_query(TEXTS[0]), await model.aembed_query(TEXTS[0])

    wanted = expected("bert")["encoded"]
    assert furthest(documents, wanted) < TOLERANCE
    assert furthest(later, wanted) < TOLERANCE
    assert furthest([query, later_query], [wanted[0]] * 2) < TOLERANCE


@pytest.mark.usefixtures("untraced")
async def test_langchain_asks_for_prompts_and_dimensions(stack: Stack) -> None:
    qwen = expected("qwen3-embedding")
    model = langchain(stack, "qwen3-embedding")

    asked = model.embed_query(qwen["texts"][0], extra_body=AS_QUERY)
    later = await langchain(
        stack, "qwen3-embedding", model_kwargs={"extra_body": AS_QUERY}
    ).aembed_query(qwen["texts"][0])
    cut = langchain(stack, "cut", dimensions=8).embed_query(TEXTS[0])

    assert furthest([asked, later], [qwen["query"][0]] * 2) < TOLERANCE
    assert len(cut) == 8


@pytest.mark.usefixtures("untraced")
def test_langchains_default_of_openais_tokens_is_refused_by_name(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    # OpenAI's vocabulary, which it would fetch: "cat" in it.
    vocabulary = SimpleNamespace(encode_ordinary=lambda _: [9246])
    monkeypatch.setattr(tiktoken, "get_encoding", lambda _: vocabulary)

    with pytest.raises(openai.BadRequestError, match="must be a token of the model") as refused:
        langchain(stack, check_embedding_ctx_length=True).embed_documents(["cat"])

    assert refused.value.param == "input[0][0]"


# The first time, it is installed.
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["OpenAIEmbedding", "OpenAILikeEmbedding"])
def test_llamaindex_embeds_texts_and_queries(seen: Any, kind: str) -> None:
    texts, query = seen[kind]["texts"], seen[kind]["query"]

    wanted = expected("bert")["encoded"]
    assert furthest(texts["whole"], wanted) < TOLERANCE
    assert furthest(texts["later"], wanted) < TOLERANCE
    assert furthest([texts["one"]], wanted[:1]) < TOLERANCE
    assert len(texts["fewer"]) == 8
    assert furthest([query], [expected("qwen3-embedding")["query"][0]]) < TOLERANCE


@pytest.fixture(scope="module")
def seen(stack: Stack) -> Any:
    """What LlamaIndex made of our answers."""
    return what_it_saw("llamaindex", stack)
