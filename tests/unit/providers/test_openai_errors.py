"""Errors of servers that speak OpenAI's API, and their lists of models."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ovchat_server.domain.field_path import FieldPath
from ovchat_server.providers.kind import BadAnswerError, WireError
from ovchat_server.providers.openai.kind import OpenAiKind

KIND = OpenAiKind("p", "max_tokens", vllm_parameters=False)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (
            {
                "error": {
                    "message": "Too long.",
                    "type": "x",
                    "param": "messages",
                    "code": "too_long",
                }
            },
            WireError("Too long.", FieldPath.of("messages"), "too_long"),
        ),
        # llama.cpp's and vLLM's codes are the status.
        ({"error": {"message": "Bad.", "code": 400, "param": None}}, WireError("Bad.")),
        (
            {"object": "error", "message": "Bad.", "param": "n", "code": 400},
            WireError("Bad.", FieldPath.of("n")),
        ),
        # By the name that Responses' callers and those of the contract find theirs by.
        (
            {"error": {"message": "Bad.", "param": "max_completion_tokens"}},
            WireError("Bad.", FieldPath.of("max_tokens")),
        ),
        ([{"error": {"message": "Bad."}}], WireError("Bad.")),
        ({"error": "Bad."}, WireError("Bad.")),
        ({"detail": "Not Found"}, WireError("Not Found")),
        (
            {"detail": [{"loc": ["body", "messages", 0, "role"], "msg": "Field required"}]},
            WireError("messages[0].role: Field required", FieldPath.of("messages", 0, "role")),
        ),
        ("Bad.", WireError("Bad.")),
        ({"error": {}}, WireError()),
        ({"error": "x" * 1000}, WireError("x" * 500 + "...")),
        (None, WireError()),
    ],
)
def test_errors(body: Any, error: WireError) -> None:
    assert KIND.error(msgspec.json.encode(body)) == error


@pytest.mark.parametrize(
    ("body", "message"),
    [(b" no healthy upstream\n", "no healthy upstream"), (b"", ""), (b"\xff", "\ufffd")],
)
def test_errors_that_are_no_json(body: bytes, message: str) -> None:
    assert KIND.error(body) == WireError(message)


def test_models() -> None:
    listed = b'{"object": "list", "data": [{"id": "a", "object": "model"}, {"id": "b/c"}]}'

    assert KIND.model_ids(listed) == ["a", "b/c"]
    # Ollama without models.
    assert KIND.model_ids(b'{"object": "list", "data": null}') == []
    for nonsense in (b"{}", b"[]", b'{"data": [{}]}', b"<html>"):
        with pytest.raises(BadAnswerError):
            KIND.model_ids(nonsense)


def test_the_key_is_a_bearers() -> None:
    assert KIND.headers("k") == {"Authorization": "Bearer k"}
    assert KIND.headers("") == {}
