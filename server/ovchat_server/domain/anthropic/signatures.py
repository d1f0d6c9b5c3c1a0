"""Signatures of thinking: where the text is not to be shown, it is in there.

Clients return the blocks of an answer with the next request, each with its signature. Anthropic's
own are proofs that the text is theirs; here any are taken, as conversations move between servers.
"""

from __future__ import annotations

import base64
import binascii
import hashlib

SHOWN = "ovchat-"
HIDDEN = "ovchat-thinking-"


def shown_signature(thinking: str) -> str:
    """Return the signature of a text that is shown; some clients drop what has none."""
    return SHOWN + hashlib.sha256(thinking.encode()).hexdigest()[:32]


def hiding_signature(thinking: str) -> str:
    """Return a signature that holds the text, so that it comes back; see hidden_thinking."""
    return HIDDEN + base64.urlsafe_b64encode(thinking.encode()).decode()


def hidden_thinking(signature: str) -> str | None:
    """Return the text that a signature holds; None: it is of a text that was shown, or not ours."""
    if not signature.startswith(HIDDEN):
        return None
    try:
        return base64.b64decode(
            signature.removeprefix(HIDDEN), altchars=b"-_", validate=True
        ).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
