"""Templates and special tokens are found where Hugging Face's transformers finds them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from transformers import PreTrainedTokenizerFast, ProcessorMixin

from ovchat_server.chat.template import ChatTemplateError, load_chat_template
from ovchat_server.chat.template_files import read_template_files

TOKENIZER = Path(__file__).parents[2] / "models" / "demo" / "tokenizer.json"
SEVERAL = [{"name": name, "template": f"list: {name}"} for name in ("rag", "default", "tool_use")]
TOKEN = {"content": "<t>", "lstrip": False, "normalized": False, "rstrip": False}


def folder(path: Path, files: dict[str, Any]) -> Path:
    for name, content in files.items():
        (path / name).parent.mkdir(exist_ok=True)
        text = content if isinstance(content, str) else json.dumps(content)
        (path / name).write_bytes(text.encode())
    return path


TOKENIZER_FOLDERS: dict[str, dict[str, Any]] = {
    "a file": {"chat_template.jinja": "a"},
    "a configuration": {"tokenizer_config.json": {"chat_template": "b"}},
    "a file and a configuration": {
        "chat_template.jinja": "a",
        "tokenizer_config.json": {"chat_template": "b"},
    },
    "several in a configuration": {"tokenizer_config.json": {"chat_template": SEVERAL}},
    "one file, several in a configuration": {
        "chat_template.jinja": "a",
        "tokenizer_config.json": {"chat_template": SEVERAL},
    },
    "several files": {
        "chat_template.jinja": "a",
        "additional_chat_templates/tool_use.jinja": "tools",
        "additional_chat_templates/rag.jinja": "rag",
        "tokenizer_config.json": {"chat_template": SEVERAL},
    },
    "two defaults": {
        "chat_template.jinja": "a",
        "additional_chat_templates/default.jinja": "b",
        "additional_chat_templates/tool_use.txt": "no template",
    },
    "an empty file": {"chat_template.jinja": "", "tokenizer_config.json": {"chat_template": "b"}},
    "lines of Windows": {"chat_template.jinja": "a\r\nb\r\n"},
    "tokens": {
        "chat_template.jinja": "a",
        "tokenizer_config.json": {
            "bos_token": "<s>",
            "eos_token": {"__type": "AddedToken", **TOKEN},
            "pad_token": None,
            "add_bos_token": True,
            "image_token": "<image>",
            "video_token": {"__type": "AddedToken", **TOKEN},
            "additional_special_tokens": ["<a>", "<b>"],
        },
    },
    "tokens of other names": {
        "chat_template.jinja": "a",
        "tokenizer_config.json": {
            "image_token": "<image>",
            "extra_special_tokens": {"image_token": "<other>", "vision_start": "<v>"},
        },
    },
    "tokens as transformers 5 saves them": {
        "chat_template.jinja": "a",
        "tokenizer_config.json": {
            "image_token": "<image>",
            "model_specific_special_tokens": {"image_token": "<image>"},
        },
    },
    "tokens of other names as transformers 5 saves them": {
        "chat_template.jinja": "a",
        "tokenizer_config.json": {"model_specific_special_tokens": {"vision_start": "<v>"}},
    },
    "tokens in a file of their own": {
        "chat_template.jinja": "a",
        "tokenizer_config.json": {"bos_token": "<s>", "pad_token": "<p>", "image_token": "<image>"},
        "special_tokens_map.json": {
            "bos_token": "<other>",
            "pad_token": None,
            "mask_token": TOKEN,
            "image_token": "<other>",
            "video_token": "<video>",
            "additional_special_tokens": ["<a>"],
        },
    },
    "tokens in a file that no longer counts": {
        "chat_template.jinja": "a",
        "tokenizer_config.json": {"bos_token": "<s>", "added_tokens_decoder": {}},
        "special_tokens_map.json": {"bos_token": "<other>", "mask_token": "<m>"},
    },
}


@pytest.mark.parametrize("name", TOKENIZER_FOLDERS)
def test_templates_and_tokens_are_those_of_hugging_faces_tokenizer(
    tmp_path: Path, name: str
) -> None:
    directory = folder(tmp_path, TOKENIZER_FOLDERS[name])
    shutil.copy(TOKENIZER, directory)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(directory, local_files_only=True)
    files = read_template_files(directory)
    assert files.source == tokenizer.get_chat_template()
    tool_source = files.source if files.tool_source is None else files.tool_source
    assert tool_source == tokenizer.get_chat_template(tools=[{"name": "f"}])
    assert files.special_tokens == tokenizer.special_tokens_map


PROCESSOR_FOLDERS: dict[str, dict[str, Any]] = {
    "all files": {
        "processor_config.json": {"chat_template": "a"},
        "chat_template.json": {"chat_template": "b"},
        "chat_template.jinja": "c",
    },
    "a processor without a template": {
        "processor_config.json": {"processor_class": "LlavaProcessor"},
        "chat_template.json": {"chat_template": "b"},
        "chat_template.jinja": "c",
    },
    "only a file": {
        "processor_config.json": {"chat_template": None},
        "chat_template.jinja": "c",
    },
}


@pytest.mark.parametrize("name", PROCESSOR_FOLDERS)
def test_of_a_model_with_a_processor_the_template_is_the_processors(
    tmp_path: Path, name: str
) -> None:
    files = {"tokenizer_config.json": {"chat_template": "d"}, **PROCESSOR_FOLDERS[name]}
    directory = folder(tmp_path, files)
    expected, _ = ProcessorMixin.get_processor_dict(directory, local_files_only=True)
    assert read_template_files(directory).source == expected["chat_template"]


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ({}, "there is no chat template"),
        ({"tokenizer_config.json": "{}"}, "there is no chat template"),
        ({"tokenizer_config.json": "{"}, "tokenizer_config.json is not JSON"),
        ({"tokenizer_config.json": "[" * 100_000}, "tokenizer_config.json is not JSON"),
        ({"tokenizer_config.json": {"chat_template": [{"name": "rag"}]}}, "no chat template"),
        ({"tokenizer_config.json": {"chat_template": 7}}, "there is no chat template"),
        (
            {"chat_template.jinja": "a\n{% if %}"},
            r"^the chat template in chat_template.jinja does not compile: line 2: Expected an",
        ),
        (
            {"chat_template.jinja": "{% break %}"},
            r"^the chat template in chat_template.jinja does not compile: 'break' outside loop$",
        ),
        ({"tokenizer_config.json": {"chat_template": "{{"}}, "in tokenizer_config.json does not"),
        ({"processor_config.json": {"chat_template": "{{"}}, "in processor_config.json does not"),
        (
            {"chat_template.jinja": "a", "additional_chat_templates/tool_use.jinja": "\n{{"},
            "in tool_use.jinja does not compile: line 2: ",
        ),
        (
            {"additional_chat_templates/tool_use.jinja": "a"},
            "no default chat template, only tool_use",
        ),
    ],
)
def test_a_folder_without_a_usable_template_is_told(
    tmp_path: Path, files: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ChatTemplateError, match=complaint):
        load_chat_template(folder(tmp_path, files))


def test_a_template_that_is_not_utf_8_is_told(tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_bytes(b"\xff")
    with pytest.raises(ChatTemplateError, match=r"chat_template\.jinja is not UTF-8"):
        load_chat_template(tmp_path)


def test_a_token_with_properties_needs_no_type(tmp_path: Path) -> None:
    files = {
        "chat_template.jinja": "{{ bos_token }}",
        "tokenizer_config.json": {"bos_token": TOKEN},
    }
    assert read_template_files(folder(tmp_path, files)).special_tokens == {"bos_token": "<t>"}
