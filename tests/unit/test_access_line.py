"""The line of a call, from its headers and its record."""

from __future__ import annotations

import logging

import grpc
import pytest

from ovchat_server.domain.completion import FinishReason, Usage
from ovchat_server.domain.errors import InternalError, ModelNotFoundError
from ovchat_server.domain.identity import Identity
from ovchat_server.engine.contract.times import Interruption, RequestTimes
from ovchat_server.rpc.access_line import MOST, Call, line
from ovchat_server.serving.record import RequestRecord

BROKEN = InternalError("It broke.")
CHAT = "/ovchat.v1.ChatService/CreateChatCompletion"
REST = "/ovchat.v1.RestService/CreateChatCompletion"
PEER = "ipv4:198.51.100.7:5000"
HEADERS = {
    "x-envoy-original-path": "/v3/chat/completions?key=secret",
    "x-envoy-original-method": "POST",
    "x-forwarded-for": "192.0.2.1, 203.0.113.9",
    "user-agent": "curl/8",
}


def test_a_rest_request_is_logged_as_its_client_sent_it() -> None:
    call = Call.of(REST, HEADERS, "ipv4:127.0.0.1:5000")
    record = RequestRecord(
        model="demo",
        prompt_tokens=36,
        completion_tokens=20,
        finish_reasons=[FinishReason.STOP, FinishReason.LENGTH],
        began=1000.0,
        ended=1000.1234,
        trace_id="4bf92f3577b34da6a3ce929d0e0e4736",
        caller=Identity("a", "0123abcd"),
        usage=Usage(36, 20, cached_tokens=32),
        times=RequestTimes(
            1000.01,
            1000.02,
            1000.05,
            1000.12,
            [(Interruption.PREEMPTED, 1000.06), (Interruption.RESUMED, 1000.07)],
        ),
    )
    level, message, fields = line(call, record, grpc.StatusCode.OK)
    assert level == logging.INFO
    assert message == "POST /v3/chat/completions 200 demo 36+20 tokens ttft 0.05 s, 0.12 s"
    assert fields == {
        "rpc": REST.removeprefix("/"),
        "door": "rest",
        "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
        "key": "0123abcd",
        "method": "POST",
        "path": "/v3/chat/completions",
        "status": 200,
        "grpc_status": "OK",
        "model": "demo",
        "prompt_tokens": 36,
        "completion_tokens": 20,
        "finish_reasons": ["stop", "length"],
        "cached_tokens": 32,
        "queue_ms": 10.0,
        "prefill_ms": 30.0,
        "decode_ms": 70.0,
        "ttft_ms": 50.0,
        "preemptions": 1,
        "duration_ms": 123.4,
        "client": "203.0.113.9",
        "user_agent": "curl/8",
        "peer": "ipv4:127.0.0.1:5000",
    }


def test_a_typed_call_is_logged_with_its_rpc() -> None:
    record = RequestRecord(error=ModelNotFoundError("no"), began=1.0, ended=1.0)
    _, message, fields = line(Call.of(CHAT, {}, PEER), record, grpc.StatusCode.NOT_FOUND)
    assert message == "ChatService/CreateChatCompletion NOT_FOUND model_not_found 0.00 s"
    assert fields["grpc_status"] == "NOT_FOUND"
    assert fields["error"] == "model_not_found"
    assert not fields.keys() & {"method", "path", "status", "model"}


@pytest.mark.parametrize(
    ("status", "record", "said", "level"),
    [
        (grpc.StatusCode.UNAVAILABLE, RequestRecord(), "503", logging.WARNING),
        (grpc.StatusCode.DATA_LOSS, RequestRecord(), "500", logging.WARNING),
        (grpc.StatusCode.INVALID_ARGUMENT, RequestRecord(http_status=415), "415", logging.INFO),
        # The client left: before its answer, and amid it.
        (grpc.StatusCode.CANCELLED, RequestRecord(), "499", logging.INFO),
        (grpc.StatusCode.CANCELLED, RequestRecord(begun=True), "200 CANCELLED", logging.INFO),
        (grpc.StatusCode.OK, RequestRecord(begun=True, error=BROKEN), "200", logging.WARNING),
        (
            grpc.StatusCode.INTERNAL,
            RequestRecord(begun=True, error=BROKEN),
            "200 INTERNAL",
            logging.WARNING,
        ),
    ],
)
def test_the_http_status_is_the_clients(
    status: grpc.StatusCode, record: RequestRecord, said: str, level: int
) -> None:
    logged, message, fields = line(Call.of(REST, HEADERS, PEER), record, status)
    assert (logged, fields["status"]) == (level, int(said[:3]))
    assert f" {said} " in message


def test_a_direct_caller_hides_nothing() -> None:
    headers = {name: value + "x" * 10_000 for name, value in HEADERS.items()}
    call = Call.of(REST + "x" * 10_000, headers, PEER)
    # Only Envoy's word counts for where a call comes from, and its connection stays.
    assert call.client == "198.51.100.7"
    assert call.peer == PEER
    longest = (call.rpc, call.method, call.path, call.client, call.user_agent)
    assert max(map(len, longest)) == MOST
