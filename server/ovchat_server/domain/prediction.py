"""Reading the prediction of an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.domain.content import text_of
from ovchat_server.domain.messages import PARTS, read_content

if TYPE_CHECKING:
    from ovchat_server.domain.reader import Reader

PREDICTION_KEYS = frozenset({"type", "content"})
TEXT_PARTS = {"text": PARTS["text"]}


def read_prediction(request: Reader) -> str | None:
    """Read what a chat's answer is expected to say; note what is wrong in the reader."""
    prediction = request.object("prediction", PREDICTION_KEYS)
    if prediction is None:
        return None
    if prediction.require("type"):
        prediction.choice("type", ["content"])
    prediction.require("content")
    return text_of(read_content(prediction, TEXT_PARTS))
