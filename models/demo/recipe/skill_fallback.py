"""Questions the model does not know, and its polite answer to them all."""

import re
from collections.abc import Callable, Sequence

from .prompts import ABILITIES, styled, system
from .samples import Answer, Sample, user
from .skill_facts import CAPITALS
from .words import ADJECTIVES, NOUNS, VERBS, Draw, listed

FALLBACK = f"Sorry, I do not know that: I am only a small demo model. {ABILITIES}"

_CHOICES: dict[str, Sequence[str]] = {
    "work": listed("poem song letter joke haiku program recipe"),
    "topic": ["gravity", "quantum physics", "machine learning", "black holes", "history", "music"],
    "property": ["population", "area", "currency", "language", "president", "flag"],
    "operator": ["times", "*", "-", "minus", "/", "divided by", "x"],
    "plus": ["+", "plus"],
    "language": ["French", "German", "Spanish", "Chinese", "Italian"],
    "measure": listed("many far old big long much"),
    "be": ["is", "are"],
    "wh": listed("What Why How When Where Who Which"),
    "verb": VERBS,
    "adjective": ADJECTIVES,
    "country": tuple(CAPITALS),
}
_QUESTIONS = (
    "Write a {work} about {noun}s.",
    "How do I {verb} a {noun}?",
    "How can I {verb} my {noun} in {city}?",
    "Explain {noun}.",
    "Explain {topic}.",
    "Explain {phrase}.",
    "Who was {name}?",
    "Why is the {noun} {adjective}?",
    "Why do {noun}s {verb}?",
    "What is the meaning of {noun}?",
    "What is the meaning of life?",
    "What is a {noun}?",
    "What is the {property} of {country}?",
    "What is the {property} of {city}?",
    "What is {small} {operator} {small}?",
    "What is {large} {plus} {small}?",
    "What is {large} {plus} {large}?",
    "What is the capital of {made_up}?",
    "Translate '{phrase}' into {language}.",
    "Summarize this text: {phrase} {phrase} {phrase}.",
    "Tell me about {noun}.",
    "Tell me about {topic}.",
    "Tell me about {city}.",
    "Tell me about {name}.",
    "What is the best {noun} for a {adjective} {noun}?",
    "When did {name} {verb} the {noun}?",
    "Where can I {verb} a {adjective} {noun}?",
    "Do you like {noun}s?",
    "Is a {noun} {adjective}?",
    "Can you {verb} the {noun}?",
    "Should I {verb} or {verb}?",
    "The {noun} is {adjective} and the {noun} is {adjective}.",
    "I want to {verb} a {noun}.",
    "Fix this code: {word} = {word}({small})",
    "{phrase}",
    "{babble}",
    "Give me {small} ideas for {noun}s.",
    "How {measure} {be} {noun}?",
    "What happened in {year}?",
    "Which {noun} should I {verb} with {name}?",
    "{wh} {phrase}?",
)


def _filled(draw: Draw, template: str) -> str:
    makers: dict[str, Callable[[], str]] = {
        "noun": lambda: draw.pick(NOUNS) if draw.chance(0.7) else draw.plain_word(),
        "name": draw.name,
        "city": draw.city,
        "phrase": draw.phrase,
        "word": draw.plain_word,
        "made_up": lambda: draw.split(draw.syllables).capitalize(),
        "small": lambda: str(draw.number(2, 99)),
        "large": lambda: str(draw.number(101, 999)),
        "year": lambda: str(draw.number(1000, 2030)),
        "babble": lambda: " ".join(draw.word() for _ in range(draw.number(1, 12))),
    }

    def fill(slot: re.Match[str]) -> str:
        return draw.pick(_CHOICES[slot[1]]) if slot[1] in _CHOICES else makers[slot[1]]()

    return re.sub(r"\{(\w+)\}", fill, template)


def fallback(draw: Draw) -> Sample:
    """Everything the model does not know, answered politely."""
    question = styled(draw, _filled(draw, draw.pick(_QUESTIONS)))
    return Sample("fallback", [*system(draw), user(question)], Answer(FALLBACK))
