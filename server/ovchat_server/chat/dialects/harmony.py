"""gpt-oss' form, harmony: messages on channels, for reasoning, answer and calls alike.

`<|channel|>analysis<|message|>...<|end|>` is reasoning; what is on the channels commentary and
final is said to the user; a message to `functions.NAME` is a call.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from ovchat_server.chat.dialects.base import CombinedDialect, CombinedOptions, Output, ParserOptions
from ovchat_server.chat.dialects.call_format import (
    CalledTool,
    CallFormat,
    regex_format,
    sequence_format,
    tag_format,
)
from ovchat_server.chat.dialects.json_calls import read_arguments
from ovchat_server.chat.dialects.markup import MarkupParser
from ovchat_server.chat.dialects.source import DamagedError
from ovchat_server.grammar.patterns import literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.chat.dialects.source import Steps
    from ovchat_server.domain.json_value import JsonObject

START, CHANNEL, MESSAGE = "<|start|>", "<|channel|>", "<|message|>"
CONSTRAIN = "<|constrain|>"
CALL, END, RETURN = "<|call|>", "<|end|>", "<|return|>"
ENDS = (CALL, END, RETURN)
FUNCTIONS = "functions."
# A header that the prompt began may go on with its recipient.
RECIPIENT = " to=" + FUNCTIONS
MOST_HEADER_CHARACTERS = 300
_HEADER = re.compile(r"[^<]*")
_TO = re.compile(r"\bto=([^\s<]+)")
_BETWEEN_WORDS = re.compile(r"<\|\w+\|>|\s+")
_WORDS = ("assistant", "analysis", "commentary", "final", "json", "code")


class HarmonyParser(MarkupParser):
    """Finds messages, and keeps reasoning apart."""

    tags = (START, CHANNEL, RECIPIENT)

    def __init__(self, options: CombinedOptions) -> None:
        """Parse one answer."""
        super().__init__(options.calls or ParserOptions())
        self.reasoning = False
        self._reasoned: list[str] = []
        self._finds_calls = options.calls is not None
        self._finds_reasoning = options.reasoning
        # Messages that follow each other are separated by a line break.
        self._break = ""
        self._thought = self._has_content = False

    def read(self, opening: str) -> Steps[None]:
        """Read one message."""
        header = yield from self._read_header(opening)
        if header is None:
            return
        recipient = _TO.search(header)
        if recipient and self._is_tool(recipient[1]):
            yield from self._read_call(recipient[1].removeprefix(FUNCTIONS))
            return
        self.source.forget()
        if header.partition(CHANNEL)[2].startswith("analysis") and self._finds_reasoning:
            self.reasoning = True
            yield from self._read_body(self._think)
            self.reasoning = False
            self._break = "\n" if self._thought else ""
        else:
            self.add_content("\n" if self._has_content else "")
            self._has_content = True
            yield from self._read_body(self.add_content)

    def _is_tool(self, recipient: str) -> bool:
        return recipient.startswith(FUNCTIONS) or (bool(self.tools) and self.offers(recipient))

    def _read_header(self, opening: str) -> Steps[str | None]:
        """Read the header up to its message; None if the end of the answer cut it off."""
        source = self.source
        header = opening
        while True:
            header += yield from source.run(_HEADER, MOST_HEADER_CHARACTERS)
            tag = yield from source.first_of(CHANNEL, CONSTRAIN, MESSAGE)
            if tag == MESSAGE:
                return header
            if source.ended and source.at == len(source.text) and _is_cut(header):
                return None
            if tag is None or len(header) > MOST_HEADER_CHARACTERS:
                raise DamagedError
            header += tag

    def _read_call(self, name: str) -> Steps[None]:
        source = self.source
        if not self._finds_calls:
            raise DamagedError
        call = self.begin(name)
        yield from read_arguments(call, source)
        yield from source.skip_space()
        closed = yield from source.close(*ENDS)
        if not closed and not (yield from source.ahead(START, CHANNEL)):
            raise DamagedError
        call.end()

    def _read_body(self, write: Callable[[str], object]) -> Steps[None]:
        source = self.source
        tag = yield from source.until(*ENDS, START, CHANNEL, write=write)
        if tag in {START, CHANNEL}:
            # It lacks its own end: that is where the next begins.
            source.at -= len(tag)

    def _think(self, text: str) -> None:
        self._reasoned += [self._break, text]
        self._break, self._thought = "", True

    def _take(self) -> Output:
        output = super()._take()
        reasoned = "".join(self._reasoned)
        self._reasoned.clear()
        return Output(reasoned, output.content, output.calls)


def _is_cut(header: str) -> bool:
    """Return whether this may be the beginning of a header, which the end cut off."""
    words = filter(None, _BETWEEN_WORDS.split(header))
    return all(
        word.startswith("to=") or any(known.startswith(word) for known in _WORDS) for word in words
    )


def _call(before: str, behind: str, tool: CalledTool) -> JsonObject:
    """Return the format of a call, whose header between two texts has its recipient."""
    header = rf"{literal(behind)}(( ?{literal(CONSTRAIN)}| )json)?{literal(MESSAGE)}"
    # As a token that ends answers it is no text to the compiler.
    ending = rf"({literal(CALL)})?"
    content = sequence_format(regex_format(header), tool.arguments, regex_format(ending))
    return tag_format(f"{before}{RECIPIENT}{tool.name}", content)


ASSISTANT = f"{START}assistant"
COMMENTARY = f"{CHANNEL}commentary"
# The recipient before the channel, as in the history of the chat template. Where it begins the
# answer nothing tells it from words about a call.
ROLE_FORMAT = CallFormat(
    partial(_call, ASSISTANT, COMMENTARY), separator="", trigger=f"{ASSISTANT} to="
)
DIALECT = CombinedDialect(
    "gpt_oss",
    HarmonyParser,
    recognised=lambda template: CHANNEL in template and MESSAGE in template,
    opening=f"{CHANNEL}analysis{MESSAGE}",
    closing=f"{END}{ASSISTANT}",
    answer=f"{CHANNEL}final{MESSAGE}",
    special_tokens=(START, CHANNEL, MESSAGE, CONSTRAIN, *ENDS),
    format=CallFormat(
        partial(_call, COMMENTARY, ""),
        separator=ASSISTANT,
        trigger=f"{COMMENTARY} to=",
        also=(ROLE_FORMAT,),
    ),
)
