"""Calls written into the text, as AbstractCore's server writes them."""

from __future__ import annotations

import pytest

from ovchat_server.chat.agent_format import TagWriter, with_tags
from ovchat_server.domain.chat import CallTags, Message, Role, ToolCall
from ovchat_server.domain.completion import Choice, ChunkChoice, Delta, FinishReason, ToolCallDelta

QWEN3 = """<|tool_call|>
{
  "name": "get_weather",
  "arguments": {
    "location": "Paris"
  }
}
</|tool_call|>"""
LLAMA3 = QWEN3.replace("|tool_call|", "function_call")
ARGUMENTS = '{"location": "Paris"}'


def choice(content: str, calls: int = 1) -> Choice:
    made = tuple(ToolCall(f"c{number}", "get_weather", ARGUMENTS) for number in range(calls))
    return Choice(0, Message(Role.ASSISTANT, (content,), tool_calls=made), FinishReason.TOOL_CALLS)


@pytest.mark.parametrize(("tags", "block"), [(CallTags.QWEN3, QWEN3), (CallTags.LLAMA3, LLAMA3)])
def test_a_whole_answer_has_its_calls_behind_its_text(tags: CallTags, block: str) -> None:
    whole = with_tags(choice("Sure. "), tags)
    assert whole.message.text == f"Sure.\n\n{block}"
    assert whole.message.tool_calls == choice("").message.tool_calls


def test_calls_alone_and_several_of_them() -> None:
    assert with_tags(choice("", 2), CallTags.QWEN3).message.text == f"{QWEN3}\n\n{QWEN3}"
    assert with_tags(choice("Hi", 0), CallTags.QWEN3) == choice("Hi", 0)


def test_a_stream_has_them_in_its_text_alone() -> None:
    writer = TagWriter(CallTags.QWEN3)
    deltas = [
        Delta(role=Role.ASSISTANT),
        Delta(content="Su"),
        Delta(content="re."),
        Delta(tool_calls=(ToolCallDelta(0, "c0", "get_weather", ARGUMENTS[:5]),)),
        Delta(tool_calls=(ToolCallDelta(0, arguments=ARGUMENTS[5:]),)),
        Delta(tool_calls=(ToolCallDelta(1, "c1", "get_weather", ARGUMENTS),)),
    ]
    chunks = [writer.rewrite(ChunkChoice(0, delta)) for delta in deltas]
    chunks.append(writer.rewrite(ChunkChoice(0, Delta(), FinishReason.TOOL_CALLS)))
    text = "".join(chunk.delta.content or "" for chunk in chunks)
    assert text == f"Sure.\n\n{QWEN3}\n\n{QWEN3}"
    assert not any(chunk.delta.tool_calls for chunk in chunks)
    assert chunks[0].delta.role is Role.ASSISTANT
    assert chunks[-1].finish_reason is FinishReason.TOOL_CALLS
