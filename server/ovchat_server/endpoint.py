"""An endpoint: what it is at both doors."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ovchat_server.rest.apis import Api
    from ovchat_server.rpc.typed_service import TypedService


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Something that is served, at both doors or at one.

    Attributes:
        apis: What it is for REST, by the names of the RPCs that Envoy binds paths to.
        service: What it is for gRPC; None: nothing.
    """

    apis: Mapping[str, Api] = dataclasses.field(default_factory=dict)
    service: TypedService | None = None
