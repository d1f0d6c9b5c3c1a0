"""Random messages, and random bytes that began as one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from hypothesis import strategies as st

from tests.fuzz.bodies import ANYTHING, STRINGS, cut, flipped, objects, spliced
from tests.parameters import values
from tests.parameters.message import message

if TYPE_CHECKING:
    from google.protobuf.message import Message

DEPTH = 3
JSON_TEXTS = st.one_of(
    ANYTHING.map(repr),
    st.sampled_from(["{", "[" * 5000, '{"a":' * 200 + "1" + "}" * 200, "NaN", '{"a":1e999}']),
    st.sampled_from(['{"type":"object"}', '{"type":"strin"}', '"\\ud800"', "1" * 5000]),
)
TEXTS = st.one_of(STRINGS, JSON_TEXTS).map(
    # No message holds lone surrogates; as bytes they are put in later.
    lambda text: text.encode("utf-8", "replace").decode()
)
INTEGERS = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
    FieldDescriptor.CPPTYPE_ENUM: (-2, 9),
}
# A group that never ends, a field of no number, wrong wire types, lengths beyond the end.
ODD_FIELDS = st.sampled_from(
    [
        b"\x0b",
        b"\x0c",
        b"\x00",
        b"\x07",
        b"\x0a\xff\xff\xff\xff\x0f",
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x08" + b"\xff" * 11,
        b"\x0a\x02\xff\xfe",
        b"\x0a\x03\xed\xa0\x80",
        b"\xfa\xff\xff\xff\x0f\x01x",
        b"\x12\x00" * 3000,
        b"\x13" * 200,
        b"\x12" * 50,
    ]
)


@st.composite
def messages(draw: st.DrawFn, endpoint: str) -> Message:
    """A request of an endpoint, with some of its fields others."""
    try:
        request: Message = message(endpoint, draw(objects(endpoint)))
    except (json_format.ParseError, ValueError, TypeError, AttributeError, KeyError):
        # What no message can say.
        request = message(endpoint, values.SHORT[endpoint])
    for _ in range(draw(st.sampled_from([0, 1, 1, 2]))):
        fill(draw, request)
    return request


def fill(draw: st.DrawFn, request: Message, depth: int = DEPTH) -> None:
    """Set a field to anything of its type."""
    if not request.DESCRIPTOR.fields:
        return
    field = draw(st.sampled_from(list(request.DESCRIPTOR.fields)))
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return
    value: Any = getattr(request, field.name)
    if field.message_type is not None:
        inner = value.add() if field.is_repeated else value
        inner.SetInParent()
        if depth:
            fill(draw, inner, depth - 1)
    elif field.is_repeated:
        value.extend(draw(st.lists(_scalars(field), max_size=4)))
    else:
        setattr(request, field.name, draw(_scalars(field)))


def _scalars(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    if field.cpp_type in INTEGERS:
        least, most = INTEGERS[field.cpp_type]
        return st.one_of(st.integers(max(least, 0), 9), st.integers(least, most))
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return st.booleans()
    if field.cpp_type in {FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT}:
        return st.floats()
    return TEXTS if field.type == FieldDescriptor.TYPE_STRING else st.binary(max_size=20)


@st.composite
def spoiled(draw: st.DrawFn, data: bytes) -> bytes:
    """A message's bytes; now and then not any more."""
    if draw(st.booleans()):
        return data
    if draw(st.booleans()):
        odd = draw(ODD_FIELDS)
        return data + odd if draw(st.booleans()) else odd + data
    return draw(st.sampled_from([cut, flipped, spliced]))(draw, data)
