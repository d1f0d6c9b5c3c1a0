"""Arguments of calls that are named one by one: `<parameter=city>Rome</parameter>`, `city="Rome"`.

They follow the schema of a tool: those that are required, and others or not, in the schema's order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat_server.grammar.ebnf import Alphabet, literal
from ovchat_server.grammar.notation import JSON, KEYWORD, UnwritableError, excluding, verbatim
from ovchat_server.grammar.objects import Keys
from ovchat_server.grammar.schema.errors import SchemaError
from ovchat_server.grammar.schema.shapes import Object, String, Values
from ovchat_server.grammar.schema_rules import placed
from ovchat_server.grammar.text_values import TextNotation, TextWriter
from ovchat_server.grammar.values import ValueWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ovchat_server.domain.json_value import JsonObject, JsonValue
    from ovchat_server.grammar.notation import Notation
    from ovchat_server.grammar.relaxation import Relaxation
    from ovchat_server.grammar.rules import Alternative, Rule
    from ovchat_server.grammar.schema.shapes import Shape

# Names that only a pattern tells hold none of these.
NAMES = Alphabet(excluding("=:,()[]{}<>&\"' "), verbatim)
ANY_PARAMETER = (
    'TagDispatch(stop_eos=true, stop_str=(), loop_after_dispatch=false, excludes=("</parameter>"))'
)


@dataclass(frozen=True, slots=True, eq=False)
class ArgumentNotation:
    """How a family writes the arguments of a call.

    Attributes:
        values: How values are written, or those inside others where `text` says more.
        name: Writes a name; raises UnwritableError where it cannot.
        after: Stands between a name and its value.
        before: Stands before a name.
        comma: Stands between two arguments.
        text: How values are written as text. None: as they are inside others.
    """

    values: Notation
    name: Callable[[str], str]
    after: str
    before: str = ""
    comma: str = ""
    text: TextNotation | None = None

    def grammar(self, schema: JsonValue, relaxation: Relaxation | None = None) -> str:
        """Return the EBNF of all arguments of a call; see Write."""
        writer = ValueWriter(schema, self.values, relaxation)
        texts = TextWriter(writer, self.text, schema) if self.text else writer
        keys = Keys(
            KEYWORD,
            self.name,
            NAMES.content,
            literal(self.after),
            literal(self.comma) if self.comma else "",
            '""',
            literal(self.before) if self.before else "",
        )

        def members(new: JsonValue) -> list[Alternative]:
            return [
                option
                for shape in _objects(writer.reader.shapes(new))
                for option in writer.objects.members(shape, "", keys, texts.rule)
            ]

        writer.rules.of_schema("", schema, "", members)
        return writer.finished(*(self.text.rules if self.text else ()))


def _objects(shapes: list[Shape]) -> Iterator[Object]:
    for shape in shapes:
        match shape:
            case Object():
                yield shape
            case Values(values):
                for value in values:
                    if isinstance(value, dict):
                        properties: JsonObject = {name: {"const": value[name]} for name in value}
                        yield Object(properties, tuple(value), rest=False)


def bare_names(pattern: str) -> Callable[[str], str]:
    """Return what writes those names as they are that a regular expression matches."""

    def name(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise UnwritableError(f"an argument called {text!r}")
        return literal(text)

    return name


def parameters_grammar(schema: JsonValue) -> str:
    """Return the EBNF of xgrammar's qwen_xml_parameter, which callers ask for in structural tags.

    That is `<parameter=name>`, the value on lines of its own, `</parameter>`; strings that may
    be anything stand without quotation marks, all else as JSON.

    Raises:
        SchemaError: It cannot be enforced.
    """
    writer = ValueWriter(schema, JSON)
    root = writer.rules.new([])
    text = writer.rules.new([(ANY_PARAMETER,)])
    named = Keys("", literal, NAMES.content, '">\\x0a"', '"\\x0a"', '""', '"<parameter="')

    def value(child: JsonValue, place: str, _: str | None) -> Rule:
        free = writer.reader.shapes(child) == [String()]
        inside = text if free else writer.rule(child, place)
        return writer.rules.new([(inside, literal("\n</parameter>"))])

    with placed(""):
        for shape in writer.reader.shapes(schema):
            if not isinstance(shape, Object) or not writer.objects.properties(shape):
                raise SchemaError("has a qwen_xml_parameter that is no object with properties")
            root.alternatives += writer.objects.members(shape, "", named, value)
    return writer.finished()
