"""How calls that are Python's are written: `name(key="value", other=[1, True])`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.chat.dialects.argument_forms import ArgumentForm, bare_names
from ovchat_server.chat.dialects.notation import python_notation

if TYPE_CHECKING:
    from ovchat_server.api.json_value import JsonObject
    from ovchat_server.chat.dialects.call_form import CalledTool

_ARGUMENTS = ArgumentForm(
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
        "content": _ARGUMENTS.content(tool),
        "end": ")",
    }
