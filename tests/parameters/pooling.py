"""Embeddings, rerank and score: the effects of their parameters, and their values."""

from __future__ import annotations

from math import hypot
from typing import TYPE_CHECKING, Any

import pytest

from ovchat_server.domain.rerank_request import PAIRS, TEXT_NAMES
from tests.parameters.case import Bound, Effect, Fields
from tests.pooling_folders import TOLERANCE, folder_settings, furthest

if TYPE_CHECKING:
    from tests.parameters.pooling_answers import Pooled

# One whose vectors may be cut, one with prompts, and one that ranks.
MODELS = (
    folder_settings("bert", matryoshka=True),
    folder_settings("qwen3-embedding"),
    folder_settings("bert-rerank"),
)
DOCUMENTS = ["The cat sits on the mat.", "Rain is wet.", "a"]
LONG = "The cat sits on the mat, and the rain is wet."
CAT: Fields = {"model": "bert", "input": "cat"}
CUT: Fields = {"model": "bert", "input": LONG, "truncate_prompt_tokens": 6}
PROMPTED: Fields = {**CAT, "model": "qwen3-embedding"}
RANKED: Fields = {"model": "bert-rerank", "query": "cat", "documents": DOCUMENTS}
SCORED: Fields = {"model": "bert-rerank", "queries": "cat", "documents": LONG}
SHORT: dict[str, Fields] = {"embeddings": CAT, "rerank": RANKED, "score": SCORED}
# Where one model is of the type, it need not be named.
REQUIRED: dict[str, tuple[str, ...]] = {
    "embeddings": ("model", "input"),
    "rerank": ("query", "documents"),
    "score": ("queries", "documents"),
}


def score_base(name: str, value: Any) -> Fields:
    """A request without other texts than those that go with the parameter."""
    if name not in TEXT_NAMES or value is None:
        return SCORED
    [other] = next({*pair} - {name} for pair in PAIRS if name in pair)
    texts = ["x"] * len(value) if isinstance(value, list) and value else "x"
    return {"model": SCORED["model"], other: texts}


def _is_the_same(without: Pooled, given: Pooled) -> bool:
    return without == given


def _differs(without: Pooled, given: Pooled) -> bool:
    return (without.vectors, without.scores) != (given.vectors, given.scores)


def _first_differs(without: Pooled, given: Pooled) -> bool:
    """The vector, or the score, is another one; there are several."""
    return (
        len(given.vectors + given.scores) > 1
        and (  # type: ignore[operator]
            (without.vectors[:1], without.scores[:1]) != (given.vectors[:1], given.scores[:1])
        )
    )


def _has_fewer_tokens(without: Pooled, given: Pooled) -> bool:
    return given.tokens < without.tokens and _differs(without, given)


def _has_more_tokens(without: Pooled, given: Pooled) -> bool:
    return _has_fewer_tokens(given, without)


def _is_coded(without: Pooled, given: Pooled) -> bool:
    return (without.coded, given.coded) == (False, True) and without.vectors == given.vectors


def _is_cut(without: Pooled, given: Pooled) -> bool:
    """The first numbers are left, made as long as they all were."""
    kept = without.vectors[0][:8]
    wanted = [number / hypot(*kept) for number in kept]
    return furthest(given.vectors, [wanted]) < TOLERANCE


def _is_as_it_was(without: Pooled, given: Pooled) -> bool:
    """The same direction, in a length of its own."""
    length = hypot(*given.vectors[0])
    wanted = [number * length for number in without.vectors[0]]
    return length != pytest.approx(1) and furthest(given.vectors, [wanted]) < TOLERANCE * length


def _is_the_best(without: Pooled, given: Pooled) -> bool:
    return (given.order, given.scores) == (without.order[:1], without.scores[:1])


def _has_texts(without: Pooled, given: Pooled) -> bool:
    told = [DOCUMENTS[index] for index in without.order]
    return (without.documents, given.documents) == ([], told) and not _differs(without, given)


def _embeds(name: str, base: Fields, value: Any, shows: Any, why: str = "") -> Effect:
    return Effect("embeddings", name, base, {name: value}, shows, why)


def _ranks(name: str, value: Any, shows: Any, why: str = "") -> Effect:
    return Effect("rerank", name, RANKED, {name: value}, shows, why)


def _scores(name: str, value: Any, shows: Any, why: str = "") -> Effect:
    return Effect("score", name, SCORED, {name: value}, shows, why)


