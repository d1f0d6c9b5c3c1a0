"""Tool calls written into the text, for agents that look for tags there (AbstractCore).

Opt-in by `agent_format`. The tags are those that AbstractCore's server writes, which are not
the models' own. Whole answers have the calls in OpenAI's form as well; streams, where an agent
would take them for further ones, have the text alone.
"""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

from ovchat_server.api.completion import Delta
from ovchat_server.chat.arguments import parse_arguments

if TYPE_CHECKING:
    from ovchat_server.api.chat import CallTags
    from ovchat_server.api.completion import Choice, ChunkChoice


def with_tags(choice: Choice, tags: CallTags) -> Choice:
    """A whole answer, its calls also at the end of its text."""
    message = choice.message
    if not message.tool_calls:
        return choice
    blocks = [_block(call.name, call.arguments, tags) for call in message.tool_calls]
    text = "\n\n".join(filter(None, [(message.content or "").strip(), *blocks]))
    return dataclasses.replace(choice, message=dataclasses.replace(message, content=text))


class TagWriter:
    """The same for one choice of a stream: its calls in the text, and nowhere else."""

    def __init__(self, tags: CallTags) -> None:
        """Write calls in `tags`."""
        self._tags = tags
        self._said_something = False
        self._name = ""
        self._arguments = ""

    def rewrite(self, chunk: ChunkChoice) -> ChunkChoice:
        """A chunk with what of the calls is whole now."""
        delta = chunk.delta
        blocks = []
        for call in delta.tool_calls:
            if call.name is not None:
                blocks.append(self._close())
                self._name = call.name
            self._arguments += call.arguments or ""
        if chunk.finish_reason is not None:
            blocks.append(self._close())
        content = delta.content or ""
        for block in filter(None, blocks):
            content += "\n\n" + block if content or self._said_something else block
        self._said_something = self._said_something or bool(content)
        return dataclasses.replace(
            chunk,
            delta=Delta(
                role=delta.role,
                content=content or None,
                reasoning_content=delta.reasoning_content,
            ),
        )

    def _close(self) -> str:
        """The call that came to its end, if there is one."""
        if not self._name:
            return ""
        block = _block(self._name, self._arguments, self._tags)
        self._name, self._arguments = "", ""
        return block


def _block(name: str, arguments: str, tags: CallTags) -> str:
    parsed = parse_arguments(arguments)
    call = {"name": name, "arguments": arguments if parsed is None else parsed}
    body = json.dumps(call, indent=2, ensure_ascii=False)
    return f"<{tags}>\n{body}\n</{tags}>"
