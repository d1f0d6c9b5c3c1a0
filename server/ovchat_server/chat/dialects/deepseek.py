"""DeepSeek's forms: a section of calls.

Each has its name before a separator and its arguments behind it (V3.1), or its type before and
its name and fenced arguments behind (V3, R1).
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from ovchat_server.chat.dialects.base import ToolDialect
from ovchat_server.chat.dialects.call_format import CallFormat, named_call
from ovchat_server.chat.dialects.json_calls import read_arguments, read_name
from ovchat_server.chat.dialects.sections import SectionParser

if TYPE_CHECKING:
    from ovchat_server.chat.dialects.source import Steps

SECTION, SECTION_END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
CALL, CALL_END = "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"
SEPARATOR = "<｜tool▁sep｜>"
# What both begin with: a call never stands without its section.
TRIGGER = "<｜tool▁call"
FENCE, FENCE_END = "```json", "```"


class DeepSeekParser(SectionParser):
    """Which of the forms it is shows behind the separator."""

    tags = (SECTION, CALL)
    section_end = SECTION_END

    def read_call(self) -> Steps[None]:
        """Read a call behind its tag."""
        source = self.source
        name = yield from read_name(source)
        yield from source.literal(SEPARATOR)
        yield from source.skip_space()
        fenced = (yield from source.peek()) != "{"
        if fenced:
            name = yield from read_name(source)
            yield from source.skip_space()
            yield from source.literal(FENCE)
        call = self.begin(name)
        yield from read_arguments(call, source)
        yield from source.skip_space()
        if fenced:
            yield from source.ending(FENCE_END)
        yield from source.skip_space()
        yield from source.ending(CALL_END)
        call.end()


NAMED = CallFormat(
    named_call(CALL, SEPARATOR, CALL_END),
    opening=SECTION,
    separator="",
    closing=SECTION_END,
    trigger=TRIGGER,
)
FENCED = dataclasses.replace(
    NAMED,
    call=named_call(f"{CALL}function{SEPARATOR}", f"\n{FENCE}\n", f"\n{FENCE_END}{CALL_END}"),
    separator="\n",
    also=(NAMED,),
)
DIALECT = ToolDialect(
    "deepseek",
    DeepSeekParser,
    recognised=lambda template: SECTION in template,
    special_tokens=(SECTION, SECTION_END, CALL, CALL_END, SEPARATOR),
    format=FENCED,
)
