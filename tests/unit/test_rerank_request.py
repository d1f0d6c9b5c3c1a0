"""The rules of requests to rank and to score, and that both doors read the same."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from ovchat.v1 import rerank_service_pb2
from ovchat_server.domain.errors import InvalidRequestError, Violation
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.generation import Truncation, TruncationSide
from ovchat_server.domain.limits import DEFAULT_LIMITS
from ovchat_server.domain.pooling_parameters import RERANK, SCORE
from ovchat_server.domain.rerank import RerankRequest, ScoreRequest
from ovchat_server.domain.rerank_request import (
    ALL_PAIRS,
    PAIRS,
    read_rerank_request,
    read_score_request,
)
from ovchat_server.rpc.request import rerank_request, score_request

if TYPE_CHECKING:
    from collections.abc import Callable

LIMITS = dataclasses.replace(DEFAULT_LIMITS, max_documents=2)
RANKED: dict[str, Any] = {"query": "q", "documents": ["a", "b"]}
RANKED_REQUEST = RerankRequest(
    "", "q", ("a", "b"), (FieldPath.of("documents", 0), FieldPath.of("documents", 1))
)
SCORED: dict[str, Any] = {"queries": ["q"], "documents": ["a", "b"]}
SCORED_REQUEST = ScoreRequest(
    "",
    (("q", "a"), ("q", "b")),
    (FieldPath.of("documents", 0), FieldPath.of("documents", 1)),
    (FieldPath.of("queries", 0), FieldPath.of("queries", 0)),
)


def refused(read: Callable[..., Any], fields: dict[str, Any]) -> tuple[Violation, ...]:
    with pytest.raises(InvalidRequestError) as caught:
        read(fields, limits=LIMITS)
    return caught.value.violations


BOTH_SERVED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"model": "m"}, {"model": "m"}),
    ({"truncate_prompt_tokens": -1}, {"truncation": Truncation(None, TruncationSide.RIGHT)}),
    ({"truncate_prompt_tokens": 8}, {"truncation": Truncation(8, TruncationSide.RIGHT)}),
    ({"priority": 999}, {"priority": 999}),
    # Without effect.
    ({"user": "me", "request_id": "r", "cache_salt": "s"}, {}),
    ({"truncation_side": "right", "padding": "do_not_pad", "mm_processor_kwargs": {}}, {}),
    ({"use_activation": True, "activation": True, "softmax": True}, {}),
]
RERANK_SERVED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    *BOTH_SERVED,
    ({"documents": ["a", {"text": "b"}]}, {}),
    ({"documents": ["", "b"]}, {"documents": ("", "b")}),
    ({"top_n": 1}, {"top_n": 1}),
    # More than there are is all.
    ({"top_n": 100}, {"top_n": 100}),
    ({"return_documents": True}, {"return_documents": True}),
    ({"max_tokens_per_doc": 1}, {"max_tokens_per_doc": 1}),
    ({"query": " "}, {"query": " "}),
    ({"rank_fields": ["text"], "max_chunks_per_doc": 1, "raw_scores": False}, {}),
]


@pytest.mark.parametrize(("given", "expected"), RERANK_SERVED)
def test_a_request_to_rank_is_read(given: dict[str, Any], expected: dict[str, Any]) -> None:
    request = read_rerank_request({**RANKED, **given}, strict=True)

    assert request == dataclasses.replace(RANKED_REQUEST, **expected)


@pytest.mark.parametrize(("given", "expected"), BOTH_SERVED)
def test_a_request_to_score_is_read(given: dict[str, Any], expected: dict[str, Any]) -> None:
    request = read_score_request({**SCORED, **given}, strict=True)

    assert request == dataclasses.replace(SCORED_REQUEST, **expected)


def test_a_null_is_absent() -> None:
    nulls = dict.fromkeys([*RERANK.served, *RERANK.accepted, *RERANK.refused])
    assert read_rerank_request({**nulls, **RANKED}, strict=True) == RANKED_REQUEST
    nulls = dict.fromkeys([*SCORE.served, *SCORE.accepted, *SCORE.refused])
    assert read_score_request({**nulls, **SCORED}, strict=True) == SCORED_REQUEST


def test_the_tables_have_every_parameter() -> None:
    given = {name for fields, _ in RERANK_SERVED for name in fields}

    neutral = {name for name, values in RERANK.refused.items() if values}
    assert given == RERANK.served | RERANK.accepted | neutral


def test_what_else_a_document_has_is_named() -> None:
    documents: Any = ["a", {"title": "t", "text": "b", "url": "u"}]

    request = read_rerank_request({"query": "q", "documents": documents, "more": 1})

    assert request.documents == ("a", "b")
    assert request.ignored == ("more", "documents[1].title", "documents[1].url")
    with pytest.raises(InvalidRequestError) as caught:
        read_rerank_request({"query": "q", "documents": documents}, strict=True)
    assert caught.value.param == "documents[1].title"


BOTH_WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"model": 1}, "model", "invalid_type"),
    ({"truncate_prompt_tokens": 0}, "truncate_prompt_tokens", "invalid_value"),
    ({"truncate_prompt_tokens": 1.5}, "truncate_prompt_tokens", "invalid_type"),
    ({"priority": "high"}, "priority", "invalid_type"),
    ({"truncation_side": "left"}, "truncation_side", "unsupported_parameter"),
    ({"mm_processor_kwargs": {"a": 1}}, "mm_processor_kwargs", "unsupported_parameter"),
    ({"use_activation": False}, "use_activation", "unsupported_parameter"),
    ({"activation": False}, "activation", "unsupported_parameter"),
    ({"softmax": False}, "softmax", "unsupported_parameter"),
    ({"documents": None}, "documents", "missing_required_parameter"),
    ({"documents": []}, "documents", "invalid_value"),
    ({"documents": 5}, "documents", "invalid_type"),
    ({"documents": ["a", "b", "c"]}, "documents", "invalid_value"),
    ({"documents": ["a", 5]}, "documents[1]", "invalid_type"),
    ({"documents": ["a", None]}, "documents[1]", "invalid_type"),
]


@pytest.mark.parametrize(
    ("fields", "field", "code"),
    [
        *BOTH_WRONG,
        ({"query": None}, "query", "missing_required_parameter"),
        ({"query": ""}, "query", "invalid_value"),
        ({"query": ["q"]}, "query", "invalid_type"),
        ({"documents": "a"}, "documents", "invalid_type"),
        ({"documents": [{}]}, "documents[0].text", "missing_required_parameter"),
        ({"documents": [{"text": None}]}, "documents[0].text", "missing_required_parameter"),
        ({"documents": [{"text": 5}]}, "documents[0].text", "invalid_type"),
        ({"documents": [["a"]]}, "documents[0]", "invalid_type"),
        ({"top_n": 0}, "top_n", "invalid_value"),
        ({"top_n": "1"}, "top_n", "invalid_type"),
        ({"return_documents": "yes"}, "return_documents", "invalid_type"),
        ({"max_tokens_per_doc": 0}, "max_tokens_per_doc", "invalid_value"),
        ({"rank_fields": ["title"]}, "rank_fields", "unsupported_parameter"),
        ({"max_chunks_per_doc": 10}, "max_chunks_per_doc", "unsupported_parameter"),
    ],
)
def test_a_request_to_rank_is_refused_by_name(
    fields: dict[str, Any], field: str, code: str
) -> None:
    [violation] = refused(read_rerank_request, {**RANKED, **fields})

    assert (violation.field, violation.code) == (field, code)
    assert violation.message.startswith(field)


@pytest.mark.parametrize(
    ("fields", "field", "code"),
    [
        *BOTH_WRONG,
        ({"queries": None}, "queries", "missing_required_parameter"),
        ({"queries": []}, "queries", "invalid_value"),
        ({"queries": ["a"] * 3}, "queries", "invalid_value"),
        ({"queries": {"text": "a"}}, "queries", "invalid_type"),
        ({"queries": [{"text": "a"}]}, "queries[0]", "invalid_type"),
        ({"queries": ["a", "b"], "documents": "c"}, "queries", "invalid_value"),
        ({"queries": ["a", "b"], "documents": ["c"]}, "queries", "invalid_value"),
    ],
)
def test_a_request_to_score_is_refused_by_name(
    fields: dict[str, Any], field: str, code: str
) -> None:
    [violation] = refused(read_score_request, {**SCORED, **fields})

    assert (violation.field, violation.code) == (field, code)
    assert violation.message.startswith(field)


def test_every_fault_is_told_at_once() -> None:
    fields = {"query": "", "documents": [1], "top_n": 0, "rank_fields": ["a"]}

    assert [violation.field for violation in refused(read_rerank_request, fields)] == [
        "query",
        "documents[0]",
        "top_n",
        "rank_fields",
    ]


@pytest.mark.parametrize("names", PAIRS)
@pytest.mark.parametrize(
    ("texts", "pairs", "inner"),
    [
        (("a", "b"), [("a", "b")], [""]),
        (("a", ["b"]), [("a", "b")], ["[0]"]),
        ((["a"], "b"), [("a", "b")], [""]),
        (("a", ["b", "c"]), [("a", "b"), ("a", "c")], ["[0]", "[1]"]),
        ((["a"], ["b", "c"]), [("a", "b"), ("a", "c")], ["[0]", "[1]"]),
        ((["a", "d"], ["b", "c"]), [("a", "b"), ("d", "c")], ["[0]", "[1]"]),
        (("", ["", "c"]), [("", ""), ("", "c")], ["[0]", "[1]"]),
    ],
)
def test_texts_are_paired_whatever_they_are_called(
    names: tuple[str, str],
    texts: tuple[Any, Any],
    pairs: list[tuple[str, str]],
    inner: list[str],
) -> None:
    request = read_score_request(dict(zip(names, texts, strict=True)), strict=True)

    assert list(request.pairs) == pairs
    assert [str(path) for path in request.pair_fields] == [names[1] + step for step in inner]
    assert {str(path).partition("[")[0] for path in request.first_fields} == {names[0]}


@pytest.mark.parametrize(
    ("fields", "messages"),
    [
        ({}, ["queries is required.", "documents is required."]),
        ({"text_1": "a"}, ["text_2 is required."]),
        ({"data_2": "a"}, ["data_1 is required."]),
        ({"items": "a"}, ["queries is required."]),
        (
            {"queries": "a", "text_2": "b"},
            [f"Exactly one pair of {ALL_PAIRS} is required, got queries and text_2."],
        ),
        (
            {"text_1": ["a", "b"], "text_2": "c"},
            ["text_1 and text_2 must hold texts 1:1, 1:N or N:N, got 2:1."],
        ),
    ],
)
def test_texts_that_make_no_pairs_are_refused(fields: dict[str, Any], messages: list[str]) -> None:
    assert [violation.message for violation in refused(read_score_request, fields)] == messages


def test_three_sides_are_refused_by_the_last() -> None:
    fields = {"queries": "a", "documents": "b", "items": "c"}

    [violation] = refused(read_score_request, fields)

    assert violation.field == "items"
    assert "got queries and documents and items" in violation.message


TYPED_RANKED: list[dict[str, Any]] = [
    {},
    {"model": "m"},
    {"query": "other"},
    {"documents": ["", "c", "a"]},
    {"top_n": 3},
    {"return_documents": True},
    {"max_tokens_per_doc": 7},
    {"truncate_prompt_tokens": -1},
    {"priority": -5},
    {"user": "me"},
]
TYPED_SCORED: list[dict[str, Any]] = [
    {},
    {"model": "m"},
    {"queries": ["a", "b"]},
    {"documents": ["c"]},
    {"truncate_prompt_tokens": 9},
    {"priority": 1},
    {"user": "me"},
]


@pytest.mark.parametrize("fields", TYPED_RANKED)
def test_both_doors_read_the_same_request_to_rank(fields: dict[str, Any]) -> None:
    asked = {**RANKED, **fields}

    message = rerank_service_pb2.RerankRequest(**asked)

    assert rerank_request(message) == read_rerank_request(asked)


@pytest.mark.parametrize("fields", TYPED_SCORED)
def test_both_doors_read_the_same_request_to_score(fields: dict[str, Any]) -> None:
    asked = {**SCORED, **fields}

    message = rerank_service_pb2.ScoreRequest(**asked)

    assert score_request(message) == read_score_request(asked)


def test_the_tables_have_every_field_of_the_contract() -> None:
    ranked = set(rerank_service_pb2.RerankRequest.DESCRIPTOR.fields_by_name)
    scored = set(rerank_service_pb2.ScoreRequest.DESCRIPTOR.fields_by_name)

    assert ranked == {name for fields in TYPED_RANKED for name in fields}
    assert ranked <= RERANK.served | RERANK.accepted
    assert scored == {name for fields in TYPED_SCORED for name in fields}
    assert scored <= SCORE.served | SCORE.accepted


@pytest.mark.parametrize(
    ("fields", "paths"),
    [
        ({}, ["query", "documents"]),
        ({"query": "q", "documents": ["a"] * 3}, ["documents"]),
        ({"query": "q", "documents": ["a"], "top_n": 0}, ["top_n"]),
    ],
)
def test_a_message_to_rank_is_refused_by_name(fields: dict[str, Any], paths: list[str]) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        rerank_request(rerank_service_pb2.RerankRequest(**fields), LIMITS)

    assert [violation.field for violation in caught.value.violations] == paths


@pytest.mark.parametrize(
    ("fields", "paths"),
    [
        ({}, ["queries", "documents"]),
        ({"queries": ["a"]}, ["documents"]),
        ({"queries": ["a", "b"], "documents": ["c"]}, ["queries"]),
        ({"queries": ["a"], "documents": ["c"] * 3}, ["documents"]),
    ],
)
def test_a_message_to_score_is_refused_by_name(fields: dict[str, Any], paths: list[str]) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        score_request(rerank_service_pb2.ScoreRequest(**fields), LIMITS)

    assert [violation.field for violation in caught.value.violations] == paths
