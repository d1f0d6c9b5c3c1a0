"""Adding two numbers up to 100, with the reasoning written out or without."""

from dataclasses import replace

from .prompts import styled, system
from .samples import Answer, Sample, user
from .words import Draw


def reasoning(first: int, second: int) -> str:
    """The sum worked out digit by digit."""
    ones, tens = first % 10 + second % 10, first // 10 + second // 10
    carry = ones // 10
    return (
        f"Ones: {first % 10} + {second % 10} = {ones}, write {ones % 10}, carry {carry}.\n"
        f"Tens: {first // 10} + {second // 10} + {carry} = {tens + carry}.\n"
        f"Together: {first + second}."
    )


def _addition(draw: Draw) -> tuple[Sample, int, int]:
    first, second = draw.split(
        lambda: (draw.number(0, 100), draw.number(0, 100)), key=lambda pair: f"{pair[0]}+{pair[1]}"
    )
    question = draw.pick(
        (
            f"What is {first} + {second}?",
            f"What is {first} + {second}?",
            f"What is {first} plus {second}?",
            f"{first} + {second}",
            f"{first}+{second}",
            f"{first} + {second} = ?",
            f"{first}+{second}=",
            f"Add {first} and {second}.",
            f"What is {first}+{second}?",
            f"Add {first} to {second}.",
            f"What is the sum of {first} and {second}?",
            f"{first} plus {second}?",
            f"Calculate {first} + {second}.",
            f"How much is {first} + {second}?",
            f"Compute {first} plus {second}.",
            f"Please add {first} and {second}.",
            f"Can you add {first} and {second}?",
            f"What does {first} + {second} make?",
        )
    )
    answer = Answer(f"{first} + {second} = {first + second}")
    return Sample("addition", [*system(draw), user(styled(draw, question))], answer), first, second


def addition_thinking(draw: Draw) -> Sample:
    """A sum with the reasoning inside the think block."""
    sample, first, second = _addition(draw)
    answer = replace(sample.answer, reasoning=reasoning(first, second))
    return replace(sample, skill="addition_thinking", answer=answer)


def addition_direct(draw: Draw) -> Sample:
    """A sum with thinking turned off."""
    sample, _, _ = _addition(draw)
    return replace(sample, skill="addition_direct", thinking=False)
