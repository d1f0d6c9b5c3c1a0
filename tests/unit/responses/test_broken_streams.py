"""Streams of the Responses API that break, and what its errors name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import openai
import pytest

from ovchat_server.domain.errors import InternalError, InvalidRequestError, OverloadedError
from ovchat_server.domain.field_path import ErrorText, FieldPath
from ovchat_server.rest.responses.codec import encode_error
from tests.unit.responses.answers import (
    CUSTOM,
    MESSAGE,
    OPENING,
    REASONING,
    broken,
    called,
    events,
    kinds,
    said,
    sdk_stream,
    thought,
)

if TYPE_CHECKING:
    from ovchat_server.domain.completion import Delta
    from ovchat_server.domain.errors import ApiError


@pytest.mark.parametrize(
    ("deltas", "order", "output"),
    [
        ([], [], []),
        ([said("H")], MESSAGE[:3], [("message", "incomplete")]),
        (
            [thought("Hm."), *called(0, "patch", '{"input": "a')],
            [*REASONING, *CUSTOM[:2]],
            [("reasoning", "completed"), ("custom_tool_call", "incomplete")],
        ),
    ],
)
@pytest.mark.parametrize(
    ("error", "code"),
    [(InternalError, "server_error"), (OverloadedError, "rate_limit_exceeded")],
)
def test_a_broken_stream_fails(
    deltas: list[Delta],
    order: list[str],
    output: list[tuple[str, str]],
    error: type[ApiError],
    code: str,
) -> None:
    stream = broken(error("It broke."), deltas)
    assert kinds(stream) == [*OPENING, *order, "error", "failed"]
    event, failed = events(stream)[-2:]
    assert (event["code"], event["message"], event["param"]) == (error.code, "It broke.", None)
    response = failed["response"]
    assert response["error"] == {"code": code, "message": "It broke."}
    assert (response["status"], response["completed_at"]) == ("failed", None)
    assert [(item["type"], item["status"]) for item in response["output"]] == output


def test_openais_sdk_raises_the_error_of_a_broken_stream() -> None:
    stream = broken(OverloadedError("Come back later."), [said("H")])
    with sdk_stream(stream) as read, pytest.raises(openai.APIError) as caught:
        read.until_done()
    assert (caught.value.message, caught.value.code) == ("Come back later.", "rate_limit_exceeded")


@pytest.mark.parametrize(
    ("path", "spelled"),
    [
        (FieldPath.of("messages", 2, "content", 0), "input"),
        (FieldPath.of("max_tokens"), "max_output_tokens"),
        (FieldPath.of("chat_template_kwargs", "a"), "chat_template_kwargs.a"),
    ],
)
def test_errors_name_the_fields_of_this_api(path: FieldPath, spelled: str) -> None:
    def wrong() -> InvalidRequestError:
        return InvalidRequestError.about(path, ErrorText.of("and ", FieldPath.of("max_tokens")))

    expected = {
        "message": f"{spelled} and max_output_tokens",
        "type": "invalid_request_error",
        "param": spelled,
        "code": "invalid_value",
    }
    assert encode_error(wrong()).body == {"error": expected}
    event = json.loads(broken(wrong(), []).split(b"\n\n")[2].split(b"data: ")[1])
    assert event["error"] == expected
