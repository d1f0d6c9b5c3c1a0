"""Writing tool calls into the text, for agents that look for tags there (AbstractCore).

Only where `agent_format` asks for it. The tags are those that AbstractCore's server writes, not
the models' own. Whole answers have the calls in OpenAI's format as well. Streams have them in the
text only: an agent would take both for two calls.
"""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

from ovchat_server.chat.arguments import parse_arguments
from ovchat_server.domain.completion import Delta

if TYPE_CHECKING:
    from ovchat_server.domain.chat import CallTags
    from ovchat_server.domain.completion import Choice, ChunkChoice


def with_tags(choice: Choice, tags: CallTags) -> Choice:
    """Return a whole choice with its calls at the end of its text, too."""
    message = choice.message
    if not message.tool_calls:
        return choice
    blocks = [_block(call.name, call.arguments, tags) for call in message.tool_calls]
    text = "\n\n".join(filter(None, [message.text.strip(), *blocks]))
    return dataclasses.replace(choice, message=dataclasses.replace(message, content=(text,)))


class TagWriter:
    """Writes the calls of one streamed choice into its text, and takes them out of the deltas."""

    def __init__(self, tags: CallTags) -> None:
        """Write calls between `tags`."""
        self._tags = tags
        self._has_text = False
        self._name = ""
        self._arguments = ""

    def rewrite(self, chunk: ChunkChoice) -> ChunkChoice:
        """Return the chunk with the calls that are whole now in its text."""
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
            content += "\n\n" + block if content or self._has_text else block
        self._has_text = self._has_text or bool(content)
        return dataclasses.replace(
            chunk,
            delta=Delta(
                role=delta.role,
                content=content or None,
                reasoning_content=delta.reasoning_content,
            ),
        )

    def _close(self) -> str:
        """Return the text of the call that has ended; "" where there is none."""
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
