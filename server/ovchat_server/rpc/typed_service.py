"""A service of the contract, as the server takes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import grpc.aio
    from google.protobuf.descriptor import ServiceDescriptor


@dataclass(frozen=True, slots=True)
class TypedService:
    """A service of the contract.

    Attributes:
        descriptor: Its descriptor, by which reflection and health know it.
        add: Adds it to a server.
        needs_engines: Whether it is SERVING only while every model is ready.
        of_models: Whether each model that chats has a health of its own there, as
            "ovchat.v1.ChatService/<id>".
    """

    descriptor: ServiceDescriptor
    add: Callable[[grpc.aio.Server], None]
    needs_engines: bool = False
    of_models: bool = False

    @property
    def name(self) -> str:
        """Its full name."""
        return str(self.descriptor.full_name)
