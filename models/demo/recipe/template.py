"""Rendering conversations with the model's own chat template, as the server will."""

import json
from functools import cache
from pathlib import Path

from jinja2 import Template
from jinja2.sandbox import ImmutableSandboxedEnvironment

from .samples import Sample

MODEL_DIR = Path(__file__).resolve().parent.parent


def _tojson(value: object) -> str:
    # Hugging Face's filter: no HTML escapes, characters as they are.
    return json.dumps(value, ensure_ascii=False)


@cache
def chat_template() -> Template:
    """The compiled chat template, with Hugging Face's settings."""
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = _tojson
    return environment.from_string((MODEL_DIR / "chat_template.jinja").read_text(encoding="utf-8"))


def prompt_text(sample: Sample) -> str:
    """What the model reads before it answers."""
    return chat_template().render(
        messages=sample.messages,
        tools=sample.tools or None,
        add_generation_prompt=True,
        enable_thinking=sample.thinking,
    )


def answer_text(sample: Sample) -> str:
    """What the model has to write, with the token that ends its turn."""
    return f"{sample.answer.as_text()}<|im_end|>"
