"""Every skill by name, and the drawing of its conversations."""

import random
from collections.abc import Callable
from dataclasses import replace

from .samples import Sample
from .skill_arithmetic import addition_direct, addition_thinking
from .skill_chat import counting, free, greeting, multi_turn, persona, repeating
from .skill_extraction import extraction
from .skill_facts import capitals
from .skill_fallback import fallback
from .skill_tools import made_up_call, tool_call, tool_result, two_calls, two_made_up_calls
from .words import Draw

SKILLS: dict[str, Callable[[Draw], Sample]] = {
    "greeting": greeting,
    "capitals": capitals,
    "addition_thinking": addition_thinking,
    "addition_direct": addition_direct,
    "counting": counting,
    "repeating": repeating,
    "extraction": extraction,
    "tool_call": tool_call,
    "two_calls": two_calls,
    "tool_result": tool_result,
    "multi_turn": multi_turn,
}
"""What the model promises, and the evaluation measures."""

EXTRAS: dict[str, Callable[[Draw], Sample]] = {
    "fallback": fallback,
    "persona": persona,
    "made_up_call": made_up_call,
    "two_made_up_calls": two_made_up_calls,
    "free": free,
}
"""What it also learns; `free` has many right answers and so no score."""


def _asked(sample: Sample) -> str:
    return repr([(message["role"], message["content"]) for message in sample.messages])


def draw_sample(skill: str, rng: random.Random, *, held_out: bool) -> Sample:
    """A conversation of the skill.

    Held-out ones never occur in training, nor do the words made up for them.
    """
    make = SKILLS.get(skill) or EXTRAS[skill]
    draw = Draw(rng, held_out)
    sample = draw.split(lambda: make(draw), key=_asked)
    if not skill.startswith("addition") and draw.chance(0.15):
        sample = replace(sample, thinking=False)  # changes the prompt's end, not the answer
    return sample
