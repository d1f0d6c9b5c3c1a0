"""Bytes of HTTP bodies, and what of a caller's text may stand in a header."""

from __future__ import annotations

import json

import pytest
from google.api import httpbody_pb2
from hypothesis import given
from hypothesis import strategies as st

from ovchat_server.domain.errors import (
    ApiError,
    InternalError,
    MalformedBodyError,
    UnsupportedMediaTypeError,
)
from ovchat_server.domain.generation import StreamOptions
from ovchat_server.domain.limits import Limits
from ovchat_server.rest.openai.codec import CompletionEncoder
from ovchat_server.rest.openai.objects import chat_chunk, chat_completion
from ovchat_server.rest.request_body import read_json_object
from ovchat_server.rest.response_body import (
    event,
    event_stream,
    json_body,
)

# What JSON, and so a caller, can say: all but halves of surrogate pairs.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def body(data: bytes, kind: str = "application/json") -> httpbody_pb2.HttpBody:
    return httpbody_pb2.HttpBody(content_type=kind, data=data)


@pytest.mark.parametrize(
    "kind",
    [
        "",
        "application/json",
        "application/json; charset=utf-8",
        " Application/JSON ;x=y",
        "application/vnd.api+json",
    ],
)
def test_json_is_read_under_its_names(kind: str) -> None:
    assert read_json_object(body(b'{"a": 1}', kind)) == {"a": 1}


def test_keys_keep_their_order() -> None:
    assert list(read_json_object(body(b'{"z":1,"a":{"y":1,"b":2},"m":0}'))) == ["z", "a", "m"]


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
)
def test_another_type_of_body_is_refused(kind: str) -> None:
    with pytest.raises(UnsupportedMediaTypeError, match="must be application/json"):
        read_json_object(body(b"{}", kind))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"{'a': 1}",
        b"{} {}",
        b"[]",
        b"null",
        b'"x"',
        b'{"a": "\xff"}',
        b'{"\\ud800": 1}',
        b'\xef\xbb\xbf\xef\xbb\xbf{"a": 1}',
        b'{"a": NaN',
        pytest.param(b'{"a":' * 100_000, id="deep"),
    ],
)
def test_what_is_no_json_object_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedBodyError) as caught:
        read_json_object(body(data))
    assert caught.value.message.startswith("The body ")
    assert caught.value.message.endswith(".")


NUMBER = "must be a finite number that 64 bits can hold."
SURROGATE = "contains a lone surrogate, which is half a character."


@pytest.mark.parametrize(
    ("data", "field", "complaint"),
    [
        (b'{"a": 1e999}', "a", NUMBER),
        (b'{"b": 1, "a": -1e999, "c": 1e999}', "a", NUMBER),
        (b'{"a": {"b": [0, 1e400]}}', "a.b[1]", NUMBER),
        (b'{"a": NaN}', "a", NUMBER),
        (b'{"a": -Infinity}', "a", NUMBER),
        pytest.param(b'{"a": ' + b"1" * 10_000 + b"}", "a", NUMBER, id="long number"),
        (b'{"a": "x\\ud800"}', "a", SURROGATE),
        (b'{"a": ["\\udc00\\ud800"]}', "a[0]", SURROGATE),
        (
            b'{"a": {"\\ud800": 1}}',
            "a",
            "has a key with a lone surrogate, which is half a character.",
        ),
    ],
)
def test_a_value_that_nobody_can_hold_is_told_by_its_field(
    data: bytes, field: str, complaint: str
) -> None:
    with pytest.raises(MalformedBodyError) as caught:
        read_json_object(body(data))
    assert (caught.value.param, caught.value.code) == (field, "invalid_json")
    assert caught.value.message == f"{field} {complaint}"


def test_a_byte_order_mark_is_skipped() -> None:
    assert read_json_object(body(b'\xef\xbb\xbf{"a": 1}')) == {"a": 1}


@pytest.mark.parametrize("data", [b"", b" \r\n", b"\xef\xbb\xbf"])
def test_an_empty_body_is_said_to_be_empty(data: bytes) -> None:
    assert complaint(data) == "The body is empty; it must be a JSON object."


def complaint(data: bytes, **limits: int) -> str:
    with pytest.raises(MalformedBodyError) as caught:
        read_json_object(body(data), Limits(**limits))
    return caught.value.message


def test_a_body_that_is_not_utf_8_is_told_so_and_nothing_else() -> None:
    assert complaint(b'{"a": "\xff"}') == "The body is not valid JSON: it is not UTF-8."


def test_a_body_too_deep_to_be_read_is_told_how_deep_it_may_be() -> None:
    said = complaint(b'{"a":' * 100_000, max_json_depth=20)
    assert said == "The body is nested too deeply; a parameter may have at most 20 levels."


@given(st.binary(max_size=40))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    try:
        assert isinstance(read_json_object(body(data)), dict)
    except ApiError as error:
        assert error.code == "invalid_json"  # noqa: PT017  either is right


def test_an_answer_is_plain_json() -> None:
    answer = json_body({"z": "é😀", "a": [None, True]})
    assert answer.content_type == "application/json"
    assert answer.data.decode() == '{"z":"é😀","a":[null,true]}'


@given(TEXT)
def test_an_event_is_one_line_whatever_it_says(text: str) -> None:
    sent = event_stream(event({"content": text}))
    assert sent.content_type == "text/event-stream"
    assert sent.data.startswith(b"data: ")
    assert sent.data.endswith(b"\n\n")
    (line,) = sent.data[:-2].splitlines()
    assert json.loads(line.removeprefix(b"data: ")) == {"content": text}


def test_an_event_may_have_a_name() -> None:
    assert event({"a": 1}, "begin") == b'event: begin\ndata: {"a":1}\n\n'


def test_the_last_event_is_openais() -> None:
    encoder = CompletionEncoder(chat_completion, chat_chunk, StreamOptions())
    assert encoder.end() == b"data: [DONE]\n\n"
    assert encoder.failure(InternalError("Oh.")).endswith(b"}\n\ndata: [DONE]\n\n")
