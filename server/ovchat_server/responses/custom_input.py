"""The input of a custom tool's call, out of the JSON in which the model writes it.

To the model such a tool is a function of one text: `{"input": "..."}`.
"""

from __future__ import annotations

import json
import re

HEAD = re.compile(r'\s*\{\s*"input"\s*:\s*"')
SHORTEST_HEAD = '{"input":"'
# What may go on: of an escape its beginning, of a pair of surrogates the first.
UNFINISHED = r"\\(?:u(?:[0-9a-f]{0,3}|d[89ab][0-9a-f]{2}(?:\\(?:u[0-9a-f]{0,3})?)?))?\Z"
PAIR = r"\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}"
# The last is an escape that JSON does not know.
ESCAPE = re.compile(rf"{PAIR}|\\u[0-9a-f]{{4}}|\\.", re.IGNORECASE | re.DOTALL)
CHARACTERS = re.compile(
    rf'(?:[^"\\]|(?!{UNFINISHED})(?:{ESCAPE.pattern}))*', re.IGNORECASE | re.DOTALL
)


class InputDecoder:
    """Decodes the JSON string as it comes.

    It is lenient, as what was sent cannot be taken back: an escape that JSON does not know stays
    as it is, half a surrogate pair is U+FFFD, and what follows the string is dropped. Arguments
    of another shape are the input as they are.
    """

    def __init__(self) -> None:
        """Begin without text."""
        self._pending = ""
        self._inside = self._closed = False

    def add(self, text: str) -> str:
        """Return the characters of the input that are complete with more of the arguments."""
        if self._closed:
            return ""
        self._pending += text
        if not self._inside:
            head = HEAD.match(self._pending)
            if head is None:
                return ""
            self._inside = True
            self._pending = self._pending[head.end() :]
        complete = CHARACTERS.match(self._pending)
        end = complete.end() if complete else 0
        characters, self._pending = self._pending[:end], self._pending[end:]
        self._closed = self._pending.startswith('"')
        return ESCAPE.sub(_character, characters)

    def end(self, *, cut: bool) -> str:
        """Return what is left of the input at the end of the arguments.

        Args:
            cut: They are incomplete. Of JSON that was just begun there is no input.
        """
        begun = cut and SHORTEST_HEAD.startswith("".join(self._pending.split()))
        return "" if self._inside or begun else self._pending


def _character(escape: re.Match[str]) -> str:
    try:
        character: str = json.loads(f'"{escape[0]}"')
    except ValueError:
        return escape[0]
    # Half a pair cannot be sent.
    return character.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
