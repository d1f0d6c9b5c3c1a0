"""Patterns of the string formats that are enforced: not all that have them, but only such."""

from __future__ import annotations

_DATE = (
    r"\d{4}-(02-(0[1-9]|[12]\d)|(0[469]|11)-(0[1-9]|[12]\d|30)"
    r"|(0[13578]|1[02])-(0[1-9]|[12]\d|3[01]))"
)
_TIME = r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?(Z|[-+]([01]\d|2[0-3]):[0-5]\d)"
_LABEL = "[a-zA-Z0-9]([a-zA-Z0-9-]{0,20}[a-zA-Z0-9])?"
_HOST = rf"{_LABEL}(\.{_LABEL})*"
_BYTE = r"(\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])"
_PATH = r"[a-zA-Z0-9._~:@!$()*+,;=/-]*"
_REST = rf"{_PATH}(\?[a-zA-Z0-9._~:@!$&()*+,;=/?-]*)?(#[a-zA-Z0-9._~-]*)?"
_POINTER = r"(/[a-zA-Z0-9_.-]*)*"
_HEX = "[0-9a-fA-F]"
_GROUP = f"{_HEX}{{1,4}}"
FORMAT_PATTERNS = {
    "date": _DATE,
    "time": _TIME,
    "date-time": f"{_DATE}T{_TIME}",
    "duration": r"P(\d{1,4}W|\d{1,4}Y|\d{1,4}M|(\d{1,4}D)?T\d{1,4}[HMS]|\d{1,4}D)",
    "email": rf"[a-zA-Z0-9_+-]+(\.[a-zA-Z0-9_+-]+)*@{_HOST}",
    "hostname": _HOST,
    "ipv4": rf"{_BYTE}(\.{_BYTE}){{3}}",
    "ipv6": f"({_GROUP}:){{7}}{_GROUP}|({_GROUP}:){{1,3}}(:{_GROUP}){{1,3}}|::1",
    "uuid": f"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}",
    "uri": f"[a-z][a-z0-9+.-]{{1,15}}://{_HOST}(:[1-9][0-9]{{1,3}})?(/{_REST})?",
    "uri-reference": f"/{_REST}",
    "uri-template": r"/([a-zA-Z0-9._~/-]|\{[a-z]+\})*",
    "json-pointer": _POINTER,
    "relative-json-pointer": rf"(0|[1-9]\d{{0,3}})(#|{_POINTER})",
}
# Those whose strings are no JSON or Python.
NEVER_JSON = FORMAT_PATTERNS.keys() - {"hostname", "relative-json-pointer"}
