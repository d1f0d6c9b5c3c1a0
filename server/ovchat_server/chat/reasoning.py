"""Telling a model's reasoning from its answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from ovchat_server.chat.markup import split_at_tag

OPEN = "<think>"
CLOSE = "</think>"


@dataclass(frozen=True, slots=True)
class Split:
    """New text, told apart."""

    reasoning: str = ""
    content: str = ""


class _State(Enum):
    # Only white space so far: the tag may still come.
    START = auto()
    REASONING = auto()
    CONTENT = auto()


class ThinkParser:
    """Qwen3's and DeepSeek-R1's form: `<think>...</think>` before the answer.

    The tags, and the white space around the reasoning, belong to neither. Where the model
    is cut off inside the reasoning, what it said stays reasoning.
    """

    def __init__(self, *, opened_by_prompt: bool) -> None:
        """Parse one answer.

        Args:
            opened_by_prompt: The prompt ends with the opening tag, so the answer starts inside.
        """
        self._state = _State.REASONING if opened_by_prompt else _State.START
        self._held = ""
        self._said_something = False

    @property
    def reasoning(self) -> bool:
        """Whether the text is inside the reasoning now."""
        return self._state is _State.REASONING

    def feed(self, text: str) -> Split:
        """What of the text so far, and not handed out yet, is which."""
        self._held += text
        if self._state is _State.START and not self._open():
            return Split()
        reasoning = self._reason() if self._state is _State.REASONING else ""
        return Split(reasoning, self._answer() if self._state is _State.CONTENT else "")

    def flush(self) -> Split:
        """What was held back, at the end of the answer."""
        held, self._held = self._held, ""
        if self._state is _State.REASONING:
            return Split(reasoning=held.rstrip() if self._said_something else held.strip())
        return Split(content=held)

    def _open(self) -> bool:
        """Leave START, if it can be told where to."""
        start = self._held.lstrip()
        if start.startswith(OPEN):
            self._state, self._held = _State.REASONING, start[len(OPEN) :]
            return True
        if OPEN.startswith(start):
            return False
        self._state, self._said_something = _State.CONTENT, True
        return True

    def _reason(self) -> str:
        before, after, closed = split_at_tag(self._held, CLOSE)
        if not self._said_something:
            before = before.lstrip()
        # White space at the end may be the last before the closing tag.
        kept = before.rstrip()
        self._held = after if closed else before[len(kept) :] + after
        self._said_something = not closed and (self._said_something or bool(kept))
        if closed:
            self._state = _State.CONTENT
        return kept

    def _answer(self) -> str:
        """The answer; the line breaks between reasoning and answer are not part of it."""
        text = self._held if self._said_something else self._held.lstrip()
        self._said_something = self._said_something or bool(text)
        self._held = ""
        return text
