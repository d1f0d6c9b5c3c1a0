"""Assembly of one choice: from tokens to deltas."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat_server.api.completion import Delta, FinishReason, ToolCallDelta
from ovchat_server.chat.detokenizer import Detokenizer
from ovchat_server.chat.reasoning import Split, ThinkParser
from ovchat_server.chat.stop import StopMatcher
from ovchat_server.chat.tool_calls import HermesParser, Parsed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.chat.detokenizer import TokenDecoder


@dataclass(frozen=True, slots=True)
class AssemblyOptions:
    """What an answer may hold besides text.

    Attributes:
        stop: Texts that end the answer.
        reasoning: The model marks its reasoning.
        reasoning_opened: The prompt ends inside the reasoning.
        tool_calls: The model was offered tools.
    """

    stop: tuple[str, ...] = ()
    reasoning: bool = False
    reasoning_opened: bool = False
    tool_calls: bool = False


class ChoiceAssembler:
    """Turns the tokens of one choice into deltas.

    The way of the text: detokenise, cut at a stop string, tell reasoning from answer, find
    tool calls. Each stage holds back only what it cannot decide yet. Joining all deltas
    gives the same message however the tokens were grouped.
    """

    def __init__(self, decoder: TokenDecoder, options: AssemblyOptions) -> None:
        """Start one choice."""
        self._detokenizer = Detokenizer(decoder)
        self._stop = StopMatcher(options.stop)
        self._think = (
            ThinkParser(opened_by_prompt=options.reasoning_opened) if options.reasoning else None
        )
        self._tools = HermesParser() if options.tool_calls else None
        self._calls = 0
        self.completion_tokens = 0
        self.reasoning_tokens = 0

    @property
    def stopped_by(self) -> str | None:
        """The stop string that matched: nothing more will come, and the engine may stop."""
        return self._stop.matched

    @property
    def reasons(self) -> bool:
        """Whether `reasoning_tokens` means something."""
        return self._think is not None

    def feed(self, tokens: Sequence[int]) -> Delta | None:
        """What is new; None where everything is held back. Ends at a stop string."""
        reasoning: list[str] = []
        content: list[str] = []
        for token in tokens:
            if self._stop.matched is not None:
                break
            self.completion_tokens += 1
            before = self._think.reasoning if self._think else False
            piece = self._split(self._stop.feed(self._detokenizer.feed(token)))
            reasoning.append(piece.reasoning)
            content.append(piece.content)
            if self._think and (before or self._think.reasoning):
                self.reasoning_tokens += 1
        return self._delta("".join(reasoning), self._parse("".join(content)))

    def finish(self, reason: FinishReason) -> tuple[Delta | None, FinishReason]:
        """What was held back, and why the choice ended, seen from the caller."""
        reasoning, content = "", ""
        if self._stop.matched is None:
            piece = self._split(self._stop.feed(self._detokenizer.flush()))
            rest = self._split(self._stop.flush())
            reasoning, content = piece.reasoning + rest.reasoning, piece.content + rest.content
        if self._think:
            last = self._think.flush()
            reasoning, content = reasoning + last.reasoning, content + last.content
        parsed = self._parse(content)
        if self._tools:
            flushed = self._tools.flush()
            parsed = Parsed(parsed.content + flushed.content, parsed.calls + flushed.calls)
        delta = self._delta(reasoning, parsed)
        if self._calls and reason is FinishReason.STOP:
            reason = FinishReason.TOOL_CALLS
        return delta, reason

    def _split(self, text: str) -> Split:
        if not text:
            return Split()
        return self._think.feed(text) if self._think else Split(content=text)

    def _parse(self, content: str) -> Parsed:
        if not content:
            return Parsed()
        return self._tools.feed(content) if self._tools else Parsed(content=content)

    def _delta(self, reasoning: str, parsed: Parsed) -> Delta | None:
        if not (reasoning or parsed.content or parsed.calls):
            return None
        calls = []
        for call in parsed.calls:
            identifier = f"call_{uuid.uuid4().hex[:24]}"
            calls.append(ToolCallDelta(self._calls, identifier, call.name, call.arguments))
            self._calls += 1
        return Delta(
            content=parsed.content or None,
            reasoning_content=reasoning or None,
            tool_calls=tuple(calls),
        )
