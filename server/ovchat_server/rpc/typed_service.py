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
        model_type: The type of the models that answer there: it is SERVING only while all of them
            are ready, and each has a health of its own, as "ovchat.v1.ChatService/<id>". "": none.
    """

    descriptor: ServiceDescriptor
    add: Callable[[grpc.aio.Server], None]
    model_type: str = ""

    @property
    def name(self) -> str:
        """Its full name."""
        return str(self.descriptor.full_name)
