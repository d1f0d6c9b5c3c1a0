"""Finding the tool calls in an answer."""

from __future__ import annotations

import json
from dataclasses import dataclass

from ovchat_server.chat.markup import split_at_tag

OPEN = "<tool_call>"
CLOSE = "</tool_call>"


@dataclass(frozen=True, slots=True)
class ParsedCall:
    """A call as the model wrote it; the arguments are a JSON object as text."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Parsed:
    """New text of the answer, and the calls that follow it."""

    content: str = ""
    calls: tuple[ParsedCall, ...] = ()


class HermesParser:
    """Hermes' and Qwen's form: `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`.

    Text before, between and after calls is content. A call that does not parse comes back
    as content, tags and all: nothing the model said is lost, and nothing ends the answer.
    White space next to a call is markup.
    """

    def __init__(self) -> None:
        """Parse one answer."""
        self._held = ""
        self._inside = False
        self._after_call = False
        # White space before the call that is open, should the call turn out to be none.
        self._gap = ""

    def feed(self, text: str) -> Parsed:
        """What of the text so far, and not handed out yet, is which."""
        self._held += text
        content: list[str] = []
        calls: list[ParsedCall] = []
        while True:
            if self._inside:
                body, rest, closed = split_at_tag(self._held, CLOSE)
                if not closed:
                    break
                self._inside, self._held = False, rest
                call = parse_call(body)
                if call is None:
                    content.append(self._gap + OPEN + body + CLOSE)
                    self._after_call = False
                else:
                    calls.append(call)
                    self._after_call = True
            else:
                text, opened = self._outside()
                content.append(text)
                if not opened:
                    break
        return Parsed("".join(content), tuple(calls))

    def flush(self) -> Parsed:
        """What was held back, at the end of the answer. A call may lack its closing tag."""
        held, self._held = self._held, ""
        if not self._inside:
            return Parsed(content=held.lstrip() if self._after_call else held)
        self._inside = False
        # Nor is the part of one that the answer was cut in part of the call.
        call = parse_call(split_at_tag(held, CLOSE)[0])
        return Parsed(calls=(call,)) if call else Parsed(content=self._gap + OPEN + held)

    def _outside(self) -> tuple[str, bool]:
        """Content up to the next call, and whether one opens."""
        before, after, opened = split_at_tag(self._held, OPEN)
        if self._after_call:
            before = before.lstrip()
        kept = before.rstrip()
        self._after_call = self._after_call and not kept
        self._inside = opened
        # White space before what may become a call waits for it.
        self._gap = before[len(kept) :]
        self._held = after if opened else self._gap + after
        return kept, opened


def parse_call(text: str) -> ParsedCall | None:
    """The call that `text` describes; None where it describes none."""
    try:
        call = json.loads(text)
        if not isinstance(call, dict) or not isinstance(call.get("name"), str):
            return None
        # Llama's models say parameters. A call without arguments is a call.
        arguments = call.get("arguments", call.get("parameters", {}))
        if not isinstance(arguments, dict):
            return None
        parsed = ParsedCall(
            call["name"], json.dumps(arguments, ensure_ascii=False, allow_nan=False)
        )
        # Half a surrogate pair, escaped in JSON, is no text: no door could write it.
        (parsed.name + parsed.arguments).encode()
    except (ValueError, RecursionError):
        return None
    return parsed
