"""Structural tags: the compiler's own language for formats of answers, as in OVMS and vLLM."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.domain.field_path import FieldPath

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ovchat_server.domain.json_value import JsonObject, JsonValue
    from ovchat_server.domain.reader import Reader

# Those after `format` are vLLM's older structural tags.
TAG_KEYS = frozenset({"type", "format", "structures", "triggers"})
STRUCTURE_KEYS = frozenset({"begin", "schema", "end"})
# What the compiler (xgrammar 0.1.31) reads of each; it says nothing of other keys.
FORMATS = {
    name: frozenset({"type", *keys})
    for name, keys in {
        "const_string": ("value",),
        "json_schema": ("json_schema",),
        "any_text": ("excludes",),
        "sequence": ("elements",),
        "or": ("elements",),
        "tag": ("begin", "content", "end"),
        "triggered_tags": (
            "triggers",
            "tags",
            "excludes",
            "at_least_one",
            "stop_after_first",
        ),
        "tags_with_separator": ("tags", "separator", "at_least_one", "stop_after_first"),
        "regex": ("pattern",),
        "grammar": ("grammar",),
        "qwen_xml_parameter": ("json_schema",),
    }.items()
}
# Those that may stand in response_format by themselves (OVMS).
NATIVE_FORMATS = {name: keys for name, keys in FORMATS.items() if name != "json_schema"}


def read_structural_tag(tag: Reader) -> JsonObject | None:
    """Read the format in a structural tag; what is wrong is noted in the reader.

    vLLM's older structural tags, with `structures` and `triggers`, are converted.
    """
    if tag.fields.get("type") != "structural_tag":
        complaint = "must be a structural tag: an object of type 'structural_tag'"
        tag.refuse(FieldPath(), complaint)
        return None
    if tag.present("format"):
        for name in ("structures", "triggers"):
            if tag.present(name):
                tag.refuse(name, "is of the older form, without format: send only one of them")
        form = tag.object("format", FORMATS)
        return read_format(form) if form else None
    structures, triggers = tag.objects("structures", STRUCTURE_KEYS), tag.array("triggers")
    if triggers is not None and tag.present("structures"):
        tags: list[JsonValue] = [
            {
                "type": "tag",
                "begin": item.fields.get("begin"),
                "content": {"type": "json_schema", "json_schema": item.fields.get("schema", {})},
                "end": item.fields.get("end"),
            }
            for item in structures
        ]
        return {"type": "triggered_tags", "triggers": triggers, "tags": tags}
    tag.refuse(FieldPath(), "must have a format (an object), or structures and triggers (arrays)")
    return None


def read_format(form: Reader) -> JsonObject:
    """Return a format as it is; unknown keys and types in it are noted in the reader.

    What else is wrong with it the compiler finds.
    """
    form.require("type")
    match form.choice("type", FORMATS):
        case "sequence" | "or":
            for element in form.objects("elements", FORMATS):
                read_format(element)
        case "tag":
            _read_content(form)
        case "triggered_tags" | "tags_with_separator":
            for tag in form.objects("tags", FORMATS["tag"]):
                # They need not say so.
                tag.choice("type", ["tag"])
                _read_content(tag)
    return dict(form.fields)


def _read_content(tag: Reader) -> None:
    content = tag.object("content", FORMATS)
    if content:
        read_format(content)


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
