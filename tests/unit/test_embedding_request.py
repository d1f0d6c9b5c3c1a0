"""The rules of requests for embeddings, and that both doors read the same."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from ovchat.v1 import completion_pb2, embedding_service_pb2
from ovchat_server.domain.embedding_request import read_embedding_request
from ovchat_server.domain.embeddings import EmbeddingRequest, EncodingFormat, InputType
from ovchat_server.domain.errors import InvalidRequestError, Violation
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.generation import Truncation, TruncationSide
from ovchat_server.domain.limits import DEFAULT_LIMITS
from ovchat_server.domain.pooling_parameters import EMBEDDINGS
from ovchat_server.rpc.request import embedding_request

MAX_UINT32 = 2**32 - 1
LIMITS = dataclasses.replace(DEFAULT_LIMITS, max_texts=2)
FIRST = FieldPath.of("input", 0)
PLAIN = EmbeddingRequest("", ("Hi",), (FIRST,))


def text(value: str) -> completion_pb2.Prompt:
    return completion_pb2.Prompt(text=value)


def tokens(*values: int) -> completion_pb2.Prompt:
    return completion_pb2.Prompt(token_ids=completion_pb2.TokenIds(values=values))


def message(**fields: Any) -> embedding_service_pb2.CreateEmbeddingsRequest:
    fields = {"input": [text("Hi")]} | fields
    return embedding_service_pb2.CreateEmbeddingsRequest(**fields)


def read(**fields: Any) -> EmbeddingRequest:
    return read_embedding_request({"input": ["Hi"], **fields})


def refused(fields: dict[str, Any]) -> tuple[Violation, ...]:
    with pytest.raises(InvalidRequestError) as caught:
        read_embedding_request(fields, limits=LIMITS)
    return caught.value.violations


@pytest.mark.parametrize(
    ("given", "inputs", "paths"),
    [
        ("a", ("a",), ["input"]),
        (" ", (" ",), ["input"]),
        (["a", "b"], ("a", "b"), ["input[0]", "input[1]"]),
        ([1, 2], ((1, 2),), ["input"]),
        ([[0], [MAX_UINT32]], ((0,), (MAX_UINT32,)), ["input[0]", "input[1]"]),
        (["a", [1, 2]], ("a", (1, 2)), ["input[0]", "input[1]"]),
    ],
)
def test_an_input_is_a_text_or_tokens_or_several(
    given: Any, inputs: tuple[Any, ...], paths: list[str]
) -> None:
    request = read(input=given)

    assert request.inputs == inputs
    assert [str(path) for path in request.input_fields] == paths


def test_what_is_absent_has_its_default() -> None:
    assert read() == PLAIN
    nulls = dict.fromkeys([*EMBEDDINGS.served, *EMBEDDINGS.accepted, *EMBEDDINGS.refused])
    assert read_embedding_request({**nulls, "input": ["Hi"]}, strict=True) == PLAIN


SERVED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"model": "m"}, {"model": "m"}),
    ({"encoding_format": "base64"}, {"encoding_format": EncodingFormat.BASE64}),
    ({"encoding_format": "float"}, {}),
    ({"dimensions": 1}, {"dimensions": 1}),
    ({"truncate_prompt_tokens": -1}, {"truncation": Truncation(None, TruncationSide.RIGHT)}),
    ({"truncate_prompt_tokens": 8}, {"truncation": Truncation(8, TruncationSide.RIGHT)}),
    (
        {"truncate_prompt_tokens": 8, "truncation_side": "left"},
        {"truncation": Truncation(8, TruncationSide.LEFT)},
    ),
    ({"truncation_side": "left"}, {}),
    ({"add_special_tokens": False}, {"special_tokens": False}),
    ({"normalize": False}, {"normalize": False}),
    ({"use_activation": True}, {"normalize": True}),
    ({"normalize": False, "use_activation": False}, {"normalize": False}),
    ({"prompt_name": "s2p"}, {"prompt_name": "s2p"}),
    ({"input_type": "query"}, {"input_type": InputType.QUERY}),
    ({"input_type": "document"}, {"input_type": InputType.DOCUMENT}),
    ({"input_type": "passage"}, {"input_type": InputType.DOCUMENT}),
    ({"input_type": "search_query"}, {"input_type": InputType.QUERY}),
    ({"input_type": "search_document"}, {"input_type": InputType.DOCUMENT}),
    ({"priority": -3}, {"priority": -3}),
    # Without effect.
    ({"user": "me", "request_id": "r", "cache_salt": "s"}, {}),
    ({"embed_dtype": "float32", "endianness": "native", "padding": "do_not_pad"}, {}),
    ({"endianness": "little", "chat_template_kwargs": {}, "truncate": "NONE"}, {}),
]


@pytest.mark.parametrize(("given", "expected"), SERVED)
def test_what_is_served_is_read(given: dict[str, Any], expected: dict[str, Any]) -> None:
    request = read_embedding_request({"input": ["Hi"], **given}, strict=True)

    assert request == dataclasses.replace(PLAIN, **expected)


def test_the_tables_have_every_parameter() -> None:
    given = {name for fields, _ in SERVED for name in fields}

    assert given >= EMBEDDINGS.served - {"input"} | EMBEDDINGS.accepted


def test_unknown_keys_are_named() -> None:
    assert read(tasks="x", late="y").ignored == ("tasks", "late")
    with pytest.raises(InvalidRequestError, match="tasks is not a known parameter"):
        read_embedding_request({"input": "a", "tasks": "x"}, strict=True)


@pytest.mark.parametrize(
    ("fields", "field", "code"),
    [
        ({}, "input", "missing_required_parameter"),
        ({"input": None}, "input", "missing_required_parameter"),
        ({"input": ""}, "input", "invalid_value"),
        ({"input": []}, "input", "invalid_value"),
        ({"input": 5}, "input", "invalid_type"),
        ({"input": {"text": "a"}}, "input", "invalid_type"),
        ({"input": ["a", ""]}, "input[1]", "invalid_value"),
        ({"input": [[1], []]}, "input[1]", "invalid_value"),
        ({"input": ["a", 5]}, "input[1]", "invalid_type"),
        ({"input": ["a", None]}, "input[1]", "invalid_type"),
        ({"input": ["a", True]}, "input[1]", "invalid_type"),
        ({"input": [-1]}, "input[0]", "invalid_value"),
        ({"input": ["a", [1, 2**32]]}, "input[1][1]", "invalid_value"),
        ({"input": ["a", [1, "b"]]}, "input[1][1]", "invalid_type"),
        ({"input": ["a", "b", "c"]}, "input", "invalid_value"),
        ({"model": 5}, "model", "invalid_type"),
        ({"encoding_format": "bytes"}, "encoding_format", "invalid_value"),
        ({"dimensions": 0}, "dimensions", "invalid_value"),
        ({"dimensions": "8"}, "dimensions", "invalid_type"),
        ({"truncate_prompt_tokens": 0}, "truncate_prompt_tokens", "invalid_value"),
        ({"truncate_prompt_tokens": -2}, "truncate_prompt_tokens", "invalid_value"),
        ({"truncation_side": "middle"}, "truncation_side", "invalid_value"),
        ({"add_special_tokens": 1}, "add_special_tokens", "invalid_type"),
        ({"normalize": "yes"}, "normalize", "invalid_type"),
        ({"normalize": True, "use_activation": False}, "use_activation", "invalid_value"),
        ({"prompt_name": 1}, "prompt_name", "invalid_type"),
        ({"input_type": "classification"}, "input_type", "invalid_value"),
        ({"input_type": "query", "prompt_name": "q"}, "input_type", "invalid_value"),
        ({"priority": 2**31}, "priority", "invalid_value"),
        ({"embed_dtype": "float16"}, "embed_dtype", "unsupported_parameter"),
        ({"endianness": "big"}, "endianness", "unsupported_parameter"),
        ({"padding": "max_length"}, "padding", "unsupported_parameter"),
        ({"truncate": "END"}, "truncate", "unsupported_parameter"),
        ({"messages": []}, "messages", "unsupported_parameter"),
        ({"chat_template": "x"}, "chat_template", "unsupported_parameter"),
        ({"mm_processor_kwargs": {"a": 1}}, "mm_processor_kwargs", "unsupported_parameter"),
    ],
)
def test_what_is_wrong_is_refused_by_name(fields: dict[str, Any], field: str, code: str) -> None:
    base = {"input": "a"} if fields and "input" not in fields else {}

    [violation] = refused({**base, **fields})

    assert (violation.field, violation.code) == (field, code)
    assert violation.message.startswith(field)


def test_every_fault_is_told_at_once() -> None:
    fields = {"input": ["", "b"], "dimensions": 0, "encoding_format": "x", "messages": []}

    assert [violation.field for violation in refused(fields)] == [
        "input[0]",
        "encoding_format",
        "dimensions",
        "messages",
    ]


# As the contract's message, as OpenAI's JSON.
PAIRS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"input": [text("a"), tokens(1, 2)]}, {"input": ["a", [1, 2]]}),
    ({"input": [tokens(0, MAX_UINT32)]}, {"input": [[0, MAX_UINT32]]}),
    ({"input_type": embedding_service_pb2.INPUT_TYPE_QUERY}, {"input_type": "query"}),
    ({"input_type": embedding_service_pb2.INPUT_TYPE_DOCUMENT}, {"input_type": "document"}),
    *(
        (fields, fields)
        for fields in (
            {"model": "m"},
            {"dimensions": 8},
            {"normalize": False},
            {"prompt_name": "s2p"},
            {"add_special_tokens": False},
            {"truncate_prompt_tokens": -1},
            {"truncate_prompt_tokens": 5, "truncation_side": "left"},
            {"priority": -1},
            {"user": "me"},
        )
    ),
]


@pytest.mark.parametrize(("typed", "plain"), PAIRS)
def test_both_doors_read_the_same_request(typed: dict[str, Any], plain: dict[str, Any]) -> None:
    assert embedding_request(message(**typed)) == read(**plain)


def test_the_pairs_have_every_field_of_the_contract() -> None:
    fields = set(embedding_service_pb2.CreateEmbeddingsRequest.DESCRIPTOR.fields_by_name)

    assert {name for typed, _ in PAIRS for name in typed} == fields
    assert fields <= EMBEDDINGS.served | EMBEDDINGS.accepted


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"input": []}, "input"),
        ({"input": [text("a"), text("")]}, "input[1]"),
        ({"input": [text("a"), tokens()]}, "input[1]"),
        ({"input": [text("a"), completion_pb2.Prompt()]}, "input[1]"),
        ({"input": [text("a")] * 3}, "input"),
        ({"dimensions": 0}, "dimensions"),
        ({"truncation_side": "up"}, "truncation_side"),
        ({"input_type": 7}, "input_type"),
        (
            {"input_type": embedding_service_pb2.INPUT_TYPE_QUERY, "prompt_name": "q"},
            "input_type",
        ),
    ],
)
def test_a_message_is_refused_with_the_contracts_paths(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        embedding_request(message(**fields), LIMITS)

    [violation] = caught.value.violations
    assert violation.field == field
    assert violation.message.startswith(field)
