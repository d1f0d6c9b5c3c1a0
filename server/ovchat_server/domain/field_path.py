"""Where the fields of a request stand, and messages that mention them.

Both stay structured until a door writes them, because each public API spells the same field in
its own way: `max_tokens` is `max_output_tokens` elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

# An index, or a name.
STEP = re.compile(r"\[([0-9]{1,9})\]|([^.\[\]]+)")


@dataclass(frozen=True, slots=True)
class FieldPath:
    """The way to a field: names in objects, and indices in arrays.

    As text it is what OpenAI's errors have: `messages[2].content[0].text`.
    """

    steps: tuple[str | int, ...] = ()

    @classmethod
    def of(cls, *steps: str | int) -> FieldPath:
        """Return the path of `steps`, the outermost first."""
        return cls(steps)

    @classmethod
    def read(cls, text: str) -> FieldPath:
        """Return the path that OpenAI writes as `text`; whatever it is, it is one."""
        found = STEP.finditer(text)
        return cls(tuple(int(step[1]) if step[1] else step[2] for step in found))

    def __truediv__(self, inner: Field | int) -> FieldPath:
        """Return the path of what stands at `inner` inside of this field."""
        steps = inner.steps if isinstance(inner, FieldPath) else (inner,)
        return FieldPath(self.steps + steps)

    def __str__(self) -> str:
        """Write it as OpenAI does."""
        text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.steps)
        return text.removeprefix(".")


@dataclass(frozen=True, slots=True)
class SchemaPath:
    """The way to something inside of a schema.

    Attributes:
        field: The field that holds the schema.
        pointer: A JSON pointer into it; "": all of it.
    """

    field: FieldPath
    pointer: str = ""

    def __str__(self) -> str:
        """Write both, one after the other: `tools[0].function.parameters/properties/city`."""
        return f"{self.field}{self.pointer}"


# The name of a field at the top of what is spoken of, or a path.
Field: TypeAlias = str | FieldPath
Spelling: TypeAlias = Callable[[FieldPath], FieldPath]


def field_path(field: Field) -> FieldPath:
    """Return the path of a field."""
    return field if isinstance(field, FieldPath) else FieldPath((field,))


@dataclass(frozen=True, slots=True)
class ErrorText:
    """A message for a caller: text, and the paths that it mentions."""

    parts: tuple[str | FieldPath, ...]

    @classmethod
    def of(cls, *parts: str | FieldPath | ErrorText) -> ErrorText:
        """Return the text of `parts`, one after the other."""
        flat: list[str | FieldPath] = []
        for part in parts:
            flat += part.parts if isinstance(part, ErrorText) else (part,)
        return cls(tuple(flat))

    def spelled(self, spelling: Spelling) -> ErrorText:
        """Return the same text with each path as `spelling` has it."""
        return ErrorText(
            tuple(spelling(part) if isinstance(part, FieldPath) else part for part in self.parts)
        )

    def __str__(self) -> str:
        """Write it, paths as OpenAI does."""
        return "".join(map(str, self.parts))


# Completes "<field> ...".
Complaint: TypeAlias = str | ErrorText
