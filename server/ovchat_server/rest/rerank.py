"""Ranked documents in Cohere's, Jina's, OVMS's and vLLM's JSON at once, and vLLM's scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.rest.openai.objects import prompt_usage

if TYPE_CHECKING:
    from ovchat_server.domain.json_value import JsonObject
    from ovchat_server.domain.rerank import RankedDocument, Ranking, Scores

# Writing so many characters takes less than a millisecond.
MAX_CHARACTERS_IN_PLACE = 1 << 18


def ranking(result: Ranking) -> JsonObject:
    """Return the ranked documents."""
    return {
        "id": result.id,
        "model": result.model,
        "results": [_ranked(document) for document in result.results],
        "usage": prompt_usage(result.prompt_tokens),
        # Cohere's, of its version 2: its clients show what a request cost.
        "meta": {"api_version": {"version": "2"}, "billed_units": {"search_units": 1}},
    }


def is_large(result: Ranking) -> bool:
    """Return whether it takes long to write it."""
    characters = sum(len(document.text or "") for document in result.results)
    return characters > MAX_CHARACTERS_IN_PLACE


def scores(result: Scores) -> JsonObject:
    """Return vLLM's list of scores."""
    return {
        "id": result.id,
        "object": "list",
        "created": result.created,
        "model": result.model,
        "data": [
            {"object": "score", "index": index, "score": score}
            for index, score in enumerate(result.scores)
        ],
        "usage": prompt_usage(result.prompt_tokens),
    }


def _ranked(document: RankedDocument) -> JsonObject:
    fields: JsonObject = {"index": document.index, "relevance_score": document.score}
    if document.text is not None:
        fields["document"] = {"text": document.text}
    return fields
