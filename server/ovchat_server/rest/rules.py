"""What requests of the REST door have to keep to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ovchat_server.api.limits import Limits


@dataclass(frozen=True, slots=True)
class RestRules:
    """The rules.

    Attributes:
        strict: Unknown keys are refused instead of ignored.
        limits: How much a request may hold.
    """

    strict: bool
    limits: Limits
