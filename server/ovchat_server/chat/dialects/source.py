"""Text that arrives in pieces, for parsers that are written as if it were complete.

A parser is a generator that reads from a source and yields where it needs more text than there
is. The text that was read is remembered until it is forgotten, so that a parser that gave up can
return it as content. Text is read once: what stays unread is no longer than a tag.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from functools import cache
from typing import TypeVar

T = TypeVar("T")
Steps = Generator[None, None, T]
SPACE = re.compile(r"\s*")


class DamagedError(Exception):
    """The text is not what the dialect's markup promised."""


class Source:
    """The text of one answer, read from its beginning."""

    def __init__(self) -> None:
        """Start with no text."""
        # What is not read yet begins at `at`.
        self.text = ""
        self.at = 0
        self.ended = False
        self._read: list[str] = []
        self._remembered = 0
        self._write: Callable[[str], object] | None = None
        self._written = 0

    def push(self, text: str) -> None:
        """Add text."""
        self._hand_out()
        self._read.append(self.text[self._remembered : self.at])
        self.text = self.text[self.at :] + text
        self.at = self._remembered = self._written = 0

    def forget(self) -> None:
        """Forget the text that was read so far."""
        self._read.clear()
        self._remembered = self.at

    def remembered(self) -> str:
        """Return the text that was read since the last `forget`."""
        return "".join(self._read) + self.text[self._remembered : self.at]

    def copied(self, write: Callable[[str], object], steps: Steps[T]) -> Steps[T]:
        """Take `steps`, and pass the text that they read to `write` as soon as it is read."""
        self._write, self._written = write, self.at
        try:
            return (yield from steps)
        finally:
            self._hand_out()
            self._write = None

    def _hand_out(self) -> None:
        if self._write and self.at > self._written:
            self._write(self.text[self._written : self.at])
            self._written = self.at

    def need(self, count: int) -> Steps[None]:
        """Wait until `count` characters are unread.

        Raises:
            DamagedError: The text ends before.
        """
        while len(self.text) - self.at < count:
            if self.ended:
                raise DamagedError
            yield

    def peek(self) -> Steps[str]:
        """Return the next character without reading it.

        Raises:
            DamagedError: The text ends here.
        """
        yield from self.need(1)
        return self.text[self.at]

    def run(self, characters: re.Pattern[str], most: int | None = None) -> Steps[str]:
        """Read the characters that match `characters`, a repeated set.

        Raises:
            DamagedError: There are more than `most`.
        """
        pieces: list[str] = []
        length = 0
        while True:
            match = characters.match(self.text, self.at)
            piece = match[0] if match else ""
            pieces.append(piece)
            length += len(piece)
            self.at += len(piece)
            if most is not None and length > most:
                # Not further than where it was decided, whatever the pieces.
                self.at -= length - most
                raise DamagedError
            if self.at < len(self.text) or self.ended:
                return "".join(pieces)
            yield

    def skip_space(self) -> Steps[None]:
        """Read white space."""
        yield from self.run(SPACE)

    def first_of(self, *literals: str) -> Steps[str | None]:
        """Read the first of `literals` that comes next; return None if none does."""
        for literal in literals:
            while True:
                rest = self.text[self.at : self.at + len(literal)]
                if rest == literal:
                    self.at += len(literal)
                    return literal
                if self.ended or not literal.startswith(rest):
                    break
                yield
        return None

    def ahead(self, *literals: str) -> Steps[bool]:
        """Return whether one of `literals` comes next, without reading it."""
        literal = yield from self.first_of(*literals)
        self.at -= len(literal or "")
        return literal is not None

    def literal(self, literal: str) -> Steps[None]:
        """Read `literal`.

        Raises:
            DamagedError: Something else comes next.
        """
        if (yield from self.first_of(literal)) is None:
            raise DamagedError

    def close(self, *literals: str) -> Steps[bool]:
        """Read one of `literals`, or the beginning of one that the end of the text cut off.

        Returns:
            Whether there was one.
        """
        if (yield from self.first_of(*literals)) is not None:
            return True
        rest = self.text[self.at :]
        cut = self.ended and any(literal.startswith(rest) for literal in literals)
        if cut:
            self.at = len(self.text)
        return cut

    def ending(self, literal: str) -> Steps[None]:
        """Read `literal`, or the beginning of it that the end of the text cut off.

        Raises:
            DamagedError: Something else comes next.
        """
        if not (yield from self.close(literal)):
            raise DamagedError

    def text_until(self, tag: str) -> Steps[str]:
        """Read up to and with `tag`, and return the text before it.

        Raises:
            DamagedError: The text ends before.
        """
        text: list[str] = []
        if (yield from self.until(tag, write=text.append)) is None:
            raise DamagedError
        return "".join(text)

    def until(self, *tags: str, write: Callable[[str], object]) -> Steps[str | None]:
        """Pass the text before the first of `tags` to `write`, and read the tag.

        Returns:
            The tag, or None if the text ends before one.
        """
        search = tag_pattern(tags).search
        while True:
            found = search(self.text, self.at)
            end = found.start() if found else len(self.text)
            if not found and not self.ended:
                end -= unfinished(self.text, self.at, tags)
            if end > self.at:
                write(self.text[self.at : end])
            self.at = found.end() if found else end
            if found:
                return found[0]
            if self.ended:
                return None
            yield


@cache
def tag_pattern(tags: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for any of `tags`, the longest where several begin at the same place."""
    return re.compile("|".join(map(re.escape, sorted(tags, key=len, reverse=True))))


def unfinished(text: str, start: int, tags: tuple[str, ...]) -> int:
    """Return the length of the longest suffix of `text[start:]` that may become one of `tags`."""
    beginnings, firsts, longest = _beginnings(tags)
    for at in range(max(start, len(text) - longest), len(text)):
        if text[at] in firsts and text[at:] in beginnings:
            return len(text) - at
    return 0


@cache
def _beginnings(tags: tuple[str, ...]) -> tuple[frozenset[str], frozenset[str], int]:
    """Return all proper prefixes of tags, their first characters, and the longest one's length."""
    beginnings = frozenset(tag[:length] for tag in tags for length in range(1, len(tag)))
    firsts = frozenset(tag[0] for tag in tags)
    return beginnings, firsts, max(map(len, beginnings), default=0)


def finished(steps: Callable[[Source], Steps[T]], text: str) -> T:
    """Run `steps` on a complete text and return their result.

    Raises:
        DamagedError: The text does not parse, or there is more text behind.
    """
    source = Source()
    source.push(text)
    source.ended = True
    run = steps(source)
    try:
        next(run)
    except StopIteration as stop:
        result: T = stop.value
    else:
        raise AssertionError("nobody waits for text that has ended")
    if source.at < len(text):
        raise DamagedError
    return result
