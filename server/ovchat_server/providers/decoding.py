"""Reading JSON of providers."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from ovchat_server.providers.kind import BadAnswerError

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")


class Model(msgspec.Struct, frozen=True):
    """A model."""

    id: str


class Models(msgspec.Struct, frozen=True):
    """The list of models; null where Ollama has none."""

    data: list[Model] | None


MODELS = msgspec.json.Decoder(Models)


def decode(data: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """Return what a text in JSON is.

    Raises:
        BadAnswerError: It is something else.
    """
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadAnswerError(str(error).removesuffix(".")) from error


def model_ids(body: bytes) -> Sequence[str]:
    """Return the ids of a list of models, which has the same form in all APIs.

    Raises:
        BadAnswerError: It is no such list.
    """
    return [model.id for model in decode(body, MODELS).data or ()]
