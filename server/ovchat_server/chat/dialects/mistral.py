"""Mistral's forms: `[TOOL_CALLS][{"name": ..., "arguments": {...}}]`, and one call by its name.

`[TOOL_CALLS]name[ARGS]{...}` is that of models since 2025: Devstral, Small 3.2, Ministral 3.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from ovchat_server.chat.dialects.base import ToolDialect
from ovchat_server.chat.dialects.call_format import (
    CalledTool,
    CallFormat,
    regex_format,
    sequence_format,
    tag_format,
)
from ovchat_server.chat.dialects.json_calls import json_call, read_arguments, read_list, read_name
from ovchat_server.chat.dialects.markup import MarkupParser
from ovchat_server.chat.dialects.source import DamagedError
from ovchat_server.grammar.patterns import literal

if TYPE_CHECKING:
    from ovchat_server.chat.dialects.source import Steps
    from ovchat_server.domain.json_value import JsonObject

TAG, CALL_ID, ARGUMENTS = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"


class MistralParser(MarkupParser):
    """The list, or a call by its name: which one shows behind the tag.

    In the newer form each call has a tag of its own. Its id is the model's own affair.
    """

    tags = (TAG,)

    def read(self, opening: str) -> Steps[None]:  # noqa: ARG002  there is one
        """Read calls."""
        source = self.source
        yield from source.skip_space()
        if (yield from source.ahead(TAG)):
            # It begins as a list does, but there was nothing behind the first.
            raise DamagedError
        if (yield from source.first_of("[")) is not None:
            yield from read_list(self)
            return
        name = yield from read_name(source)
        marker = yield from source.first_of(CALL_ID, ARGUMENTS)
        if marker == CALL_ID:
            yield from read_name(source)
            yield from source.literal(ARGUMENTS)
        elif marker is None and (yield from source.peek()) != "{":
            # Without the marker, as the earliest of them, the arguments follow at once.
            raise DamagedError
        call = self.begin(name)
        yield from read_arguments(call, source)
        call.end()


def _listed_call(tool: CalledTool) -> JsonObject:
    """Return the format of a call with or without its id."""
    rest = regex_format(r'(, "id": "[A-Za-z0-9]{9}")?')
    content = sequence_format(tool.arguments, rest)
    return {**json_call()(tool), "content": content}


def _named_call(tool: CalledTool) -> JsonObject:
    """Return the format of a call with or without its id."""
    marker = regex_format(rf"({literal(CALL_ID)}[A-Za-z0-9]{{9}})?{literal(ARGUMENTS)}")
    return tag_format(TAG + tool.name, sequence_format(marker, tool.arguments))


LISTED = CallFormat(_listed_call, opening=f"{TAG}[", separator=", ", closing="]", trigger=TAG)
# What the tokenizer of the oldest makes of it.
SPACED = dataclasses.replace(LISTED, opening=f"{TAG} [")
SPECIAL_TOKENS = (TAG, CALL_ID, ARGUMENTS)
MISTRAL = ToolDialect(
    "mistral",
    MistralParser,
    recognised=lambda template: TAG in template,
    special_tokens=SPECIAL_TOKENS,
    format=dataclasses.replace(LISTED, also=(SPACED,)),
)
# The same by the name that people look for.
DEVSTRAL = ToolDialect(
    "devstral",
    MistralParser,
    recognised=lambda template: TAG in template and ARGUMENTS in template,
    special_tokens=SPECIAL_TOKENS,
    format=CallFormat(_named_call, separator="", trigger=TAG),
)
