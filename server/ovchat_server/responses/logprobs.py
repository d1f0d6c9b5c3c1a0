"""Log probabilities as OpenAI's APIs have them beside a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.domain.completion import Alternative, TokenLogprob
    from ovchat_server.domain.json_value import JsonObject, JsonValue


def token_logprobs(logprobs: Sequence[TokenLogprob]) -> list[JsonValue]:
    """Return tokens with their log probabilities, each with its alternatives."""
    return [
        {**_logprob(item), "top_logprobs": [_logprob(top) for top in item.alternatives]}
        for item in logprobs
    ]


def _logprob(item: TokenLogprob | Alternative) -> JsonObject:
    return {"token": item.text, "logprob": item.logprob, "bytes": list(item.bytes)}
