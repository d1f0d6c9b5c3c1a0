"""Grammars of schemas, for tests."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ovchat_server.chat.dialects.call_format import CalledTool
from ovchat_server.grammar.cache import GrammarCache
from ovchat_server.grammar.formats import constraint_format, ebnf_format
from ovchat_server.grammar.schema.errors import SchemaError
from ovchat_server.grammar.values import json_grammar

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.chat.dialects.call_format import CallFormat
    from ovchat_server.domain.json_value import JsonObject
    from ovchat_server.domain.structured_output import Constraint


def unenforced(schema: Any, write: Callable[[Any], str] = json_grammar) -> str:
    """What of a schema cannot be enforced; "" where all can."""
    try:
        write(schema)
    except SchemaError as error:
        return str(error)
    return ""


def json_format(schema: Any) -> JsonObject:
    """The format of the JSON that follows a schema."""
    return ebnf_format(json_grammar(schema))


def called_tool(calls: CallFormat, name: str, schema: Any) -> CalledTool:
    """A tool as the calls of a dialect need it."""
    return CalledTool(name, ebnf_format(calls.arguments(schema)))


def format_of(constraint: Constraint) -> JsonObject:
    """The format of answers under a constraint."""
    return constraint_format(constraint, GrammarCache())


def ambiguous(name: str = "s") -> str:
    """A grammar whose text can be read in ever more ways: each token takes longer than the last."""
    return f'root ::= {name}\n{name} ::= {name} {name} {name} | {name} {name} | "a" | "aa"'


TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|[()|?*+]|\{\d+,\d*\}|\w+|\s+', re.DOTALL
)
UNTIL = re.compile(r'TagDispatch\(stop_eos=false, stop_str=\((".*")\), loop_after_dispatch=false\)')
CODE = re.compile(r"\\(?:x([0-9a-f]{2})|U([0-9a-f]{8})|(.))", re.DOTALL)


def as_regex(ebnf: str) -> re.Pattern[str]:
    """What a grammar without recursion allows, as Python has it."""
    bodies = dict(line.split(" ::= ", 1) for line in ebnf.splitlines())
    # Any string comes to itself again: it is known what it means.
    bodies |= {name: r'("\"" [^"\\] * "\"")' for name in ("string",) if "string0" in bodies}

    def rule(name: str) -> str:
        if found := UNTIL.fullmatch(bodies[name]):
            tag = re.escape(_unescaped(found[1][1:-1]))
            return f"(?:(?!{tag})[\\s\\S])*{tag}"
        return f"(?:{''.join(map(token, TOKEN.findall(bodies[name])))})"

    def token(text: str) -> str:
        match text[0]:
            case '"':
                return f"(?:{re.escape(_unescaped(text[1:-1]))})"
            case "[":
                return "[" + CODE.sub(lambda code: re.escape(_unescaped(code[0])), text[1:-1]) + "]"
            case "(":
                return "(?:"
            case " ":
                return ""
        return rule(text) if text[0].isalpha() else text

    return re.compile(rule("root"))


def _unescaped(text: str) -> str:
    return CODE.sub(lambda code: code[3] or chr(int(code[1] or code[2], 16)), text)
