"""Answer a question from documents: embed them, search, rerank, and let a model answer.

    make run                                          # in another terminal
    .venv/bin/pip install openai cohere faiss-cpu
    .venv/bin/python examples/rag.py "When are the lamps on the pier lit?"

OPENAI_BASE_URL, OPENAI_API_KEY, EMBEDDING_MODEL, RERANK_MODEL and CHAT_MODEL name others. A model
that was made to rerank ranks better than the embeddings, which stand in for one here.
"""

from __future__ import annotations

import os
import sys
from urllib.parse import urlsplit

import cohere
import faiss
import numpy as np
from openai import OpenAI

BASE_URL = os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1")
API_KEY = os.environ.get("OPENAI_API_KEY", "unused")
EMBEDDING_MODEL = os.environ.get("EMBEDDING_MODEL", "minilm")
RERANK_MODEL = os.environ.get("RERANK_MODEL", EMBEDDING_MODEL)
CHAT_MODEL = os.environ.get("CHAT_MODEL", "smollm2")

FOUND, SHOWN = 4, 2
QUESTION = "How much does it cost to take a bicycle on the ferry?"
DOCUMENTS = [
    "The ferry to the island leaves every hour from 6 in the morning, in winter every two hours.",
    "A ticket for the ferry is 8 euros for adults and 4 euros for children under twelve.",
    "Bicycles travel on the lower deck of the ferry and pay 3 euros; tandems pay 5 euros.",
    "Dogs may sail for free if they are on a leash, and sit outside.",
    "The lighthouse was built in 1871 and has been open to visitors since its keeper retired.",
    "At dusk the harbour master lights the lamps on the pier by hand, as his father did.",
    "The bakery behind the market sells rolls with smoked eel until they are gone.",
    "Bicycles can be rented at the station on the island for 15 euros a day, helmets included.",
]


def embedded(client: OpenAI, texts: list[str], input_type: str) -> np.ndarray:
    """Return the vectors of texts, one a row, behind the prompt that the model has for them."""
    answer = client.embeddings.create(
        model=EMBEDDING_MODEL, input=texts, extra_body={"input_type": input_type}
    )
    return np.array([item.embedding for item in answer.data], np.float32)


def ranked(question: str, passages: list[str]) -> list[tuple[float, str]]:
    """Return the best passages with their scores, the best first."""
    # The client adds /v2/rerank by itself.
    url = urlsplit(BASE_URL)
    client = cohere.ClientV2(API_KEY, base_url=f"{url.scheme}://{url.netloc}")
    answer = client.rerank(model=RERANK_MODEL, query=question, documents=passages, top_n=SHOWN)
    return [(result.relevance_score, passages[result.index]) for result in answer.results]


def main() -> None:
    """Answer the question of the command line, or the one above."""
    question = " ".join(sys.argv[1:]) or QUESTION
    client = OpenAI(base_url=BASE_URL, api_key=API_KEY)

    vectors = embedded(client, DOCUMENTS, "document")
    # The vectors have length 1: their inner product is the cosine of the angle between them.
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    [likenesses], [numbers] = index.search(embedded(client, [question], "query"), FOUND)
    for likeness, number in zip(likenesses, numbers, strict=True):
        print(f"found   {likeness:.3f}  {DOCUMENTS[number]}")

    best = ranked(question, [DOCUMENTS[number] for number in numbers])
    for score, passage in best:
        print(f"ranked  {score:.3f}  {passage}")

    passages = "\n".join(passage for _, passage in best)
    content = f"Answer from these passages alone.\n\n{passages}\n\nQuestion: {question}"
    chat = client.chat.completions.create(
        model=CHAT_MODEL,
        messages=[{"role": "user", "content": content}],
        max_tokens=200,
        temperature=0,
    )
    print(f"answer  {chat.choices[0].message.content}")


if __name__ == "__main__":
    main()
