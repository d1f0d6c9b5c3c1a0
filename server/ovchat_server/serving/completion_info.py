"""What is the same on every chunk of an answer."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING

from ovchat_server.domain.completion import CompletionInfo

if TYPE_CHECKING:
    from ovchat_server.domain.chat import ChatRequest
    from ovchat_server.domain.text import TextRequest


def completion_info(
    request: ChatRequest | TextRequest,
    model: str,
    fingerprint: str | None,
    temperature: float | None,
    top_p: float | None,
) -> CompletionInfo:
    """Return the fields that every chunk of a new answer repeats.

    Args:
        request: The request.
        model: The id of the model that answers.
        fingerprint: See CompletionInfo.
        temperature: The one in use; None: not known, which is told as OpenAI's default.
        top_p: As `temperature`.
    """
    return CompletionInfo(
        id=f"{request.id_prefix}{uuid.uuid4().hex}",
        created=int(time.time()),
        # As it was asked for: an id may have several forms.
        model=request.model or model,
        system_fingerprint=fingerprint,
        temperature=1.0 if temperature is None else temperature,
        top_p=1.0 if top_p is None else top_p,
    )
