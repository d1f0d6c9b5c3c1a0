"""The response object, at any point of its course."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.domain.completion import FinishReason
from ovchat_server.responses.items import Status
from ovchat_server.responses.output import Output

if TYPE_CHECKING:
    from ovchat_server.domain.completion import Completion, CompletionInfo, Usage
    from ovchat_server.domain.json_value import JsonObject, JsonValue
    from ovchat_server.domain.responses.request import ResponsesRequest


def response_object(request: ResponsesRequest, completion: Completion) -> JsonObject:
    """Return a whole response: of one completion always the same, ids of items included."""
    choice = completion.choices[0]
    output = Output(request, completion.info.id)
    for block in choice.blocks:
        output.add(block)
    status = final_status(choice.finish_reason)
    output.end(status)
    return response(
        request,
        completion.info,
        status,
        output.items,
        usage=completion.usage,
        ended=completion.ended,
    )


def response(  # noqa: PLR0913  all that changes in the course of a response
    request: ResponsesRequest,
    info: CompletionInfo,
    status: Status,
    output: list[JsonValue],
    *,
    usage: Usage | None = None,
    ended: int | None = None,
    error: JsonObject | None = None,
) -> JsonObject:
    """Return a response at some point of its course.

    Args:
        request: What it answers.
        info: Of the completion.
        status: How far it is.
        output: Its items until then.
        usage: Once it is known.
        ended: When it ended, if it did.
        error: Why it failed, if it did.
    """
    incomplete = status is Status.INCOMPLETE
    return {
        "id": info.id,
        "object": "response",
        "created_at": info.created,
        "completed_at": ended if status is Status.COMPLETED else None,
        "status": status,
        "error": error,
        "incomplete_details": {"reason": "max_output_tokens"} if incomplete else None,
        "model": info.model,
        "output": output,
        "usage": None if usage is None else _usage(usage),
        "temperature": info.temperature,
        "top_p": info.top_p,
        **request.repeated,
    }


def input_tokens(count: int) -> JsonObject:
    """Return what says how many tokens an input has."""
    return {"object": "response.input_tokens", "input_tokens": count}


def final_status(reason: FinishReason) -> Status:
    """Return the status of a response whose only choice ended so."""
    return Status.INCOMPLETE if reason is FinishReason.LENGTH else Status.COMPLETED


def _usage(usage: Usage) -> JsonObject:
    # The SDKs have no null in its place: what is not known is 0.
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cached_tokens or 0,
            "cache_write_tokens": 0,
        },
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
        "total_tokens": usage.total_tokens,
    }
