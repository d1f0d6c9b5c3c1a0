"""Structural tags: the compiler's own language for formats of answers, as in OVMS and vLLM."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ovchat_server.api.json_value import JsonObject, JsonValue
    from ovchat_server.api.reader import Reader

# Those that may stand in response_format by themselves (OVMS).
NATIVE_FORMATS = (
    "const_string",
    "any_text",
    "sequence",
    "or",
    "tag",
    "triggered_tags",
    "tags_with_separator",
    "regex",
    "grammar",
    "qwen_xml_parameter",
)


def structural_format(reader: Reader, name: str, tag: JsonObject) -> JsonObject | None:
    """Return the format of a structural tag; what is wrong is noted for the field `name`.

    vLLM's older structural tags, with `structures` and `triggers`, are converted.
    """
    if tag.get("type") != "structural_tag":
        reader.refuse(name, "must be a structural tag: an object of type 'structural_tag'")
        return None
    form = tag.get("format")
    if isinstance(form, dict):
        return form
    structures, triggers = tag.get("structures"), tag.get("triggers")
    if isinstance(structures, list) and isinstance(triggers, list):
        tags: list[JsonValue] = [
            {
                "type": "tag",
                "begin": item.get("begin"),
                "content": {"type": "json_schema", "json_schema": item.get("schema", {})},
                "end": item.get("end"),
            }
            for item in structures
            if isinstance(item, dict)
        ]
        return {"type": "triggered_tags", "triggers": triggers, "tags": tags}
    reader.refuse(name, "needs a format, an object, or structures and triggers, arrays")
    return None


def patterns(form: JsonObject) -> Iterator[str]:
    """Yield the regular expressions and grammars in a format."""
    for item in _formats(form):
        key = {"regex": "pattern", "grammar": "grammar"}.get(str(item.get("type")))
        text = item.get(key) if key else None
        if isinstance(text, str):
            yield text


def texts(form: JsonObject) -> Iterator[str]:
    """Yield the literal texts in a format."""
    for item in _formats(form):
        found = [item.get(key) for key in ("value", "begin", "end", "separator", "grammar")]
        for key in ("triggers", "excludes"):
            listed = item.get(key)
            found += listed if isinstance(listed, list) else []
        yield from (text for text in found if isinstance(text, str))


def _formats(form: JsonValue) -> Iterator[JsonObject]:
    if not isinstance(form, dict):
        return
    yield form
    yield from _formats(form.get("content"))
    for key in ("elements", "tags"):
        children = form.get(key)
        for child in children if isinstance(children, list) else ():
            yield from _formats(child)
