"""Which dialect a model speaks: by its template, by name, from another package."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from ovchat_server.chat.dialects.base import ParserOptions
from ovchat_server.chat.dialects.registry import (
    TOOL_DIALECTS,
    Dialects,
    UnknownParserError,
    choose_dialects,
)
from ovchat_server.chat.template import ChatTemplate
from tests.unit.dialects.reading import Read, joined

if TYPE_CHECKING:
    from pathlib import Path

TEMPLATES = {
    # These know no tools, which are described in Hermes's form.
    "chatml": ("hermes", None),
    "gemma-2": ("hermes", None),
    "gemma-3": ("hermes", None),
    "mistral-large-2411": ("hermes", None),
    "phi-3.5": ("hermes", None),
    "phi-4": ("hermes", None),
    "smollm3": ("hermes", "qwen3"),
    "deepseek-r1-distill": ("deepseek", "qwen3"),
    "deepseek-v3": ("deepseek", "qwen3"),
    "deepseek-v3.1": ("deepseek", "qwen3"),
    "gemma-4": ("gemma", "gemma"),
    "glm-4.6": ("glm", "qwen3"),
    "gpt-oss": ("gpt_oss", "gpt_oss"),
    "granite-3.3": ("granite", "granite"),
    "granite-4.0": ("hermes", None),
    "hermes-3": ("hermes", None),
    "kimi-k2": ("kimi", None),
    "lfm2.5": ("lfm2", "qwen3"),
    "llama-3.1": ("llama3", None),
    "llama-3.2": ("llama3", None),
    "minicpm5": ("minicpm", "qwen3"),
    "minimax-m2": (None, "qwen3"),
    "ministral-3": ("devstral", "mistral"),
    "mistral-nemo": ("mistral", None),
    "mistral-small-3.2": ("devstral", None),
    "qwen2.5": ("hermes", None),
    "qwen3": ("hermes", "qwen3"),
    "qwen3-coder": ("qwen3_coder", None),
    "qwen3.5": ("qwen3_coder", "qwen3"),
    "qwq": ("hermes", "qwen3"),
}


def names(dialects: Dialects) -> tuple[str | None, str | None]:
    tools, reasoning = dialects.tools, dialects.reasoning
    return tools and tools.name, reasoning and reasoning.name


@pytest.mark.parametrize("template", sorted(TEMPLATES))
def test_a_template_shows_what_the_model_speaks(template: str, templates: Path) -> None:
    read = ChatTemplate((templates / f"{template}.jinja").read_text(encoding="utf-8"), {})
    chosen = choose_dialects(read.source, "auto", "auto", knows_tools=read.knows_tools)
    assert names(chosen) == TEMPLATES[template]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("functools[", "phi4"),
        ("<|tool|>{{ tools }}<|/tool|>", "phi4"),
        ("[func_name1(params_name1=params_value1", "pythonic"),
        ("<|python_start|>", "pythonic"),
        ("<|tool_list_start|>", "lfm2"),
        ("<start_function_call>", "gemma"),
    ],
)
def test_so_do_templates_of_other_families(source: str, expected: str) -> None:
    assert names(choose_dialects(source, "auto", "auto"))[0] == expected


def test_old_templates_of_deepseek_leave_the_opening_out() -> None:
    source = "'<｜Assistant｜>' + content.split('</think>')[-1]"
    assert names(choose_dialects(source, "auto", "auto")) == (None, "deepseek")


def test_a_parser_of_reasoning_alone_is_left_alone_by_tools_that_are_described() -> None:
    assert names(choose_dialects("", "auto", "gpt_oss", knows_tools=False)) == (None, "gpt_oss")


def test_a_name_wins_over_a_template_without_tools() -> None:
    for name, expected in (("none", None), ("kimi", "kimi"), ("hermes", "hermes")):
        chosen = choose_dialects("", name, "auto", knows_tools=False)
        assert names(chosen) == (expected, None)


def test_a_name_wins_over_the_template() -> None:
    assert names(choose_dialects("<tool_call><think>", "kimi", "mistral")) == ("kimi", "mistral")
    assert names(choose_dialects("<tool_call><think>", "none", "none")) == (None, None)


@pytest.mark.parametrize("option", ["tool_parser", "reasoning_parser"])
def test_a_name_that_nobody_has_is_refused_with_those_that_there_are(option: str) -> None:
    given = {"tool_parser": "auto", "reasoning_parser": "auto", option: "hermez"}
    with pytest.raises(UnknownParserError, match=f"no {option} 'hermez'; there are: auto, none, "):
        choose_dialects("", **given)


def test_what_reads_both_does_not_work_beside_another() -> None:
    with pytest.raises(UnknownParserError, match="gpt_oss parses calls and reasoning together"):
        choose_dialects("", "gpt_oss", "qwen3")


def test_what_reads_both_may_be_asked_for_one() -> None:
    text = (
        "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>commentary"
        " to=functions.f<|message|>{}<|call|>"
    )
    calls_only = choose_dialects("", "gpt_oss", "none")
    parser = calls_only.parser(ParserOptions(), opened=False)
    assert joined([parser.feed(text), parser.flush()]) == Read("Hm", [("f", "{}")])
    reasoning_only = choose_dialects("", "none", "gpt_oss")
    parser = reasoning_only.parser(ParserOptions(), opened=False)
    assert joined([parser.feed(text), parser.flush()]) == Read(
        text.partition("<|end|>")[2], [], "Hm"
    )


def test_without_tools_a_call_is_text() -> None:
    text = '<think>Hm</think><tool_call>{"name": "f"}</tool_call>'
    parser = choose_dialects(text, "auto", "auto").parser(None, opened=False)
    assert joined([parser.feed(text), parser.flush()]) == Read(text[17:], [], "Hm")


def test_names_are_unique() -> None:
    names = [dialect.name for dialect in TOOL_DIALECTS]
    assert len(set(names)) == len(names)


def test_another_package_brings_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shouting.py").write_text(
        "from ovchat_server.chat.dialects.base import ToolDialect\n"
        "from ovchat_server.chat.dialects.hermes import HermesParser\n"
        "class Shouting(HermesParser):\n"
        "    tags = ('<TOOL>',)\n"
        "DIALECT = ToolDialect('shouting', Shouting, lambda template: '<TOOL>' in template)\n"
    )
    info = tmp_path / "shouting-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shouting\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[ovchat.tool_parsers]\nshouting = shouting:DIALECT\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for wish in ("shouting", "auto"):
        dialects = choose_dialects("<TOOL>", wish, "auto")
        parser = dialects.parser(ParserOptions(), opened=False)
        assert parser.feed('<TOOL>{"name": "f"}</tool_call>').calls
    assert names(choose_dialects("<tool_call>", "auto", "auto"))[0] == "hermes"
    sys.modules.pop("shouting")
