"""What a conversation of the demo model is made of, and how its answers are compared."""

import json
from dataclasses import dataclass, field
from typing import Any

Message = dict[str, Any]
ToolSchema = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """A tool call: the name and the arguments as an object."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """What the assistant says: text, reasoning before it, tool calls."""

    content: str = ""
    reasoning: str = ""
    tool_calls: tuple[Call, ...] = ()

    def matches(self, expected: "Answer") -> bool:
        """Whether this answer is the expected one, to the letter but for outer white space."""
        return (
            self.content.strip() == expected.content.strip()
            and self.reasoning.strip() == expected.reasoning.strip()
            # Compared as JSON: Python's equality would take true for 1.
            and _canonical(self.tool_calls) == _canonical(expected.tool_calls)
        )

    def as_message(self) -> Message:
        """The assistant message a client would send back in a later turn."""
        message: Message = {"role": "assistant", "content": self.content or None}
        if self.reasoning:
            message["reasoning_content"] = self.reasoning
        if self.tool_calls:
            message["tool_calls"] = [
                {
                    "id": f"call_{number}",
                    "type": "function",
                    "function": {
                        "name": call.name,
                        "arguments": json.dumps(call.arguments, ensure_ascii=False),
                    },
                }
                for number, call in enumerate(self.tool_calls)
            ]
        return message

    def as_text(self) -> str:
        """The very characters the model has to write, without the closing control token."""
        thought = f"<think>\n{self.reasoning}\n</think>\n\n" if self.reasoning else ""
        calls = "\n".join(
            "<tool_call>\n"
            + json.dumps({"name": call.name, "arguments": call.arguments}, ensure_ascii=False)
            + "\n</tool_call>"
            for call in self.tool_calls
        )
        return thought + self.content + calls


@dataclass(frozen=True)
class Sample:
    """A conversation up to the question, and the answer it wants."""

    skill: str
    messages: list[Message]
    answer: Answer
    tools: list[ToolSchema] = field(default_factory=list)
    thinking: bool = True


def _canonical(calls: tuple[Call, ...]) -> list[str]:
    return [json.dumps([call.name, call.arguments], sort_keys=True) for call in calls]


def user(text: str) -> Message:
    """A user message."""
    return {"role": "user", "content": text}
