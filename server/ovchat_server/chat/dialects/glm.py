"""GLM's form: `<tool_call>name`, then a tag for each key and one for each value, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.chat.dialects.base import ToolDialect
from ovchat_server.chat.dialects.call_format import CallFormat, named_call
from ovchat_server.chat.dialects.json_calls import read_name
from ovchat_server.chat.dialects.markup import MarkupParser
from ovchat_server.chat.dialects.source import DamagedError
from ovchat_server.chat.dialects.values import Arguments, typed, types_of
from ovchat_server.grammar.arguments import ArgumentNotation, bare_names
from ovchat_server.grammar.notation import JSON_WORDS, json_notation
from ovchat_server.grammar.text_values import tagged

if TYPE_CHECKING:
    from ovchat_server.chat.dialects.source import Steps

OPEN, CLOSE = "<tool_call>", "</tool_call>"
KEY, KEY_END = "<arg_key>", "</arg_key>"
VALUE, VALUE_END = "<arg_value>", "</arg_value>"


class GlmParser(MarkupParser):
    """A call."""

    tags = (OPEN,)

    def read(self, opening: str) -> Steps[None]:  # noqa: ARG002  there is one
        """Read a call."""
        source = self.source
        yield from source.skip_space()
        name = yield from read_name(source)
        yield from source.skip_space()
        # Or a word of prose behind the tag would be a call already.
        if not (yield from source.ahead(KEY, CLOSE)):
            raise DamagedError
        arguments = Arguments(self.begin(name), self.tools, name)
        while True:
            yield from source.skip_space()
            tag = yield from source.first_of(KEY, CLOSE)
            if tag == CLOSE:
                break
            if tag is None:
                raise DamagedError
            key = yield from source.text_until(KEY_END)
            yield from source.skip_space()
            yield from source.literal(VALUE)
            arguments.write(key.strip(), (yield from source.text_until(VALUE_END)))
        arguments.end()


_ARGUMENTS = ArgumentNotation(
    json_notation(VALUE_END),
    # White space around them is layout.
    bare_names(rf"(?!\s)(?:(?!{KEY_END}).)+(?<!\s)"),
    before=KEY,
    after=f"{KEY_END}\n{VALUE}",
    text=tagged(VALUE_END, f"{VALUE_END}\n", JSON_WORDS, types_of, typed),
)


DIALECT = ToolDialect(
    "glm",
    GlmParser,
    recognised=lambda template: KEY in template,
    special_tokens=(OPEN, CLOSE, KEY, KEY_END, VALUE, VALUE_END),
    format=CallFormat(named_call(OPEN, "\n", CLOSE), trigger=OPEN, arguments=_ARGUMENTS.grammar),
)
