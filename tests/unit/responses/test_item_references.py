"""Items of the input that are references to items of responses that are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ovchat_server.domain.blocks import Block, BlockKind
from ovchat_server.domain.chat import Message, Role
from ovchat_server.domain.completion import Choice, Completion, CompletionInfo, FinishReason, Usage
from ovchat_server.domain.errors import InvalidRequestError
from ovchat_server.domain.responses.reading import read_responses_request
from ovchat_server.responses.objects import response_object
from ovchat_server.serving.item_references import resolved
from ovchat_server.serving.stored_responses import StoredResponse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.domain.responses.request import ResponsesRequest

RESPONSE = "resp_0a"
TOOLS = [
    {"type": "namespace", "name": "sky", "tools": [{"type": "function", "name": "look"}]},
    {"type": "custom", "name": "shell"},
]
BLOCKS = (
    Block(BlockKind.REASONING, "hm"),
    Block(BlockKind.TEXT, "a"),
    Block(BlockKind.CALL, '{"x": 1}', 0, "call_0", "sky__look"),
    Block(BlockKind.CALL, '{"input":"ls"}', 1, "call_1", "shell"),
)
CUT = (
    Block(BlockKind.CALL, '{"x', 0, "call_0", "sky__look"),
    Block(BlockKind.CALL, '{"input":"ls', 1, "call_1", "shell"),
)
RESULTS = [
    {"type": "function_call_output", "call_id": "call_0", "output": "blue"},
    {"type": "custom_tool_call_output", "call_id": "call_1", "output": "b"},
]


def read(items: Sequence[Any]) -> ResponsesRequest:
    return read_responses_request({"model": "demo", "input": [*items], "tools": TOOLS})


def kept(*blocks: Block) -> StoredResponse:
    choice = Choice(0, Message(Role.ASSISTANT), FinishReason.STOP, blocks=blocks)
    info = CompletionInfo(RESPONSE, 1, "demo", "fp")
    return StoredResponse(read(RESULTS), Completion(info, (choice,), Usage(1, 1)), ())


def resolve(items: Sequence[Any], *blocks: Block, max_bytes: int = 1000) -> tuple[Message, ...]:
    stored = {RESPONSE: kept(*blocks)}
    return resolved(read(items), stored.get, max_bytes).chat.messages


@pytest.mark.parametrize("blocks", [BLOCKS, BLOCKS[:1], BLOCKS[1:2], BLOCKS[3:], CUT, ()])
def test_a_reference_is_as_the_item_itself(blocks: tuple[Block, ...]) -> None:
    response = kept(*blocks)
    output: Any = response_object(response.request, response.completion)["output"]
    items = read([*output, *RESULTS]).chat.messages
    # The type may be left out (OpenAI).
    for kind in ({"type": "item_reference"}, {"type": None}, {}):
        references = [{**kind, "id": item["id"]} for item in output]
        assert resolve([*references, *RESULTS], *blocks) == items


@pytest.mark.parametrize("name", ["msg_0a_4", "msg_0b_1", "msg_1", "", "msg_0a_-1"])
def test_what_is_not_there_is_refused(name: str) -> None:
    reference = {"type": "item_reference", "id": name}
    with pytest.raises(InvalidRequestError) as caught:
        resolve([*RESULTS, reference], *BLOCKS)

    [violation] = caught.value.violations
    assert str(violation.field) == "input[2].id"
    assert f"{name!r} was not found" in str(caught.value)
    assert "Send the item itself." in str(caught.value)


def test_a_few_bytes_do_not_stand_for_many() -> None:
    reference = {"type": "item_reference", "id": "msg_0a_0"}
    long = Block(BlockKind.TEXT, "a" * 100)

    assert len(resolve([reference] * 10, long)) == 10
    with pytest.raises(InvalidRequestError, match="at most 1000 bytes, got 1100"):
        resolve([reference] * 11, long)
