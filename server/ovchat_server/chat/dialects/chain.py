"""The parsers of one answer, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.chat.dialects.base import Output
from ovchat_server.chat.dialects.source import tag_pattern, unfinished

if TYPE_CHECKING:
    from ovchat_server.chat.dialects.base import OutputParser, ToolParser


class Chain:
    """Parses reasoning first, then calls in the rest of the answer."""

    def __init__(self, reasoning: OutputParser | None, tools: ToolParser | None) -> None:
        """Parse one answer; without a parser its text is passed on."""
        self._reasoning = reasoning
        self._tools = tools

    @property
    def reasoning(self) -> bool:
        """Whether the text is inside the reasoning now."""
        return self._reasoning is not None and self._reasoning.reasoning

    def feed(self, text: str) -> Output:
        """Add text and return what can be parsed of the text so far."""
        if self._reasoning is None:
            return self._found(Output(content=text))
        return self._found(self._reasoning.feed(text))

    def flush(self, *, cut: bool = False) -> Output:
        """End the answer and return what was held back."""
        output = (
            Output() if self._reasoning is None else self._found(self._reasoning.flush(cut=cut))
        )
        if self._tools is None:
            return output
        rest = self._tools.flush(cut=cut)
        return Output(output.reasoning, output.content + rest.content, output.calls + rest.calls)

    def _found(self, output: Output) -> Output:
        """Find the calls in the content."""
        if self._tools is None or not output.content:
            return output
        found = self._tools.feed(output.content)
        return Output(output.reasoning, found.content, found.calls)


class WithoutTags:
    """Removes the text of special tokens, which a parser had to see, from its output."""

    def __init__(self, parser: OutputParser, tags: tuple[str, ...]) -> None:
        """Remove `tags` from the reasoning and the content of `parser`."""
        self._parser = parser
        self._from_reasoning = _Remover(tags)
        self._from_content = _Remover(tags)

    @property
    def reasoning(self) -> bool:
        """Whether the text is inside the reasoning now."""
        return self._parser.reasoning

    def feed(self, text: str) -> Output:
        """Add text and return what can be parsed of the text so far."""
        output = self._parser.feed(text)
        return Output(
            self._from_reasoning.feed(output.reasoning),
            self._from_content.feed(output.content),
            output.calls,
        )

    def flush(self, *, cut: bool = False) -> Output:
        """End the answer and return what was held back."""
        output = self._parser.flush(cut=cut)
        return Output(
            self._from_reasoning.feed(output.reasoning) + self._from_reasoning.flush(),
            self._from_content.feed(output.content) + self._from_content.flush(),
            output.calls,
        )


class _Remover:
    def __init__(self, tags: tuple[str, ...]) -> None:
        self._tags = tags
        self._pattern = tag_pattern(tags)
        self._held = ""

    def feed(self, text: str) -> str:
        text = self._held + text
        kept: list[str] = []
        end = 0
        for found in self._pattern.finditer(text):
            kept.append(text[end : found.start()])
            end = found.end()
        passed = len(text) - unfinished(text, end, self._tags)
        self._held = text[passed:]
        return "".join([*kept, text[end:passed]])

    def flush(self) -> str:
        held, self._held = self._held, ""
        return held
