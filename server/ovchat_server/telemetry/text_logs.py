"""Log lines for people: the time, a sentence and what it leaves out."""

from __future__ import annotations

import logging
from typing import Final

import click

ACCESS: Final = "ovchat.access"
# The field that says which of several servers it is.
SERVER: Final = "server"
# What every record has; the rest was given to the call as `extra`.
_STANDARD: Final = {*vars(logging.makeLogRecord({})), "message", "asctime"}
_COLOURS: Final = {"WARNING": "yellow", "ERROR": "red", "CRITICAL": "red"}


class TextFormatter(logging.Formatter):
    """Writes `HH:MM:SS message key=value ...`."""

    def __init__(self, *, colours: bool) -> None:
        """Format with colours or without."""
        super().__init__(datefmt="%H:%M:%S")
        self._colours = colours

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record, and its traceback below."""
        message = record.getMessage()
        words = [message]
        for name, value in vars(record).items():
            # A server's number is seldom the one that a message happens to have.
            told = name != SERVER and str(value) in message
            if name not in _STANDARD and _shown(record, name) and not told:
                words.append(f"{name}={value}")
        line = self._coloured(_one_line(" ".join(words)), _COLOURS.get(record.levelname))
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return f"{self._coloured(self.formatTime(record, self.datefmt), 'bright_black')} {line}"

    def _coloured(self, text: str, colour: str | None) -> str:
        return click.style(text, fg=colour) if self._colours and colour else text


def _shown(record: logging.LogRecord, name: str) -> bool:
    """Say whether people read a field: of a request only the id, for looking up why it failed."""
    if record.name != ACCESS:
        return True
    failed = getattr(record, "grpc_status", "OK") != "OK" or hasattr(record, "error")
    return failed and name == "request_id"


def _one_line(text: str) -> str:
    """Return a text that neither ends its line nor steers a terminal, whoever wrote it."""
    if text.isprintable():
        return text
    return "".join(
        character
        if character.isprintable()
        else " "
        if character.isspace()
        else ascii(character)[1:-1]
        for character in text
    )
