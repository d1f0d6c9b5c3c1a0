"""The base of parsers of calls: text around markup, and the handling of damaged markup."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from ovchat_server.chat.dialects.base import CallPiece, Output
from ovchat_server.chat.dialects.json_text import encodable, parse
from ovchat_server.chat.dialects.source import DamagedError, Source, Steps, tag_pattern, unfinished

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ovchat_server.chat.dialects.base import ParserOptions


# What tags begin with, of families that begin them with no word.
BRACKETS = "<["


class Call:
    """A call that is being read.

    Attributes:
        enforced: A grammar guarantees that it is well formed.
    """

    def __init__(self, parser: MarkupParser, name: str, *, enforced: bool) -> None:
        """Begin a call; see `MarkupParser.begin`."""
        self._parser = parser
        self._name = name
        self.enforced = enforced
        self._arguments: list[str] = []
        if enforced:
            parser.hand_out(CallPiece(name, ""))

    def write(self, fragment: str) -> None:
        """Append to the JSON of the arguments."""
        self._arguments.append(fragment)
        if self.enforced:
            self._parser.hand_out(CallPiece(None, fragment))

    def end(self) -> None:
        """End the call, which may have no arguments.

        Raises:
            DamagedError: The arguments are not a JSON object.
        """
        if not self._arguments:
            self.write("{}")
        if self.enforced:
            return
        arguments = "".join(self._arguments).strip()
        if not isinstance(parse(arguments), dict):
            raise DamagedError
        self._parser.hand_out(CallPiece(self._name, arguments))


class MarkupParser(ABC):
    """Finds markup in text, and the calls in it.

    Text before, between and after calls is content. White space next to a call is markup.
    Markup that turns out to be damaged is content, and so is the text that follows.

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
        self._calls_enforced = options.calls_enforced
        self._calls_only_first = options.calls_only_first
        self._content: list[str] = []
        self._calls: list[CallPiece] = []
        # White space that is markup if a call follows.
        self._gap: list[str] = []
        self._after_call = False
        self._line_begins = True
        self._has_content = False
        # The most tokens ended the answer.
        self._cut = False
        # Of the markup that is being read: whether a call's name is known, and given out.
        self._named = False
        self._handed_out = False
        self._opening = _opening_pattern(self.tags, self.bare)
        self._bare_opening = re.compile(rf"[ \t]*([{re.escape(self.bare)}])") if self.bare else None
        self._steps = self._run()

    @abstractmethod
    def read(self, opening: str) -> Steps[None]:
        """Read markup behind its `opening`, and the calls in it.

        Raises:
            DamagedError: The text is not the dialect's markup, from here on.
        """

    def feed(self, text: str) -> Output:
        """Add text and return what can be parsed of the text so far."""
        self.source.push(text)
        next(self._steps)
        return self._take()

    def flush(self, *, cut: bool = False) -> Output:
        """End the answer and return what was held back."""
        self.source.ended, self._cut = True, cut
        for _ in self._steps:
            raise AssertionError("nobody waits for text that has ended")
        return self._take()

    def begin(self, name: str) -> Call:
        """Begin a call.

        Raises:
            DamagedError: The name is empty or not valid text.
        """
        if not encodable(name).strip():
            raise DamagedError
        self._named = True
        return Call(self, name, enforced=self._calls_enforced)

    def offers(self, name: str) -> bool:
        """Return whether there is a tool with this name; without tools any name will do."""
        return not self.tools or any(tool.name == name for tool in self.tools)

    def hand_out(self, piece: CallPiece) -> None:
        """Pass on a part of a call that is certain, and forget the text that was read for it."""
        self._calls.append(piece)
        self._handed_out = True
        self._gap.clear()
        self._after_call = self._line_begins = True
        self.source.forget()

    def add_content(self, text: str) -> None:
        """Pass on text as content."""
        if self._after_call:
            text = text.lstrip()
        line = text.rstrip(" \t")
        if line:
            self._line_begins = line.endswith("\n")
        kept = text.rstrip()
        self._has_content = self._has_content or bool(kept)
        if kept:
            self._content += [*self._gap, kept]
            self._gap.clear()
            self._after_call = False
        # White space before what may become a call waits for it.
        self._gap.append(text[len(kept) :])

    def _run(self) -> Iterator[None]:
        # `feed` pushes before it runs.
        while True:
            opening = yield from self._pass_until_opening()
            if opening is None:
                self._content += self._gap
                return
            self._named = self._handed_out = False
            try:
                yield from self.read(opening)
            except DamagedError:
                if self._calls_enforced and self._handed_out and self.source.ended:
                    # Cut off between the parts of a call that is handed out already.
                    return
                if self._cut and not self._named and opening in self.tags:
                    # Cut off before it says what it calls: nothing that anybody could read.
                    return
                self.add_content(self.source.remembered())

    def _pass_until_opening(self) -> Steps[str | None]:
        source = self.source
        while True:
            source.forget()
            if (opening := self._find()) is not None:
                return opening
            end = len(source.text)
            if not source.ended or self._cut:
                end -= self._unfinished_tag()
            self.add_content(source.text[source.at : end])
            source.at = end
            if source.ended:
                return None
            yield

    def _unfinished_tag(self) -> int:
        """Return the length of what may be the beginning of a tag, at the end of the text."""
        source = self.source
        length = unfinished(source.text, source.at, self.tags)
        # At the end of the answer words and single characters are text.
        beginning = source.text[len(source.text) - length :]
        words = source.ended and (length == 1 or beginning[:1] not in BRACKETS)
        return 0 if words else length

    def _find(self) -> str | None:
        """Pass on the text before the next opening, and read the opening."""
        source = self.source
        found = None
        if self._bare_opening and self._line_begins:
            found = self._bare_opening.match(source.text, source.at)
        found = found or self._opening.search(source.text, source.at)
        if not found:
            return None
        opening = found[1] or found[0]
        start = found.end() - len(opening)
        if self._calls_only_first and (self._has_content or source.text[source.at : start].strip()):
            return None
        self.add_content(source.text[source.at : start])
        source.at = start
        source.forget()
        source.at = found.end()
        return opening

    def _take(self) -> Output:
        output = Output("", "".join(self._content), tuple(self._calls))
        self._content.clear()
        self._calls.clear()
        return output


def _opening_pattern(tags: tuple[str, ...], bare: str) -> re.Pattern[str]:
    """Return a pattern for tags, and for bare openings at the beginning of a line (group 1)."""
    tagged = f"(?:{tag_pattern(tags).pattern})()" if tags else "(?!)()"
    return re.compile(rf"\n[ \t]*([{re.escape(bare)}])|{tagged}" if bare else tagged)
