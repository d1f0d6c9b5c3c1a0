"""A model that shows what the shipped ones cannot: documents, and a token before every text."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

from ovchat_server.settings import ModelSettings
from tests.conftest import EXACT, GRAMMAR_TIMEOUT, ROOT

if TYPE_CHECKING:
    from pathlib import Path

TEMPLATE = (
    "{{ messages[-1].content }}{% for document in documents or [] %}{{ document.text }}{% endfor %}"
)
BEGINNING = {"id": "<|im_start|>", "ids": [257], "tokens": ["<|im_start|>"]}


def make_library(directory: Path) -> ModelSettings:
    """The successor, but that its template recites documents and its texts have a beginning."""
    path = directory / "library"
    shutil.copytree(ROOT / "models/successor", path)
    (path / "chat_template.jinja").write_text(TEMPLATE)
    file = path / "tokenizer.json"
    tokenizer = json.loads(file.read_text())
    text = {"Sequence": {"id": "A", "type_id": 0}}
    tokenizer["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": BEGINNING["id"], "type_id": 0}}, text],
        "pair": [text, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<|im_start|>": BEGINNING},
    }
    file.write_text(json.dumps(tokenizer))
    return ModelSettings(
        name="library", path=path, properties=EXACT, grammar_timeout=GRAMMAR_TIMEOUT
    )
