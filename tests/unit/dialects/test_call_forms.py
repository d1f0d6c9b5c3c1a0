"""Forms of calls, of dialects that write arguments as JSON: what they allow is what is read.

Whether the compiler takes them, and a model keeps to them, is tested with the engine.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovchat_server.chat.dialects.base import ToolDialect
from ovchat_server.chat.dialects.call_format import CalledTool, regex_format
from ovchat_server.chat.dialects.registry import TOOL_DIALECTS, choose_dialects
from ovchat_server.chat.template import ChatTemplate
from ovchat_server.domain.chat import Message, PromptEnding, Role, Tool, ToolCall
from tests.effort import examples
from tests.unit.dialects.reading import Read, parser_of, read
from tests.unit.dialects.writers import WRITERS, Written

if TYPE_CHECKING:
    from pathlib import Path


ARGUMENTS = {"f": '{"city": "Paris"}', "f-2.x": '{"days": [1, 2]}'}
# The grammar of the arguments is the engine's.
TOOLS = [CalledTool(name, regex_format(re.escape(text))) for name, text in ARGUMENTS.items()]
OFFERED = tuple(Tool(name, "A tool.", {"type": "object", "properties": {}}) for name in ARGUMENTS)
FORMS = {
    dialect.name: (dialect, dialect.format)
    for dialect in TOOL_DIALECTS
    if WRITERS[dialect.name].keeps_json and dialect.format
}
every_form = pytest.mark.parametrize("name", FORMS)
# Those that show calls. Kimi K2's does what templates may not.
TEMPLATES = (
    "deepseek-r1-distill",
    "deepseek-v3.1",
    "gpt-oss",
    "granite-4.0",
    "hermes-3",
    "llama-3.1",
    "llama-3.2",
    "ministral-3",
    "mistral-nemo",
    "mistral-small-3.2",
    "qwen2.5",
    "qwen3",
    "qwq",
)
# These refuse several calls, or take the first.
ONE_CALL = {"gpt-oss", "llama-3.1", "llama-3.2"}


def pattern(form: Any) -> str:
    """A regular expression of what a format allows, as the compiler reads it."""
    match form["type"]:
        case "regex":
            return f"(?:{form['pattern']})"
        case "sequence":
            return "".join(map(pattern, form["elements"]))
        case "or":
            return f"(?:{'|'.join(map(pattern, form['elements']))})"
        case "tag":
            return re.escape(form["begin"]) + pattern(form["content"]) + re.escape(form["end"])
        case "tags_with_separator":
            tag = f"(?:{'|'.join(map(pattern, form['tags']))})"
            more = f"(?:{re.escape(form['separator'])}{tag}){{0,3}}"
            return tag if form["stop_after_first"] else tag + more
    raise AssertionError(form["type"])


def test_every_dialect_that_writes_json_has_a_form() -> None:
    assert set(FORMS) == {name for name, writer in WRITERS.items() if writer.keeps_json}


@every_form
@given(data=st.data())
@examples(60)
def test_whatever_a_form_allows_is_calls(name: str, data: st.DataObject) -> None:
    dialect, form = FORMS[name]
    parallel = data.draw(st.booleans())
    allowed = pattern(form.forced(TOOLS, parallel=parallel))
    text = data.draw(st.from_regex(allowed, fullmatch=True))

    enforced = read(dialect, text, OFFERED, enforced=True)

    assert enforced.content == ""
    assert enforced.calls
    assert len(enforced.calls) == 1 or parallel
    assert all(ARGUMENTS[called] == arguments for called, arguments in enforced.calls)
    # Nothing is missing, which a parser forgives at the end: what follows is content.
    after = WRITERS[name].say("after")
    assert read(dialect, [text + after], OFFERED) == Read("after", enforced.calls)


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_form_allows_what_the_template_writes(template: str, templates: Path) -> None:
    source = (templates / f"{template}.jinja").read_text(encoding="utf-8")
    dialect = choose_dialects(source, "auto", "none").tools
    assert dialect is not None
    _, form = FORMS[dialect.name]
    used = dict(list(ARGUMENTS.items())[: 1 if template in ONE_CALL else 2])
    calls = tuple(
        ToolCall(id="abcdefgh1", name=name, arguments=text) for name, text in used.items()
    )
    messages = (Message(Role.USER, ("Hi",)), Message(Role.ASSISTANT, (), tool_calls=calls))
    prompt = ChatTemplate(source, {"bos_token": "", "eos_token": ""}).render(
        messages, OFFERED, ending=PromptEnding.NOTHING
    )

    found = re.search(pattern(form.forced(TOOLS, parallel=True)), prompt)

    assert found
    assert all(text in found[0] for text in used.values())


@every_form
def test_a_form_allows_what_the_models_write(name: str) -> None:
    _, form = FORMS[name]
    text = WRITERS[name].write([Written(tool, {}, said) for tool, said in ARGUMENTS.items()])

    found = re.search(pattern(form.forced(TOOLS, parallel=True)), text)

    assert found
    assert text.endswith(found[0])
    assert all(said in found[0] for said in ARGUMENTS.values())


@every_form
def test_what_opens_a_call_in_free_text_is_seen_by_the_parser_too(name: str) -> None:
    dialect, form = FORMS[name]
    if not form.trigger:
        return
    free: Any = form.free(TOOLS, parallel=False)
    for tag in free["tags"]:
        assert any(tag["begin"].startswith(trigger) for trigger in free["triggers"])
        # It waits for what follows.
        assert parser_of(dialect, OFFERED).feed("x" + tag["begin"]).content == "x"


@every_form
def test_what_opens_a_call_for_the_parser_is_held_to_the_form(name: str) -> None:
    dialect, form = FORMS[name]
    # Harmony's tags begin any message; a bare call shows by nothing.
    if isinstance(dialect, ToolDialect) and form.trigger:
        free: Any = form.free(TOOLS, parallel=False)
        parser: Any = parser_of(dialect)
        for tag in parser.tags:
            assert any(tag.startswith(trigger) for trigger in free["triggers"])
