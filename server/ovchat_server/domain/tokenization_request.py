"""From untrusted fields to tokenize and detokenize requests: the rules, for both doors.

Three inputs are one request here: OVMS's `text`, vLLM's `prompt`, and `messages`, where the
fields of a chat request that shape its prompt mean what they mean there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.domain.chat import ChatRequest
from ovchat_server.domain.chat_request import (
    read_documents,
    read_effort,
    read_prompt_ending,
    read_template_kwargs,
)
from ovchat_server.domain.errors import Violation
from ovchat_server.domain.field_path import ErrorText, FieldPath
from ovchat_server.domain.generation_request import MAX_UINT32
from ovchat_server.domain.limits import DEFAULT_LIMITS, byte_size
from ovchat_server.domain.messages import read_messages
from ovchat_server.domain.parameters import DETOKENIZE, TOKENIZE
from ovchat_server.domain.reader import Reader
from ovchat_server.domain.tokenization import (
    DetokenizeRequest,
    PaddingSide,
    TextsInput,
    TokenizeRequest,
)
from ovchat_server.domain.tools import read_tool_choice, read_tools

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ovchat_server.domain.json_value import JsonValue
    from ovchat_server.domain.limits import Limits

# Reading more would keep others waiting.
MAX_TOKENS = 1 << 20

INPUTS = ("text", "prompt", "messages")
UNSUPPORTED = "unsupported_parameter"


def read_tokenize_request(
    fields: Mapping[str, JsonValue], *, strict: bool = False, limits: Limits = DEFAULT_LIMITS
) -> TokenizeRequest:
    """Read a tokenize request.

    Args:
        fields: OVMS's or vLLM's request object, from JSON or from the set fields of a message.
        strict: Refuse unknown fields instead of ignoring them.
        limits: How much it may hold.

    Raises:
        InvalidRequestError: With every fault found.
    """
    reader = Reader.of_request(fields, limits)
    model = reader.string("model") or ""
    request = TokenizeRequest(
        model=model,
        input=_read_input(reader, model),
        token_strings=reader.boolean("return_token_strs") or False,
        ignored=TOKENIZE.check(reader, strict=strict),
    )
    return reader.checked(request)


def read_detokenize_request(
    fields: Mapping[str, JsonValue], *, strict: bool = False, limits: Limits = DEFAULT_LIMITS
) -> DetokenizeRequest:
    """Read a detokenize request.

    Args:
        fields: vLLM's request object, from JSON or from the fields of a message.
        strict: Refuse unknown fields instead of ignoring them.
        limits: How much it may hold.

    Raises:
        InvalidRequestError: With every fault found.
    """
    reader = Reader.of_request(fields, limits)
    reader.require("tokens")
    request = DetokenizeRequest(
        model=reader.string("model") or "",
        tokens=_read_tokens(reader),
        ignored=DETOKENIZE.check(reader, strict=strict),
    )
    return reader.checked(request)


def _read_input(reader: Reader, model: str) -> TextsInput | ChatRequest:
    given = [name for name in INPUTS if reader.present(name)]
    if len(given) != 1:
        message = f"Exactly one of text, prompt and messages is required, got {_listed(given)}."
        code = "invalid_value" if given else "missing_required_parameter"
        field = FieldPath.of((given or INPUTS)[0])
        reader.violations.append(Violation(field, ErrorText.of(message), code))
        return TextsInput(())
    [kind] = given
    # What shapes a conversation's prompt cannot act on a text.
    return _read_chat(reader, model) if kind == "messages" else _read_texts(reader, kind)


def _read_texts(reader: Reader, kind: str) -> TextsInput:
    special_tokens = reader.boolean("add_special_tokens")
    side = reader.choice("padding_side", [*PaddingSide])
    texts = _read_strings(reader) if kind == "text" else (reader.string(kind) or "",)
    most, size = reader.limits.max_tokenized_bytes, byte_size(texts)
    if size > most:
        reader.refuse(kind, f"must have at most {most} bytes, got {size}")
    return TextsInput(
        texts=texts,
        # OVMS's default, and vLLM's of its prompts.
        special_tokens=special_tokens is not False,
        max_length=reader.integer("max_length", 1, MAX_UINT32),
        pad=reader.boolean("pad_to_max_length") or False,
        padding_side=PaddingSide(side or PaddingSide.RIGHT),
        name=kind,
    )


def _read_strings(reader: Reader) -> tuple[str, ...]:
    """Read OVMS's `text`: a string or an array of them."""
    value = reader.fields["text"]
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list):
        reader.refuse("text", "must be a string or an array of strings", "invalid_type")
        return ()
    if not value:
        reader.refuse("text", "must contain at least one string")
    if not reader.limit("text", value, reader.limits.max_texts, "strings"):
        return ()
    for index, item in enumerate(value):
        if not isinstance(item, str):
            reader.refuse(FieldPath.of("text", index), "must be a string", "invalid_type")
    return tuple(item for item in value if isinstance(item, str))


def _read_chat(reader: Reader, model: str) -> ChatRequest:
    """Read what a chat request with these fields would ask of the model."""
    complaint = "applies to text or prompt, not to messages"
    if reader.present("max_length"):
        reader.refuse("max_length", complaint, UNSUPPORTED)
    if reader.boolean("pad_to_max_length"):
        reader.refuse("pad_to_max_length", complaint, UNSUPPORTED)
    if reader.boolean("add_special_tokens"):
        # The template writes them.
        complaint = "is only supported as false with messages"
        reader.refuse("add_special_tokens", complaint, UNSUPPORTED)
    tools = read_tools(reader)
    return ChatRequest(
        model=model,
        messages=read_messages(reader),
        tools=tools,
        tool_choice=read_tool_choice(reader, tools),
        reasoning_effort=read_effort(reader),
        template_kwargs=read_template_kwargs(reader),
        documents=read_documents(reader),
        prompt_ending=read_prompt_ending(reader),
    )


def _read_tokens(reader: Reader) -> Sequence[int]:
    values = reader.array("tokens") or []
    if not reader.limit("tokens", values, MAX_TOKENS, "tokens"):
        return ()
    # At once, not one by one: there may be a million.
    tokens = [value for value in values if type(value) is int]
    if len(tokens) != len(values):
        for index, value in enumerate(values):
            if type(value) is not int:
                reader.refuse(FieldPath.of("tokens", index), "must be an integer", "invalid_type")
    return tokens


def _listed(names: Sequence[str]) -> str:
    return " and ".join(names) or "none"
