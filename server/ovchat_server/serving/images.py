"""Images of conversations: read, decoded and encoded before the prompt is rendered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat_server.domain.content import ImageError
from ovchat_server.domain.errors import (
    ContextLengthExceededError,
    InvalidRequestError,
    Violation,
)
from ovchat_server.domain.field_path import FieldPath

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.domain.chat import Message
    from ovchat_server.domain.content import Image
    from ovchat_server.engine.contract.engine import Caller
    from ovchat_server.engine.contract.image_encoder import EncodedImage, ImageEncoder
    from ovchat_server.images.sources import ImageSources
    from ovchat_server.serving.models import TextModel


@dataclass(frozen=True, slots=True)
class ImagePreparation:
    """Encodes the images of conversations.

    Attributes:
        sources: Where their files come from.
    """

    sources: ImageSources

    async def encode(
        self, model: TextModel, messages: Sequence[Message], caller: Caller
    ) -> tuple[EncodedImage, ...]:
        """Return the encoded images of all messages, in their order.

        Args:
            model: The model that reads them.
            messages: The conversation.
            caller: Who asks.

        Raises:
            InvalidRequestError: The model takes text only, or an image cannot be read or encoded.
            ContextLengthExceededError: They take more tokens than the model's context has.
            OverloadedError: Too many images are waiting already.
            UnavailableError: The encoder cannot be started.
        """
        images = [image for message in messages for image in message.images]
        if not images:
            return ()
        if model.images is None:
            raise _text_only(images)
        room = model.engine.status.context_length or model.files.context_length
        encoded: list[EncodedImage] = []
        tokens = 0
        # One by one: so the images of many requests take turns, and few files are in memory.
        for image in images:
            encoded.append(await self._encode(model.images, image, caller))
            tokens += encoded[-1].length
            if tokens > room:
                raise ContextLengthExceededError.of_prompt(FieldPath.of("messages"), tokens, room)
        return tuple(encoded)

    async def _encode(self, encoder: ImageEncoder, image: Image, caller: Caller) -> EncodedImage:
        file = await self.sources.read(image)
        try:
            return await encoder.encode(file, low_detail=image.low_detail, caller=caller)
        except ImageError as error:
            raise error.about(image) from error


def _text_only(images: Sequence[Image]) -> InvalidRequestError:
    complaint = "is not supported by this model, which takes text only."
    return InvalidRequestError.of(
        [Violation.of(image.field, complaint, "unsupported_value") for image in images]
    )
