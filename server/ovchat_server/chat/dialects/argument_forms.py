"""How families that name arguments one by one write them, for the compiler of grammars.

The arguments of a call follow its tool's schema: those that are required, and others or not, in
the schema's order. Where it declares some, there are no others. What cannot be held to (a
required property whose name the family cannot write) leaves the arguments free.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ovchat_server.chat.dialects.ebnf import literal
from ovchat_server.chat.dialects.members import Keys, members
from ovchat_server.chat.dialects.notation import KEYWORD, UnwritableError
from ovchat_server.chat.dialects.plain_schemas import not_plain
from ovchat_server.chat.dialects.schema_leaves import leaves
from ovchat_server.chat.dialects.string_patterns import pattern
from ovchat_server.chat.dialects.text_values import TextGrammar
from ovchat_server.chat.dialects.value_grammar import ValueGrammar

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.api.json_value import JsonObject, JsonValue
    from ovchat_server.chat.dialects.call_form import CalledTool
    from ovchat_server.chat.dialects.notation import Notation
    from ovchat_server.chat.dialects.text_values import TextValues

# Of names that only a pattern tells.
NO_NAME = "=:,()[]{}<>&\"' "


@dataclass(frozen=True, slots=True)
class ArgumentForm:
    """How a family writes the arguments of a call.

    Attributes:
        notation: How values are written, or those inside others where `text` says more.
        name: Writes a name; raises UnwritableError where it cannot.
        after: What stands between a name and its value.
        before: What stands before a name.
        comma: What stands between two arguments.
        text: How values are written as text. None: as they are inside others.
    """

    notation: Notation
    name: Callable[[str], str]
    after: str
    before: str = ""
    comma: str = ""
    text: TextValues | None = None

    def content(self, tool: CalledTool) -> JsonObject:
        """The format of all arguments of a call."""
        # What is more than plain is no reason not to call: its arguments are free.
        schema = {} if not_plain(tool.schema) else tool.schema
        values = ValueGrammar(self.notation, schema)
        texts = TextGrammar(values, self.text, schema) if self.text else None
        before, after = literal(self.before), literal(self.after)
        keys = Keys(
            lambda name: f"{before} {self.name(name)} {after}",
            lambda regex: f"{before} {pattern(regex, NO_NAME)} {after}",
            f"{before} {KEYWORD} {after}",
            literal(self.comma) if self.comma else "",
            ordered=self.notation.ordered,
        )

        def value(part: JsonValue, name: str | None) -> str:
            return texts.value(part, name) if texts else values.value(part)

        options: list[Callable[[], str]] = [
            partial(members, leaf, keys, value)
            for leaf in leaves(schema, schema)
            if leaf.get("type", "object") == "object" and "const" not in leaf
        ]
        try:
            start = values.written(options)
        except UnwritableError:
            start = members({}, keys, value)
        return {"type": "grammar", "grammar": values.grammar(start)}


def bare_names(names: str) -> Callable[[str], str]:
    """Writes those names as they are that a pattern matches."""

    def name(text: str) -> str:
        if not re.fullmatch(names, text):
            raise UnwritableError
        return literal(text)

    return name
