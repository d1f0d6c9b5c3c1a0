"""Paths of fields, and what each API makes of them."""

from __future__ import annotations

import pytest

from ovchat_server.domain.errors import ContextLengthExceededError, InvalidRequestError, Violation
from ovchat_server.domain.field_path import ErrorText, FieldPath

# What OpenAI's Responses call the fields of a chat.
NAMES = {"max_tokens": "max_output_tokens", "messages": "input"}


def responses(path: FieldPath) -> FieldPath:
    """Names of another API, in which items stand one further down."""
    match path.steps:
        case ("messages", int() as index, *rest):
            return FieldPath.of("input", index + 1, *rest)
        case (str() as name, *rest):
            return FieldPath.of(NAMES.get(name, name), *rest)
    return path


def test_a_path_is_written_as_openai_does() -> None:
    path = FieldPath.of("messages", 2) / "content" / 0 / "text"
    assert str(path) == "messages[2].content[0].text"
    assert str(FieldPath.of("tools", 1) / FieldPath.of("function", "name")) == (
        "tools[1].function.name"
    )
    assert str(FieldPath()) == ""


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("messages[2].content[0].text", ("messages", 2, "content", 0, "text")),
        ("messages.[2].content", ("messages", 2, "content")),
        ("logit_bias.12", ("logit_bias", "12")),
        ("", ()),
        ("].[x]..", ("x",)),
    ],
)
def test_what_openai_writes_is_read_as_a_path(text: str, steps: tuple[str | int, ...]) -> None:
    assert FieldPath.read(text) == FieldPath(steps)


def test_what_a_caller_wrote_is_no_path() -> None:
    assert str(FieldPath.of("logit_bias", "a.b[0]")) == "logit_bias.a.b[0]"
    assert responses(FieldPath.of("messages[0]")) == FieldPath.of("messages[0]")


def test_an_api_spells_every_path_of_an_error() -> None:
    error = InvalidRequestError.of(
        [
            Violation.of("min_tokens", ErrorText.of("exceeds ", FieldPath.of("max_tokens"), ".")),
            Violation.of(FieldPath.of("messages", 2, "content"), "is no messages[2].content."),
        ]
    )
    plain = "min_tokens exceeds max_tokens. messages[2].content is no messages[2].content."
    assert (error.param, error.message) == ("min_tokens", plain)

    error.respell(responses)

    assert [violation.field for violation in error.violations] == ["min_tokens", "input[3].content"]
    assert [violation.message for violation in error.violations] == [
        "min_tokens exceeds max_output_tokens.",
        "input[3].content is no messages[2].content.",
    ]
    assert error.message == " ".join(violation.message for violation in error.violations)


def test_errors_from_serving_are_spelled_as_those_from_reading_are() -> None:
    error = ContextLengthExceededError.of_answer(FieldPath.of("max_tokens"), 9, 3, 10)
    error.respell(responses)
    assert error.param == "max_output_tokens"
    assert error.message.startswith("max_output_tokens asks for 9 tokens besides the 3 ")
