"""Kimi K2's form: a section of calls, each with an id that holds the name, and its arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.chat.dialects.base import ToolDialect
from ovchat_server.chat.dialects.json_calls import read_arguments, read_name
from ovchat_server.chat.dialects.markup import MarkupParser
from ovchat_server.chat.dialects.source import DamagedError

if TYPE_CHECKING:
    from ovchat_server.chat.dialects.source import Steps

SECTION, SECTION_END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
CALL, CALL_END = "<|tool_call_begin|>", "<|tool_call_end|>"
ARGUMENTS = "<|tool_call_argument_begin|>"


class KimiParser(MarkupParser):
    """An id is `functions.NAME:NUMBER`."""

    tags = (SECTION, CALL)

    def read(self, opening: str) -> Steps[None]:
        """Read a section, or calls without one."""
        source = self.source
        inside = opening == CALL
        while True:
            if inside:
                yield from self._read_call()
            yield from source.skip_space()
            if (yield from source.first_of(CALL)) is None:
                break
            inside = True
        if not inside or (not (yield from source.close(SECTION_END)) and opening == SECTION):
            raise DamagedError

    def _read_call(self) -> Steps[None]:
        source = self.source
        yield from source.skip_space()
        identifier = yield from read_name(source)
        yield from source.skip_space()
        yield from source.literal(ARGUMENTS)
        name, _, number = identifier.removeprefix("functions.").rpartition(":")
        call = self.begin(name if number.isdecimal() else identifier)
        yield from read_arguments(call, source)
        yield from source.skip_space()
        if not (yield from source.close(CALL_END)):
            raise DamagedError
        call.end()


DIALECT = ToolDialect(
    "kimi",
    KimiParser,
    recognised=lambda template: CALL in template and ARGUMENTS in template,
    special_tokens=(SECTION, SECTION_END, CALL, CALL_END, ARGUMENTS),
)
