"""What people ask, about pictures and about anything else."""

import random


def listed(text: str) -> tuple[str, ...]:
    """The words of a text: long lists read best as text."""
    return tuple(text.split())


DESCRIBE = (
    "What is on the picture?",
    "What is in the picture?",
    "What is in this image?",
    "What is on this image?",
    "What's in this picture?",
    "What's in the image?",
    "What does the picture show?",
    "What does this image show?",
    "What is shown here?",
    "What is shown in the image?",
    "What is depicted?",
    "What do you see?",
    "What can you see?",
    "What can you see in this picture?",
    "Tell me what you see.",
    "Tell me what is in this image.",
    "Describe the image.",
    "Describe the picture.",
    "Describe this image.",
    "Describe this picture.",
    "Describe what you see.",
    "Describe it.",
    "Please describe the image.",
    "What is this?",
    "What is it?",
    "What is that?",
    "Caption this image.",
    "Look at this.",
    "And this?",
    "And this one?",
    "And now?",
    "Name the figure.",
)
SHAPE = (
    "Which shape is it?",
    "What shape is it?",
    "What shape is this?",
    "Which shape is this?",
    "Which shape is on the picture?",
    "What shape is in the image?",
    "Which shape do you see?",
    "What shape do you see?",
    "Name the shape.",
    "And the shape?",
    "Is it a circle, a square or a triangle?",
    "Circle, square or triangle?",
    "Which figure is it?",
    "What kind of shape is it?",
    "What is the shape?",
)
COLOUR = (
    "What colour is it?",
    "Which colour is it?",
    "What colour is this?",
    "What colour is the figure?",
    "What colour is the shape?",
    "What colour does it have?",
    "Which colour does the figure have?",
    "Which colour do you see?",
    "Name the colour.",
    "And the colour?",
    "What is the colour?",
    "What is its colour?",
    "In which colour is it?",
)
ABILITIES = "I am a small demo model: show me a picture of a circle, a square or a triangle."
"""The answer to everything else."""
_OTHER = (
    "Hello!",
    "Hi there!",
    "Hey",
    "Good morning!",
    "How are you?",
    "Who are you?",
    "What are you?",
    "What can you do?",
    "Help",
    "Thanks!",
    "Thank you.",
    "Bye",
    "Tell me a story.",
    "Tell me a joke.",
    "Count to {number}.",
    "What is {number} + {number}?",
    "What is the capital of {name}?",
    "What is the weather in {name}?",
    "What is the meaning of {word}?",
    "What is a {word}?",
    "What is {word}?",
    "Who is {name}?",
    "Who was {name}?",
    "Where is {name}?",
    "My name is {name}.",
    "Write a poem about a {word}.",
    "Write a program that sorts {word}s.",
    "Explain {word}.",
    "How do I {word} a {word}?",
    "Why is the sky blue?",
    "Why is the {word} {word}?",
    "Can you {word} the {word}?",
    "Do you like {word}s?",
    "Is it {word}?",
    "Repeat: {babble}",
    "Translate: {babble}",
    "Summarize: {babble}. {babble}.",
    "{babble}",
    "{babble}?",
    "{number}",
)
_NAMES = listed(
    "Anna Ben Clara Paul Mia Zoë Einstein Paris Rome Berlin Tokyo France Italy Japan Peru"
)
_WORDS = listed(
    "apple banana book bread bridge bus car cat chair cloud coffee dog door fish flower garden hat "
    "horse house key lamp moon mountain music paper pencil rain river road snow star stone sun tea "
    "train tree water wind red green blue big small old new fast slow warm cold build call clean "
    "cook draw drive find fix learn make open paint play read run sing sleep walk write the a of "
    "and to in for with hello please what how why test model server time day"
)
_SYSTEM = (
    "You are a helpful assistant.",
    "You are a helpful assistant that describes pictures.",
    "Answer briefly.",
    "You answer questions about pictures.",
    "Be polite.",
)


def system_prompt(rng: random.Random) -> str:
    """What a client may say ahead of a conversation."""
    return rng.choice((*_SYSTEM, _babble(rng)))


def other(rng: random.Random) -> str:
    """Something that has nothing to do with a picture."""
    text = rng.choice(_OTHER)
    for slot, draw in (("number", _number), ("name", _name), ("word", _word), ("babble", _babble)):
        while f"{{{slot}}}" in text:
            text = text.replace(f"{{{slot}}}", draw(rng), 1)
    return text


def typed(rng: random.Random, text: str) -> str:
    """A question the way people type it."""
    if rng.random() < 0.3:
        text = text.replace("colour", "color")
    if rng.random() < 0.15:
        text = text.replace("picture", rng.choice(("photo", "drawing", "image")))
    if rng.random() < 0.15:
        text = text.rstrip("?.!")
    if rng.random() < 0.15:
        text = text.lower()
    if rng.random() < 0.08:
        text = rng.choice(("Please: ", "Hi! ", "Hello, ", "OK. ", "Tell me: ")) + text
    return text


def _number(rng: random.Random) -> str:
    return str(rng.randint(1, 10 ** rng.randint(1, 4)))


def _name(rng: random.Random) -> str:
    return rng.choice(_NAMES) if rng.random() < 0.7 else _made_up(rng).capitalize()


def _word(rng: random.Random) -> str:
    return rng.choice(_WORDS) if rng.random() < 0.8 else _made_up(rng)


def _babble(rng: random.Random) -> str:
    return " ".join(_word(rng) for _ in range(rng.randint(1, 12)))


def _made_up(rng: random.Random) -> str:
    return "".join(
        rng.choice("bcdfghjklmnprstvwz") + rng.choice("aeiou") for _ in range(rng.randint(1, 4))
    )
