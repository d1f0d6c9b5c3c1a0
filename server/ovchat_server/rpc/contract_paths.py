"""The paths of faults, as the contract has them."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from google.protobuf.message import Message

from ovchat_server.domain.errors import InvalidRequestError
from ovchat_server.domain.field_path import FieldPath

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ovchat_server.domain.field_path import Spelling


def with_token_ids(path: FieldPath) -> FieldPath:
    """Return a path in which OpenAI's list of lists of tokens is a list of messages."""
    match path.steps:
        case ("prompt" | "input" as name, int() as item, int() as token):
            return FieldPath.of(name, item, "token_ids", "values", token)
    return path


@contextlib.contextmanager
def contract_paths(message: Message, spelling: Spelling = with_token_ids) -> Iterator[None]:
    """Name faults by the fields of a message.

    Args:
        message: The request.
        spelling: Maps the path of a field of the domain to the path in OpenAI's object.

    Raises:
        InvalidRequestError: As raised inside. Its fields are the part of the paths that the
            message has.
    """
    try:
        yield
    except InvalidRequestError as error:
        error.respell(
            lambda path: FieldPath(sum(_parts(spelling(path), message), ())),
            lambda path: FieldPath(_parts(spelling(path), message)[0]),
        )
        raise


def _parts(
    path: FieldPath, message: Message
) -> tuple[tuple[str | int, ...], tuple[str | int, ...]]:
    """Return the beginning of a path that names fields of a message, by their names, and the rest.

    What OpenAI tells by a key `type` is a oneof of the contract: its field is inserted.
    """
    known: tuple[str | int, ...] = ()
    value: Any = message
    for position, step in enumerate(path.steps):
        if isinstance(step, str):
            names = _names(step, value)
            if not names:
                return known, path.steps[position:]
            for name in names:
                value = getattr(value, name)
            known += names
        else:
            with contextlib.suppress(TypeError, IndexError):
                value = value[step]
            known += (step,)
    return known, ()


def _names(step: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, Message):
        return ()
    fields = value.DESCRIPTOR.fields_by_name
    if step in fields:
        return (step,)
    for oneof in value.DESCRIPTOR.oneofs:
        name = value.WhichOneof(oneof.name)
        # A oneof of a single field stands for `optional`.
        if name is None or len(oneof.fields) == 1:
            continue
        inner = fields[name].message_type
        if inner is not None and step in inner.fields_by_name:
            return (name, step)
        # An image by value is read by a URL.
        if step == "type" or (name, step) == ("image", "image_url"):
            return (name,)
    return ()
