"""Requests from the messages that they come in."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

from ovchat_server.serving.aside import FEW_BYTES, aside

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.protobuf.message import Message

M = TypeVar("M", bound="Message")
Request = TypeVar("Request")


async def read_message(read: Callable[[M], Request], message: M) -> Request:
    """What `read` makes of a message, in a thread where it is large."""
    return await aside(partial(read, message), long=message.ByteSize() > FEW_BYTES)
