"""Held-out conversations to ask, and the table of how the answers fared."""

import random

from .conversations import draw_sample
from .samples import Answer, Sample

PROMISE = 0.95
"""The share of held-out samples that every skill has to answer right."""
MAX_TOKENS = 600
SHOWN_MISTAKES = 3

Mistakes = dict[str, list[tuple[Sample, Answer]]]


def held_out_samples(skill: str, count: int, seed: int = 0) -> list[Sample]:
    """The same conversations on every run with the same seed."""
    rng = random.Random(f"{skill} served {seed}")
    return [draw_sample(skill, rng, held_out=True) for _ in range(count)]


def wrong_answers(asked: list[Sample], given: list[Answer]) -> list[tuple[Sample, Answer]]:
    """The samples whose answer is not the wanted one, with what was answered."""
    return [pair for pair in zip(asked, given, strict=True) if not pair[1].matches(pair[0].answer)]


def print_scores(scores: dict[str, float], samples: int) -> None:
    """One line per skill."""
    print(f"{'skill':<20}{'right':>8}   of {samples}")
    for skill, share in scores.items():
        print(
            f"{skill:<20}{share:>8.1%}   {'' if share >= PROMISE else 'below the promise'}".rstrip()
        )


def print_mistakes(mistakes: dict[str, list[tuple[Sample, Answer]]]) -> None:
    """A few wrong answers per skill, with what was asked and wanted."""
    for skill, wrong in mistakes.items():
        for sample, given in wrong[:SHOWN_MISTAKES]:
            print(f"\n[{skill}] {sample.messages[-1]['content']!r}")
            print(f"  wanted {sample.answer.as_text()!r}\n  given  {given.as_text()!r}")
