"""Formats of strings, as patterns that only match strings of the format."""

from __future__ import annotations

from functools import cache

from ovchat_server.grammar.schema.nodes import Node, PatternError, fitted
from ovchat_server.grammar.schema.patterns import read_pattern

# Without the 29th of February, which only some years have.
DATE = (
    r"[12]\d{3}-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])"
    r"|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|1\d|2[0-8]))"
)
TIME = r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)"
CLOCK = r"(\d{1,6}S|\d{1,6}M(\d{1,6}S)?|\d{1,6}H(\d{1,6}M(\d{1,6}S)?)?)"
BYTE = r"(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
GROUP = r"[0-9a-fA-F]{1,4}"
# Each character in a counted repetition costs the compiler some milliseconds.
LABEL = r"[a-z0-9]{1,20}(-[a-z0-9]{1,20})?"
HEX = r"%[0-9A-Fa-f]{2}"
UNRESERVED = r"\w.~!$&'()*+,;="
SEGMENT = rf"([{UNRESERVED}:@-]|{HEX})"
TAIL = rf"(\?([{UNRESERVED}:@/?-]|{HEX})*)?(#([{UNRESERVED}:@/?-]|{HEX})*)?"
AUTHORITY = rf"(([{UNRESERVED}:-]|{HEX})*@)?([{UNRESERVED}-]|{HEX})*(:\d*)?"
ATOM = r"[\w!#$%&'*+/=?^`{|}~-]{1,24}"
VARIABLE = rf"(\w|{HEX})(\.?(\w|{HEX}))*(:[1-9]\d{{0,2}}|\*)?"
POINTER = r"(/([^/~]|~[01])*)*"
WORDS = r"[A-Za-z0-9]{1,20}([_.~!$&'()*+,;=/?-][A-Za-z0-9]{0,20})*"
PATTERNS = {
    "date": DATE,
    "time": TIME,
    "date-time": f"{DATE}T{TIME}",
    "duration": (
        rf"P((\d{{1,6}}D|\d{{1,6}}M(\d{{1,6}}D)?|\d{{1,6}}Y(\d{{1,6}}M(\d{{1,6}}D)?)?)(T{CLOCK})?"
        rf"|T{CLOCK}|\d{{1,6}}W)"
    ),
    "email": rf"{ATOM}(\.{ATOM})?@({LABEL}\.){{1,2}}[a-z]{{2,12}}",
    "hostname": rf"{LABEL}(\.{LABEL}){{0,2}}",
    "ipv4": rf"({BYTE}\.){{3}}{BYTE}",
    "ipv6": (
        rf"({GROUP}:){{7}}{GROUP}|({GROUP}:){{1,7}}:|({GROUP}:){{1,6}}:{GROUP}"
        rf"|({GROUP}:){{1,4}}(:{GROUP}){{1,3}}|::({GROUP}:){{0,5}}{GROUP}|::"
    ),
    "uuid": r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",
    # As Pydantic calls those of a version.
    **{
        f"uuid{version}": (
            rf"[0-9A-Fa-f]{{8}}-[0-9A-Fa-f]{{4}}-{version}[0-9A-Fa-f]{{3}}"
            r"-[89ABab][0-9A-Fa-f]{3}-[0-9A-Fa-f]{12}"
        )
        for version in (1, 3, 4, 5, 6, 7, 8)
    },
    "uri": (
        rf"[a-zA-Z][a-zA-Z0-9+.-]*:(//{AUTHORITY}(/{SEGMENT}*)*|/?({SEGMENT}+(/{SEGMENT}*)*)?)"
        f"{TAIL}"
    ),
    "uri-reference": (
        rf"(//{AUTHORITY}(/{SEGMENT}*)*|/({SEGMENT}+(/{SEGMENT}*)*)?"
        rf"|([{UNRESERVED}@-]|{HEX})+(/{SEGMENT}*)*)?{TAIL}"
    ),
    "uri-template": (rf"([!#$&(-;=?-\[\]_a-z~]|{HEX}|\{{[+#./;?&]?{VARIABLE}(,{VARIABLE})*\}})*"),
    "json-pointer": POINTER,
    "relative-json-pointer": rf"(0|[1-9]{{1,6}})(#|{POINTER})",
}
# For a format with a length: one part takes the room there is, or all are short.
SHORT = {
    "email": (
        r"[\w+-]{1,24}(\.[\w+-]{1,24})?@([a-z0-9]{1,20}[.-])?[a-z0-9]{1,20}\.[a-z]{2,8}",
        r"\w{1,16}(\.\w{1,16})?@[a-z0-9]{1,16}(-[a-z0-9]{1,16})?\.[a-z]{2,6}",
    ),
    "hostname": (r"([a-z0-9]{1,15}[.-]){0,3}[a-z0-9]{1,15}", r"[a-z][a-z0-9]{0,19}"),
    "uri": (rf"https?://{WORDS}",),
    "uri-reference": (rf"/{WORDS}",),
}
WORD = r"[a-z0-9]+(-+[a-z0-9]+)*"
LOCAL = r"([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,6})?)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)?"
# Beside a pattern: without bounds, which together with those of the pattern were too large, and
# what generators of schemas call so.
BESIDE = {
    "email": rf"[\w!#$%&'*+/=?^`{{|}}~-]+(\.[\w!#$%&'*+/=?^`{{|}}~-]+)*@({WORD}\.)+[a-z]{{2,}}",
    "hostname": rf"{WORD}(\.{WORD})*",
    "time": LOCAL,
    "date-time": f"{DATE}T{LOCAL}",
}


@cache
def of_format(name: str) -> Node:
    """Return the tree of the strings of a format in `PATTERNS`."""
    return read_pattern(f"^({PATTERNS[name]})$")


@cache
def beside_patterns(name: str) -> list[Node]:
    """Return trees of strings of a format; the first that goes with a pattern is wanted."""
    others = [BESIDE[name]] if name in BESIDE else []
    return [
        of_format(name),
        *(read_pattern(f"^({pattern})$") for pattern in (*others, *SHORT.get(name, ()))),
    ]


def fitted_format(name: str, shortest: int, longest: int | None) -> Node:
    """Return a tree of strings of a format with `shortest` to `longest` characters.

    Raises:
        PatternError: There are none, or they cannot be determined easily.
    """
    nodes = [of_format(name), *(read_pattern(f"^{short}$") for short in SHORT.get(name, ()))]
    for node in nodes[:-1]:
        try:
            return fitted(node, shortest, longest)
        except PatternError:
            continue
    return fitted(nodes[-1], shortest, longest)
