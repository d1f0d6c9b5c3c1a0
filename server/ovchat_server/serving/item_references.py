"""Items of the input that are references to what is kept."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ovchat_server.domain.blocks import Block, BlockKind
from ovchat_server.domain.errors import WHERE_RESPONSES_GO, InvalidRequestError, shortened
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.responses.conversation import messages_of
from ovchat_server.domain.responses.item_ids import place_of
from ovchat_server.domain.responses.items import (
    FunctionCall,
    ItemReference,
    MessageItem,
    ReasoningItem,
    TextPart,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.domain.responses.items import Item
    from ovchat_server.domain.responses.request import ResponsesRequest
    from ovchat_server.serving.stored_responses import StoredResponse

    Find = Callable[[str], StoredResponse | None]

# That of an answer of nothing, whose output is an empty message.
NOTHING = Block(BlockKind.TEXT, "")


def resolved(request: ResponsesRequest, find: Find, max_bytes: int) -> ResponsesRequest:
    """Return a request whose chat has what its references stand for.

    Args:
        request: The request.
        find: Returns a response of the caller's by its id.
        max_bytes: How much that may be: each reference counts, so that few bytes are not many.

    Raises:
        InvalidRequestError: An item is not there, or there is too much.
    """
    if not request.referring:
        return request
    items: list[Item] = []
    size = 0
    for index, item in enumerate(request.referring):
        if not isinstance(item, ItemReference):
            items.append(item)
            continue
        if (block := _block(item.id, find)) is None:
            complaint = f"{shortened(repr(item.id))} was not found: {WHERE_RESPONSES_GO}."
            raise InvalidRequestError.about(
                FieldPath.of("input", index, "id"), f"{complaint} Send the item itself."
            )
        items.append(_item(block))
        size += len(block.text)
    if size > max_bytes:
        complaint = f"must refer to at most {max_bytes} bytes, got {size}."
        raise InvalidRequestError.about("input", complaint)
    messages = messages_of(items)
    return replace(request, chat=replace(request.chat, messages=messages), referring=())


def _block(item: str, find: Find) -> Block | None:
    if (place := place_of(item)) is None or (response := find(place[0])) is None:
        return None
    blocks = response.completion.choices[0].blocks or (NOTHING,)
    return blocks[place[1]] if place[1] < len(blocks) else None


def _item(block: Block) -> Item:
    """Return a block as the model knows it: its calls have the names of functions."""
    match block.kind:
        case BlockKind.CALL:
            return FunctionCall.model_construct(
                name=block.name, call_id=block.call_id, arguments=block.text
            )
        case BlockKind.REASONING:
            return ReasoningItem.model_construct(content=[_text(block)])
        case BlockKind.TEXT:
            return MessageItem.model_construct(role="assistant", content=[_text(block)])


def _text(block: Block) -> TextPart:
    return TextPart.model_construct(text=block.text)
