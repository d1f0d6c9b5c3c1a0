"""Conversations about pictures, in the tokens that the model learns from."""

import json
import random
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from jinja2 import Template
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer

from .phrases import ABILITIES, COLOUR, DESCRIBE, SHAPE, other, system_prompt, typed
from .pictures import article
from .preprocessing import TOKENS

MODEL = Path(__file__).resolve().parent.parent
IMAGE = "<image>"
Figure = tuple[str, str]
"""Its shape and colour."""


@dataclass
class Conversation:
    """What was said, and which pictures were shown, in their order."""

    messages: list[dict[str, str]] = field(default_factory=list)
    pictures: list[int] = field(default_factory=list)


@cache
def chat_template() -> Template:
    """The compiled chat template, with Hugging Face's settings."""
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = json.dumps
    return environment.from_string((MODEL / "chat_template.jinja").read_text(encoding="utf-8"))


def prompt_text(messages: list[dict[str, str]]) -> str:
    """What the model reads before it answers; a picture is one `<image>`."""
    return chat_template().render(messages=messages, add_generation_prompt=True)


def described(figures: list[Figure]) -> str:
    """The answer to "What is on the picture?"."""
    return _sentence([f"{article(colour)} {shape}" for shape, colour in figures])


def shapes_of(figures: list[Figure]) -> str:
    """The answer to "Which shape is it?"."""
    return _sentence([f"a {shape}" for shape, _ in figures])


def colours_of(figures: list[Figure]) -> str:
    """The answer to "What colour is it?"."""
    return _sentence([colour for _, colour in figures])


def _sentence(parts: list[str]) -> str:
    text = " and ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


_QUESTIONS = ((DESCRIBE, described), (SHAPE, shapes_of), (COLOUR, colours_of))


def draw_conversation(rng: random.Random, figures: list[Figure]) -> Conversation:
    """A conversation that shows some of these figures, the first ones not yet shown."""
    talk = Conversation()
    if rng.random() < 0.2:
        talk.messages.append({"role": "system", "content": system_prompt(rng)})
    shown: list[Figure] = []
    for _ in range(rng.choice((1, 1, 2, 2, 3))):
        left = len(figures) - len(talk.pictures)
        if left and rng.random() < (0.5 if shown else 0.85):
            count = 2 if left > 1 and rng.random() < 0.35 else 1
            start = len(talk.pictures)
            shown = figures[start : start + count]
            talk.pictures.extend(range(start, start + count))
            question, answer = _about(rng, shown)
            text = _with_pictures(rng, count, question)
        elif shown and rng.random() < 0.75:
            text, answer = _about(rng, shown)
        else:
            # Questions about pictures, too, as long as there is none.
            text = other(rng) if shown or rng.random() < 0.7 else _about(rng, [("", "x")])[0]
            text, answer = typed(rng, text), ABILITIES
        talk.messages.append({"role": "user", "content": text})
        talk.messages.append({"role": "assistant", "content": answer})
    return talk


def _about(rng: random.Random, figures: list[Figure]) -> tuple[str, str]:
    questions, answer = rng.choice(_QUESTIONS)
    return typed(rng, rng.choice(questions)), answer(figures)


def _with_pictures(rng: random.Random, count: int, question: str) -> str:
    """The question behind the pictures, mostly; a picture is one `<image>`."""
    breaks = "\n" if rng.random() < 0.8 else "\n\n"
    pictures = f"{IMAGE}{breaks}" * count
    return question + pictures if rng.random() < 0.1 else pictures + question


def tokens_of(tokenizer: Tokenizer, talk: Conversation) -> tuple[list[int], list[bool]]:
    """The conversation's tokens, and which of them the model has to say."""
    tokens: list[int] = []
    said: list[bool] = []
    before = ""
    for number, message in enumerate(talk.messages):
        if message["role"] != "assistant":
            continue
        prompt = prompt_text(talk.messages[:number])
        read = prompt[len(before) :].replace(IMAGE, IMAGE * TOKENS)
        answer = message["content"] + "<|im_end|>"
        for text, own in ((read, False), (answer, True)):
            piece = tokenizer.encode(text, add_special_tokens=False).ids
            tokens.extend(piece)
            said.extend([own] * len(piece))
        before = prompt + answer
    return tokens, said
