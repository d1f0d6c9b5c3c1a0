"""Calls between tags of their own, in a section or without one: DeepSeek's form, and Kimi's."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from ovchat_server.chat.dialects.markup import MarkupParser
from ovchat_server.chat.dialects.source import DamagedError

if TYPE_CHECKING:
    from ovchat_server.chat.dialects.source import Steps


class SectionParser(MarkupParser):
    """Reads sections; how a call is written is the dialect's.

    Attributes:
        tags: What begins a section, and what begins a call.
        section_end: What ends a section.
    """

    tags: ClassVar[tuple[str, str]]
    section_end: ClassVar[str]

    def read(self, opening: str) -> Steps[None]:
        """Read a section, or calls without one."""
        source = self.source
        section, call = self.tags
        inside = opening == call
        while True:
            if inside:
                yield from self.read_call()
            yield from source.skip_space()
            if (yield from source.first_of(call)) is None:
                break
            inside = True
        if not inside or (not (yield from source.close(self.section_end)) and opening == section):
            raise DamagedError

    @abstractmethod
    def read_call(self) -> Steps[None]:
        """Read a call behind its tag.

        Raises:
            DamagedError: The text is something else, from here on.
        """
