"""The access log's line about a call: its fields, and the sentence that they make."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import unquote

from ovchat_server.engine.contract.times import Interruption
from ovchat_server.rpc.caller import peer_address
from ovchat_server.rpc.errors import REST_MARK
from ovchat_server.rpc.header_values import VALID

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import grpc

    from ovchat_server.serving.record import RequestRecord

# Of what callers chose, in characters.
MOST: Final = 200
# What Envoy makes of a gRPC status (the client that left is not there to read its own).
_HTTP_STATUSES: Final = {
    "OK": 200,
    "CANCELLED": 499,
    "INVALID_ARGUMENT": 400,
    "DEADLINE_EXCEEDED": 504,
    "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409,
    "PERMISSION_DENIED": 403,
    "RESOURCE_EXHAUSTED": 429,
    "FAILED_PRECONDITION": 400,
    "ABORTED": 409,
    "OUT_OF_RANGE": 400,
    "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503,
    "UNAUTHENTICATED": 401,
}
_FAULT: Final = 500


@dataclass(frozen=True, slots=True)
class Call:
    """A call as it arrived.

    Attributes:
        rpc: The RPC's full name, such as "ovchat.v1.ChatService/CreateChatCompletion".
        method: The HTTP method of a REST request; "" of other calls, and so the next.
        path: The path as the client sent it, without its query, which may hold secrets.
        client: The address of the client.
        user_agent: Its program, in its own words.
        peer: Who made the connection, in gRPC's words: all but this the caller may make up, unless
            it came through Envoy.
    """

    rpc: str
    method: str
    path: str
    client: str
    user_agent: str
    peer: str

    @classmethod
    def of(cls, rpc: str, metadata: Mapping[str, str | bytes], peer: str) -> Self:
        """Read what is logged of a call from its headers."""

        def header(name: str) -> str:
            value = str(metadata.get(name, ""))
            # Of a call that is refused because of it, nothing is shown.
            return value[:MOST] if VALID.fullmatch(value) else ""

        path = header(REST_MARK).partition("?")[0]
        method = header("x-envoy-original-method") if path else ""
        known = peer_address(str(metadata.get("x-forwarded-for", "")), peer)
        client = unquote(known.removeprefix("ipv4:").removeprefix("ipv6:")).strip("[]")[:MOST]
        return cls(rpc.lstrip("/")[:MOST], method, path, client, header("user-agent"), peer)


def line(
    call: Call, record: RequestRecord, status: grpc.StatusCode
) -> tuple[int, str, dict[str, Any]]:
    """Return the level of a call's line, its message and its fields.

    Args:
        call: The call.
        record: Its state at the end.
        status: How it ended.
    """
    fields: dict[str, Any] = {"rpc": call.rpc, "door": "rest" if call.path else "grpc"}
    if record.trace_id:
        fields["trace_id"] = record.trace_id
    if record.caller.name:
        fields["key"] = record.caller.name
    if call.path:
        shown = 200 if record.begun else record.http_status or _http_status(status.name)
        fields |= {"method": call.method, "path": call.path, "status": shown}
        words = [call.method, call.path, str(shown)]
        if record.begun and status.name != "OK":
            # The status of a stream that its client has left tells nothing.
            words.append(status.name)
    else:
        words = [call.rpc.rpartition(".")[2], status.name]
    fields["grpc_status"] = status.name
    if record.error:
        fields["error"] = record.error.code
        words.append(record.error.code)
    if record.model:
        fields |= _of_the_model(record)
        words += _words_of_the_model(record)
    fields |= {
        "duration_ms": _ms(record.seconds),
        "client": call.client,
        "user_agent": call.user_agent,
        "peer": call.peer,
    }
    words.append(f"{record.seconds:.2f} s")
    # A broken stream is OK for gRPC: the error is in its last event.
    end = record.error.status if record.error else status.name
    level = logging.WARNING if _http_status(end) >= _FAULT else logging.INFO
    return level, " ".join(words), fields


def _of_the_model(record: RequestRecord) -> dict[str, Any]:
    """Return the fields of a request that a model answered, without those that are not known."""
    times, usage = record.times, record.usage
    seconds = {
        "queue_ms": times.queue_seconds,
        "prefill_ms": times.prefill_seconds,
        "decode_ms": times.decode_seconds,
        "ttft_ms": record.first_token_seconds,
    }
    interruptions = Counter(what for what, _ in times.interruptions)
    known = {
        "cached_tokens": usage and usage.cached_tokens,
        **{name: None if value is None else _ms(value) for name, value in seconds.items()},
        "preemptions": interruptions[Interruption.PREEMPTED] or None,
        "engine_restarts": interruptions[Interruption.RESTARTED] or None,
    }
    return {
        "model": record.model,
        "prompt_tokens": record.prompt_tokens,
        "completion_tokens": record.completion_tokens,
        "finish_reasons": [*map(str, record.finish_reasons)],
        **{name: value for name, value in known.items() if value is not None},
    }


def _words_of_the_model(record: RequestRecord) -> Iterator[str]:
    yield record.model
    if record.completion_tokens:
        yield f"{record.prompt_tokens}+{record.completion_tokens} tokens"
        if (first := record.first_token_seconds) is not None:
            yield f"ttft {first:.2f} s,"
    elif record.prompt_tokens:
        yield f"{record.prompt_tokens} tokens"


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 1)


def _http_status(status: str) -> int:
    return _HTTP_STATUSES.get(status, _FAULT)
