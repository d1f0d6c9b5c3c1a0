"""Random JSON bodies: what callers send, and what they should not."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import strategies as st

from tests.parameters import values
from tests.parameters.checks import BOUNDS, EFFECTS, KNOWN, wrong_types

Json = Any

# Stands for text that no value of Python writes as JSON.
MOST_CHARACTERS = 100_000
HOLE = "\N{SNOWMAN}hole\N{SNOWMAN}"
RAW = (
    "NaN",
    "-Infinity",
    "1e999",
    "-0.0",
    "1" * 400,
    "1" * 5000,
    "1." + "1" * 5000,
    "01",
    "+1",
    "0x1",
    "'a'",
    "undefined",
    r'"\ud800"',
    r'"\udc00\ud800"',
    r'"\u0000"',
    '"\t"',
    '{"a":1,"a":2}',
    '{"":{}}',
    '{"__proto__":1,"constructor":{}}',
    "[" * 90 + "]" * 90,
    "[" * 900 + "]" * 900,
    "[" * 30_000 + "]" * 30_000,
    '{"a":' * 400 + "1" + "}" * 400,
    '{"type":"array","items":' * 120 + "1" + "}" * 120,
    "[" * 50_000,
    "[" + "1," * 20_000 + "1]",
    '"' + "x" * 100_000 + '"',
    "",
)
NUMBERS = st.one_of(
    st.integers(-3, 300),
    st.sampled_from([2**31, 2**32, 2**53, 2**63, 2**64, -(2**63) - 1, 10**30]),
    st.floats(),
)
STRINGS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["", "\0", "\x7f", "{{ 1 }}", "{% raw %}", "<|im_end|>", "\u202e", "a" * 2000]),
    st.sampled_from(["(" * 200, "[", "\\", "(a*)*b", "root ::= root", "{", '{"type":"object"}']),
)
LEAVES = st.one_of(st.none(), st.booleans(), NUMBERS, STRINGS)
KEYS = st.one_of(
    st.sampled_from(
        sorted({name for known in KNOWN.values() for name in (*known.served, *known.refused)})
    ),
    st.sampled_from(["type", "function", "role", "content", "name", "properties", "$ref", "enum"]),
    st.text(max_size=8),
)
ANYTHING: st.SearchStrategy[Json] = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=8,
)


def _pool() -> dict[tuple[str, str], list[Json]]:
    """For each parameter of an endpoint the values that other tests know of it."""
    pool: dict[tuple[str, str], list[Json]] = {}
    for bound in BOUNDS:
        pool.setdefault((bound.endpoint, bound.name), []).extend((*bound.accepted, *bound.refused))
    for effect in EFFECTS:
        for name, value in {**effect.base, **effect.given}.items():
            pool.setdefault((effect.endpoint, name), []).append(value)
    for endpoint, known in KNOWN.items():
        for name in known.served:
            pool.setdefault((endpoint, name), []).extend(wrong_types(endpoint, name))
        for name, (refused, neutral) in values.REFUSED.items():
            if name in known.refused:
                pool.setdefault((endpoint, name), []).extend((*refused, *neutral))
        for name in known.accepted:
            pool.setdefault((endpoint, name), []).extend(values.ACCEPTED.get(name, ()))
    # Megabytes only take their time.
    return {
        key: [value for value in found if len(repr(value)) < MOST_CHARACTERS]
        for key, found in pool.items()
    }


POOL = _pool()


@st.composite
def objects(draw: st.DrawFn, endpoint: str) -> dict[str, Json]:
    """A request's object: a plain one, further parameters, and some of it changed."""
    request: dict[str, Json] = dict(values.SHORT[endpoint])
    names = sorted(name for known, name in POOL if known == endpoint)
    for name in draw(st.lists(st.sampled_from(names), max_size=4, unique=True)):
        request[name] = draw(st.sampled_from(POOL[endpoint, name]))
    request = copy.deepcopy(request)
    for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2]))):
        _change(draw, request)
    return request


@st.composite
def bodies(draw: st.DrawFn, endpoint: str) -> bytes:
    """The bytes of a request's body."""
    request = draw(objects(endpoint))
    if draw(st.integers(0, 3)) == 0:
        _put(draw, request, HOLE)
    text = json.dumps(request, ensure_ascii=draw(st.booleans()))
    hole = json.dumps(HOLE)
    for written in (hole, json.dumps(HOLE, ensure_ascii=False)):
        text = text.replace(written, draw(st.sampled_from(RAW)) if written in text else written)
    body = text.encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 3)):
        return body
    spoil = draw(st.sampled_from([cut, flipped, spliced, _encoded, _twice]))
    return spoil(draw, body)


def cut(draw: st.DrawFn, data: bytes) -> bytes:
    """The beginning of some bytes."""
    return data[: draw(st.integers(0, len(data)))]


def flipped(draw: st.DrawFn, data: bytes) -> bytes:
    """Some bytes with a few of them others."""
    changed = bytearray(data)
    for _ in range(draw(st.integers(1, 4)) if data else 0):
        changed[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(changed)


def spliced(draw: st.DrawFn, data: bytes) -> bytes:
    """Some bytes with others among them."""
    place = draw(st.integers(0, len(data)))
    return data[:place] + draw(st.binary(min_size=1, max_size=6)) + data[place:]


def _encoded(draw: st.DrawFn, body: bytes) -> bytes:
    encoding = draw(st.sampled_from(["utf-8-sig", "utf-16", "utf-32", "utf-7"]))
    return body.decode("utf-8", "replace").encode(encoding)


def _twice(_draw: st.DrawFn, body: bytes) -> bytes:
    """Every key at the top a second time."""
    return body[:-1] + b"," + body[1:]


def _change(draw: st.DrawFn, request: dict[str, Json]) -> None:
    """Put anything somewhere, or take something away."""
    if draw(st.integers(0, 4)):
        _put(draw, request, draw(ANYTHING))
    else:
        places = _places(request)
        if places:
            parent, key = draw(st.sampled_from(places))
            del parent[key]


def _put(draw: st.DrawFn, request: dict[str, Json], value: Json) -> None:
    places = _places(request)
    if places:
        parent, key = draw(st.sampled_from(places))
        parent[key] = value
    else:
        request[draw(KEYS)] = value


def _places(value: Json, most: int = 200) -> list[tuple[Any, Any]]:
    """Where a value holds others: parent and key of each, those further out first."""
    places: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting and len(places) < most:
        item = waiting.pop(0)
        children = item.items() if isinstance(item, dict) else enumerate(item[:10])
        for key, child in children:
            places.append((item, key))
            if isinstance(child, dict | list):
                waiting.append(child)
    return places
