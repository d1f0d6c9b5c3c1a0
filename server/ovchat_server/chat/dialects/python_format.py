"""How calls that are Python's are written: `name(key="value", other=[1, True])`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.grammar.arguments import ArgumentNotation, bare_names
from ovchat_server.grammar.notation import python_notation

if TYPE_CHECKING:
    from ovchat_server.api.json_value import JsonObject
    from ovchat_server.chat.dialects.call_format import CalledTool

ARGUMENTS = ArgumentNotation(
    python_notation(),
    bare_names(r"""(?!\s)[^=,()\[\]{}'"\n]+(?<!\s)"""),
    after="=",
    comma=", ",
)


def python_call(tool: CalledTool) -> JsonObject:
    """The format of a call."""
    return {
        "type": "tag",
        "begin": f"{tool.name}(",
        "content": tool.arguments,
        "end": ")",
    }
