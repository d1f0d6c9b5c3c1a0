"""Kimi K2's form: a section of calls, each with an id that holds the name, and its arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.chat.dialects.base import ToolDialect
from ovchat_server.chat.dialects.call_format import (
    CalledTool,
    CallFormat,
    regex_format,
    sequence_format,
    tag_format,
)
from ovchat_server.chat.dialects.json_calls import read_arguments, read_name
from ovchat_server.chat.dialects.sections import SectionParser
from ovchat_server.grammar.patterns import literal

if TYPE_CHECKING:
    from ovchat_server.chat.dialects.source import Steps
    from ovchat_server.domain.json_value import JsonObject

SECTION, SECTION_END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
CALL, CALL_END = "<|tool_call_begin|>", "<|tool_call_end|>"
ARGUMENTS = "<|tool_call_argument_begin|>"
FUNCTIONS = "functions."
# What both begin with: a call never stands without its section.
TRIGGER = "<|tool_call"


class KimiParser(SectionParser):
    """An id is `functions.NAME:NUMBER`."""

    tags = (SECTION, CALL)
    section_end = SECTION_END

    def read_call(self) -> Steps[None]:
        """Read a call behind its tag."""
        source = self.source
        yield from source.skip_space()
        identifier = yield from read_name(source)
        yield from source.skip_space()
        yield from source.literal(ARGUMENTS)
        name, _, number = identifier.removeprefix(FUNCTIONS).rpartition(":")
        call = self.begin(name if number.isdecimal() else identifier)
        yield from read_arguments(call, source)
        yield from source.skip_space()
        yield from source.ending(CALL_END)
        call.end()


def _call(tool: CalledTool) -> JsonObject:
    """Return the format of a call of any number: numbers count through the conversation."""
    number = regex_format("[0-9]{1,4}" + literal(ARGUMENTS))
    content = sequence_format(number, tool.arguments)
    return tag_format(f"{CALL}{FUNCTIONS}{tool.name}:", content, CALL_END)


DIALECT = ToolDialect(
    "kimi",
    KimiParser,
    recognised=lambda template: CALL in template and ARGUMENTS in template,
    special_tokens=(SECTION, SECTION_END, CALL, CALL_END, ARGUMENTS),
    format=CallFormat(_call, opening=SECTION, separator="", closing=SECTION_END, trigger=TRIGGER),
)
