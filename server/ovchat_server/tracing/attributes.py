"""What a span says of its request, in the words of OpenTelemetry's semantic conventions.

Those of generative AI are not in a package yet whose names stay, so they are written out here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from ovchat_server.serving.record import Stage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ovchat_server.serving.record import RequestRecord

Value: TypeAlias = str | bool | int | float | tuple[str, ...] | None

# Of each text, some of which callers chose, in characters.
MOST: Final = 200
# Who answers where no provider does.
OPENVINO: Final = "openvino"
# The gRPC statuses of which the server is at fault, by the conventions.
FAULTS: Final = frozenset(
    {"UNKNOWN", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"}
)


def span_name(record: RequestRecord) -> str:
    """Return the name of a request's span: what was asked of which model, or else its RPC."""
    # Not the model that was asked for: names that callers make up would be without number.
    return f"{record.operation} {record.model}".strip()[:MOST] or record.rpc


def at_fault(record: RequestRecord) -> bool:
    """Return whether the server failed to answer, not its caller to ask."""
    # A stream that broke off is OK for gRPC: the error is in its last event.
    return (record.error.status if record.error else record.status) in FAULTS


def attributes(record: RequestRecord) -> dict[str, Value]:
    """Return the attributes of a request that is over, of which nothing is content."""
    values = _call(record)
    if record.operation:
        values |= _asked(record) | _answered(record)
    return {
        name: value[:MOST] if isinstance(value, str) else value
        for name, value in values.items()
        if value not in (None, "", ())
    }


def _call(record: RequestRecord) -> dict[str, Value]:
    failed = record.status if record.status != "OK" else None
    return {
        "rpc.system.name": "grpc",
        "rpc.method": record.rpc,
        "rpc.response.status_code": record.status,
        "error.type": record.error.code if record.error else failed,
        "http.request.method": record.http_method,
        "url.path": record.path,
        "ovchat.request_id": record.request_id,
        "ovchat.client_key": record.caller.name,
    }


def _asked(record: RequestRecord) -> dict[str, Value]:
    values: dict[str, Value] = {
        "gen_ai.operation.name": record.operation,
        "gen_ai.provider.name": record.provider or (OPENVINO if record.model else None),
        "gen_ai.request.model": record.requested_model or record.model,
        "gen_ai.request.stream": record.streams or None,
    }
    if (params := record.params) is not None:
        sampling, ending = params.sampling, params.ending
        values |= {
            "gen_ai.request.temperature": sampling.temperature,
            "gen_ai.request.top_p": sampling.top_p,
            "gen_ai.request.top_k": sampling.top_k,
            "gen_ai.request.max_tokens": ending.max_tokens,
            "gen_ai.request.seed": sampling.seed,
            "gen_ai.request.choice.count": params.n if params.n > 1 else None,
            "gen_ai.request.frequency_penalty": sampling.frequency_penalty or None,
            "gen_ai.request.presence_penalty": sampling.presence_penalty or None,
        }
    return values


def _answered(record: RequestRecord) -> dict[str, Value]:
    values: dict[str, Value] = {
        "gen_ai.response.id": record.response_id,
        "gen_ai.response.model": record.model,
        "gen_ai.response.finish_reasons": tuple(map(str, record.finish_reasons)),
        "gen_ai.response.time_to_first_chunk": record.first_token_seconds,
        "gen_ai.usage.input_tokens": record.prompt_tokens or None,
    }
    if (usage := record.usage) is not None:
        values |= {
            "gen_ai.usage.output_tokens": record.completion_tokens,
            "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
            "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
        }
    return values


def periods(record: RequestRecord) -> Iterator[Stage]:
    """Yield what a request's time went into: the server's stages, and those of the engine.

    What it did not get to the end of lasts until it was over.
    """
    yield from record.stages
    times = record.times
    for name, began, ended in (
        ("queue", times.queued, times.admitted),
        ("prefill", times.admitted, times.first_output),
        ("decode", times.first_output, times.last_output),
    ):
        end = record.ended if ended is None else ended
        # The first token of an answer that has no other is its last, too.
        if began is not None and began < end:
            yield Stage(name, began, end)
