"""What parsers of calls share: text around markup, and what becomes of markup that is damaged."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from ovchat_server.chat.dialects.base import CallPiece, Parsed
from ovchat_server.chat.dialects.json_text import encodable, parse
from ovchat_server.chat.dialects.source import (
    DamagedError,
    Source,
    Steps,
    tag_pattern,
    unfinished,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ovchat_server.chat.dialects.base import ParserOptions


class Call:
    """A call that is being read."""

    def __init__(self, parser: MarkupParser, name: str, *, trusted: bool) -> None:
        """Begin a call; see `MarkupParser.begin`."""
        self._parser = parser
        self._name = name
        self._trusted = trusted
        self._arguments: list[str] = []
        if trusted:
            parser.hand_out(CallPiece(name, ""))

    @property
    def trusted(self) -> bool:
        """Whether a grammar guarantees that it is well formed."""
        return self._trusted

    def write(self, fragment: str) -> None:
        """More of the arguments' JSON."""
        self._arguments.append(fragment)
        if self._trusted:
            self._parser.hand_out(CallPiece(None, fragment))

    def end(self) -> None:
        """The call is whole. One that has no arguments is a call.

        Raises:
            DamagedError: Its arguments are no object.
        """
        if not self._arguments:
            self.write("{}")
        if self._trusted:
            return
        arguments = "".join(self._arguments).strip()
        if not isinstance(parse(arguments), dict):
            raise DamagedError
        self._parser.hand_out(CallPiece(self._name, arguments))


class MarkupParser(ABC):
    """Finds markup in text, and the calls in it.

    Text before, between and after calls is content. White space next to a call is markup.
    What was read of markup that turns out to be damaged is content, and so is what follows.

    Attributes:
        tags: Where markup begins.
        bare: Characters that begin it, too, where they begin a line or follow a call: for
            families that write calls without any tag.
    """

    tags: ClassVar[tuple[str, ...]] = ()
    bare: ClassVar[str] = ""

    def __init__(self, options: ParserOptions) -> None:
        """Parse one answer."""
        self.tools = options.tools
        self.source = Source()
        self._trusted = options.trusted
        self._leading = options.leading
        self._content: list[str] = []
        self._calls: list[CallPiece] = []
        # White space that is markup if a call follows.
        self._gap: list[str] = []
        self._after_call = False
        self._line_begins = True
        self._said = False
        # In the markup that is being read.
        self._handed_out = False
        self._opening = _opening_pattern(self.tags, self.bare)
        self._bare_opening = re.compile(rf"[ \t]*([{re.escape(self.bare)}])") if self.bare else None
        self._steps = self._run()

    @abstractmethod
    def read(self, opening: str) -> Steps[None]:
        """Read markup behind its `opening`, and the calls in it.

        Raises:
            DamagedError: It is none, from here on.
        """

    def feed(self, text: str) -> Parsed:
        """What of the text so far, and not handed out yet, is which."""
        self.source.push(text)
        next(self._steps)
        return self._take()

    def flush(self) -> Parsed:
        """What was held back, at the end of the answer."""
        self.source.ended = True
        for _ in self._steps:
            raise AssertionError("nobody waits for text that has ended")
        return self._take()

    def begin(self, name: str) -> Call:
        """Begin a call.

        Raises:
            DamagedError: That is no name.
        """
        if not encodable(name).strip():
            raise DamagedError
        return Call(self, name, trusted=self._trusted)

    def offers(self, name: str) -> bool:
        """Whether there is a tool of that name. Without tools there may be any."""
        return not self.tools or any(tool.name == name for tool in self.tools)

    def hand_out(self, piece: CallPiece) -> None:
        """A part of a call is certain, and so is what was read for it."""
        self._calls.append(piece)
        self._handed_out = True
        self._gap.clear()
        self._after_call = self._line_begins = True
        self.source.forget()

    def say(self, text: str) -> None:
        """Text is content."""
        if self._after_call:
            text = text.lstrip()
        line = text.rstrip(" \t")
        if line:
            self._line_begins = line.endswith("\n")
        kept = text.rstrip()
        self._said = self._said or bool(kept)
        if kept:
            self._content += [*self._gap, kept]
            self._gap.clear()
            self._after_call = False
        # White space before what may become a call waits for it.
        self._gap.append(text[len(kept) :])

    def _run(self) -> Iterator[None]:
        # `feed` pushes before it runs.
        while True:
            opening = yield from self._say_until_opening()
            if opening is None:
                self._content += self._gap
                return
            self._handed_out = False
            try:
                yield from self.read(opening)
            except DamagedError:
                if self._trusted and self._handed_out and self.source.ended:
                    # Cut off between the parts of a call that is handed out already.
                    return
                self.say(self.source.remembered())

    def _say_until_opening(self) -> Steps[str | None]:
        source = self.source
        while True:
            source.forget()
            if (opening := self._find()) is not None:
                return opening
            end = len(source.text)
            if not source.ended:
                end -= unfinished(source.text, source.at, self.tags)
            self.say(source.text[source.at : end])
            source.at = end
            if source.ended:
                return None
            yield

    def _find(self) -> str | None:
        """Say what comes before the next opening, and read that."""
        source = self.source
        found = None
        if self._bare_opening and self._line_begins:
            found = self._bare_opening.match(source.text, source.at)
        found = found or self._opening.search(source.text, source.at)
        if not found:
            return None
        opening = found[1] or found[0]
        start = found.end() - len(opening)
        if self._leading and (self._said or source.text[source.at : start].strip()):
            return None
        self.say(source.text[source.at : start])
        source.at = start
        source.forget()
        source.at = found.end()
        return opening

    def _take(self) -> Parsed:
        parsed = Parsed("".join(self._content), tuple(self._calls))
        self._content.clear()
        self._calls.clear()
        return parsed


def _opening_pattern(tags: tuple[str, ...], bare: str) -> re.Pattern[str]:
    """Finds a tag, or a bare opening at the beginning of a line, which is group 1."""
    tagged = f"(?:{tag_pattern(tags).pattern})()" if tags else "(?!)()"
    return re.compile(rf"\n[ \t]*([{re.escape(bare)}])|{tagged}" if bare else tagged)