EFFECTS: list[Effect] = [
    _embeds("model", CAT, "qwen3-embedding", _differs),
    _embeds("input", CAT, "mat", _differs),
    _embeds("input", CAT, ["cat"], _is_the_same, "an array of one"),
    _embeds("input", CAT, ["mat", "cat"], _first_differs, "several"),
    *(
        _embeds("input", CAT, value, _is_the_same, f"tokens {value}")
        for value in ([2, 118, 3], [[2, 118, 3]])
    ),
    _embeds("encoding_format", CAT, "base64", _is_coded),
    _embeds("encoding_format", CAT, "float", _is_the_same, "float"),
    _embeds("dimensions", CAT, 8, _is_cut),
    _embeds("dimensions", CAT, 32, _is_the_same, "all of them"),
    _embeds(
        "truncate_prompt_tokens",
        {**CAT, "input": LONG},
        6,
        lambda without, given: given.tokens == 6 and _has_fewer_tokens(without, given),
    ),
    _embeds(
        "truncation_side",
        CUT,
        "left",
        lambda without, given: given.tokens == without.tokens and _differs(without, given),
    ),
    _embeds("truncation_side", CUT, "right", _is_the_same, "right"),
    _embeds("add_special_tokens", CAT, value=False, shows=_has_fewer_tokens),
    *(
        _embeds(name, CAT, value=False, shows=_is_as_it_was)
        for name in ("normalize", "use_activation")
    ),
    _embeds("prompt_name", PROMPTED, "query", _has_more_tokens),
    *(
        _embeds("input_type", PROMPTED, word, _has_more_tokens, word)
        for word in ("query", "search_query")
    ),
    *(
        _embeds("input_type", PROMPTED, word, _is_the_same, word)
        for word in ("document", "passage", "search_document")
    ),
    _embeds("priority", CAT, 9, _is_the_same),
    _ranks("model", "bert", _differs),
    _ranks("query", "rain", _differs),
    _ranks("documents", ["rain", "wet"], _first_differs),
    _ranks("documents", [{"text": text} for text in DOCUMENTS], _is_the_same, "objects"),
    _ranks("top_n", 1, _is_the_best),
    _ranks("top_n", 4, _is_the_same, "more than there are"),
    _ranks("return_documents", value=True, shows=_has_texts),
    _ranks("max_tokens_per_doc", 2, _has_fewer_tokens),
    _ranks("truncate_prompt_tokens", 6, _has_fewer_tokens),
    _ranks("priority", 9, _is_the_same),
    _scores("model", "bert", _differs),
    _scores("queries", "rain", _differs),
    _scores("documents", ["rain", "a"], _first_differs),
    _scores("documents", [LONG], _is_the_same, "an array of one"),
    _scores("truncate_prompt_tokens", 6, _has_fewer_tokens),
    _scores("priority", 9, _is_the_same),
    # The same texts under other names.
    *(
        Effect(
            "score",
            name,
            SCORED,
            {"queries": None, "documents": None, first: "cat", second: LONG},
            _is_the_same,
        )
        for first, second in PAIRS[1:]
        for name in (first, second)
        if name != "queries"
    ),
]


def _bound(
    endpoint: str, name: str, accepted: tuple[Any, ...], refused: tuple[Any, ...], **others: Any
) -> Bound:
    return Bound(endpoint, name, accepted, refused, {**SHORT[endpoint], **others})


def _many(count: int) -> list[str]:
    return ["x"] * count


def _texts(first: str, second: str) -> list[Bound]:
    """One with one or with many, or as many with as many."""
    base = {"model": SCORED["model"]}
    few, many = (_many(2), _many(1024))
    return [
        Bound("score", first, ("x", "", ["x"], few), ([], _many(3)), {**base, second: few}),
        Bound("score", first, (many,), (few,), {**base, second: many}),
        Bound("score", first, (), (_many(1025),), {**base, second: "x"}),
        Bound("score", second, ("x", "", ["x"], many), ([], _many(1025)), {**base, first: "x"}),
        Bound("score", second, (few,), (), {**base, first: few}),
    ]


PRIORITIES = (-(2**31), 2**31 - 1), (-(2**31) - 1, 2**31)
# At least one token of a text beside its special tokens, of pairs also beside the query.
LEAST = {"embeddings": 3, "rerank": 5, "score": 5}
BOUNDS: list[Bound] = [
    _bound(
        "embeddings",
        "input",
        ("a", ["a"], _many(2048), [0], [[287]], ["a", "b"]),
        ("", [], [""], [[]], ["a", ""], _many(2049), [-1], [288], [[288]], [2**32], "cat " * 47),
    ),
    _bound("embeddings", "encoding_format", ("float", "base64"), ("int8", "")),
    _bound("embeddings", "dimensions", (1, 32), (0, -1, 33, 2**32)),
    _bound("embeddings", "dimensions", (32,), (8, 31, 33), model="qwen3-embedding"),
    _bound("embeddings", "truncation_side", ("left", "right"), ("top", "")),
    _bound("embeddings", "prompt_name", ("query", "document"), ("no", ""), model="qwen3-embedding"),
    _bound("embeddings", "prompt_name", (), ("query",)),
    _bound(
        "embeddings",
        "input_type",
        ("query", "document", "passage", "search_query", "search_document"),
        ("classification", ""),
    ),
    _bound("embeddings", "input_type", (), ("query",), **PROMPTED, prompt_name="query"),
    _bound("embeddings", "use_activation", (True,), (False,), normalize=True),
    _bound("rerank", "query", ("x",), ("",)),
    _bound(
        "rerank",
        "documents",
        (["x"], [""], [{"text": ""}], _many(1024)),
        ([], [{}], _many(1025), ["x", "cat " * 127]),
    ),
    _bound("rerank", "top_n", (1, 2**32 - 1), (0, -1, 2**32)),
    _bound("rerank", "max_tokens_per_doc", (1, 2**32 - 1), (0, -1, 2**32)),
    *(bound for first, second in PAIRS for bound in _texts(first, second)),
    *(_bound(endpoint, "priority", *PRIORITIES) for endpoint in SHORT),
    *(
        _bound(
            endpoint, "truncate_prompt_tokens", (-1, least, 2**31 - 1), (-2, 0, least - 1, 2**32)
        )
        for endpoint, least in LEAST.items()
    ),
]
