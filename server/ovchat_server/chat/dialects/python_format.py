"""How calls that are Python's are written: `name(key="value", other=[1, True])`."""

from __future__ import annotations

from ovchat_server.chat.dialects.call_format import CallFormat, named_call
from ovchat_server.grammar.arguments import ArgumentNotation, bare_names
from ovchat_server.grammar.notation import python_notation

ARGUMENTS = ArgumentNotation(
    python_notation(),
    bare_names(r"""(?!\s)[^=,()\[\]{}'"\n]+(?<!\s)"""),
    after="=",
    comma=", ",
)


def python_calls(opening: str = "", closing: str = "", trigger: str = "") -> CallFormat:
    """Return the format of a list of calls with texts around it."""
    return CallFormat(
        named_call("", "(", ")"),
        opening=f"{opening}[",
        separator=", ",
        closing=f"]{closing}",
        trigger=trigger,
        arguments=ARGUMENTS.grammar,
    )
