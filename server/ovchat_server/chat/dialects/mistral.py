"""Mistral's forms: `[TOOL_CALLS][{"name": ..., "arguments": {...}}]`, and one call by its name.

`[TOOL_CALLS]name[ARGS]{...}` is that of models since 2025: Devstral, Small 3.2, Ministral 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.chat.dialects.base import ToolDialect
from ovchat_server.chat.dialects.json_calls import read_arguments, read_list, read_name
from ovchat_server.chat.dialects.markup import MarkupParser
from ovchat_server.chat.dialects.source import DamagedError

if TYPE_CHECKING:
    from ovchat_server.chat.dialects.source import Steps

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


SPECIAL_TOKENS = (TAG, CALL_ID, ARGUMENTS)
MISTRAL = ToolDialect(
    "mistral",
    MistralParser,
    recognised=lambda template: TAG in template,
    special_tokens=SPECIAL_TOKENS,
)
# The same by the name that people look for.
DEVSTRAL = ToolDialect(
    "devstral",
    MistralParser,
    recognised=lambda template: TAG in template and ARGUMENTS in template,
    special_tokens=SPECIAL_TOKENS,
)
