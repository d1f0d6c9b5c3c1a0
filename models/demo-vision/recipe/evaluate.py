"""Asks the exported model about held-out pictures, through OpenVINO GenAI.

    python -m models.demo-vision.recipe.evaluate --pictures 1000

Prints the shares of right answers, and exits with 1 if one picture of ten is described wrongly.
Needs openvino-genai, Pillow and numpy.
"""

import argparse
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import openvino
import openvino_genai

from .phrases import ABILITIES, COLOUR, DESCRIBE, SHAPE, other
from .pictures import Picture, article, held_out

MODEL = Path(__file__).resolve().parent.parent
GOAL = 0.9
Scores = dict[str, list[bool]]


class Model:
    """The model, asked without sampling."""

    def __init__(self, folder: Path) -> None:
        """Load it."""
        self._pipeline = openvino_genai.VLMPipeline(str(folder), "CPU")
        self._config = openvino_genai.GenerationConfig(max_new_tokens=100, do_sample=False)

    def ask(self, question: str, *pictures: Picture) -> str:
        """One answer."""
        images = [openvino.Tensor(picture.pixels[None]) for picture in pictures]
        given = {"images": images} if images else {}
        return self._pipeline.generate(question, generation_config=self._config, **given).texts[0]

    def talk(self, turns: list[tuple[str, tuple[Picture, ...]]]) -> list[str]:
        """The answers of one conversation."""
        self._pipeline.start_chat()
        answers = [self.ask(question, *pictures) for question, pictures in turns]
        self._pipeline.finish_chat()
        return answers


def described(model: Model, pictures: int, *, mistakes: bool) -> Scores:
    """Whether each picture is described as it is, by what may matter."""
    scores: Scores = defaultdict(list)
    for seed in range(pictures):
        picture = held_out(seed)
        height, width = picture.pixels.shape[:2]
        answer = model.ask("What is on the picture?", picture)
        right = answer == picture.answer
        if mistakes and not right:
            print(f"{seed} ({width}x{height}, {picture.size:.2f}): {picture.answer} {answer}")
        said = answer.rstrip(".").split()
        aspect = max(width, height) / min(width, height)
        for name, value in (
            ("described", right),
            ("  shape alone", said[-1:] == [picture.shape]),
            ("  colour alone", picture.colour in said),
            (f"  {picture.shape}", right),
            (f"  {picture.colour}", right),
            (f"  figure: {_span(picture.size, (0.25, 0.4, 0.6))} of the shorter side", right),
            (f"  longer side: {_span(max(width, height), (100, 300, 1000))} pixels", right),
            (f"  longer by shorter side: {_span(aspect, (1.5, 2.25))}", right),
        ):
            scores[name].append(value)
    return scores


def _span(value: float, limits: tuple[float, ...]) -> str:
    """The span of values that this one is in."""
    number = sum(value >= limit for limit in limits)
    if number == 0:
        return f"below {limits[0]}"
    if number == len(limits):
        return f"{limits[-1]} and more"
    return f"{limits[number - 1]} to {limits[number]}"


def conversations(model: Model, rounds: int, *, mistakes: bool) -> Scores:
    """Whether other questions are answered right."""
    scores: Scores = defaultdict(list)
    for number in range(rounds):
        for name, expected, answer in _round(model, number):
            scores[name].append(answer == expected)
            if mistakes and answer != expected:
                print(f"{name}, {number}: {expected} {answer}")
    return scores


def _round(model: Model, number: int) -> Iterator[tuple[str, str, str]]:
    rng = random.Random(f"held out {number}")
    pick: Callable[[tuple[str, ...]], str] = rng.choice
    one, two = held_out(10_000 + number), held_out(20_000 + number)
    what, shape, colour = one.answer, f"A {one.shape}.", f"{one.colour.capitalize()}."
    both = f"{one.answer[:-1]} and {article(two.colour)} {two.shape}."
    yield "paraphrases", what, model.ask(pick(DESCRIBE), one)
    yield "shape", shape, model.ask(pick(SHAPE), one)
    yield "colour", colour, model.ask(pick(COLOUR), one)
    yield "two pictures", both, model.ask(pick(DESCRIBE), one, two)
    yield "no picture", ABILITIES, model.ask(other(rng))
    yield "no picture, asked for one", ABILITIES, model.ask(pick((*DESCRIBE, *SHAPE, *COLOUR)))
    turns = [(pick(DESCRIBE), (one,)), (pick(COLOUR), ()), (pick(DESCRIBE), (two,))]
    answers = model.talk(turns)
    yield "second turn, about the picture of the first", colour, answers[1]
    yield "third turn, another picture", two.answer, answers[2]


def main() -> None:
    """Ask, and print the shares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=MODEL)
    parser.add_argument("--pictures", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=200, help="of questions of other kinds")
    parser.add_argument("--mistakes", action="store_true", help="print wrong answers")
    options = parser.parse_args()
    model = Model(options.model)
    scores = described(model, options.pictures, mistakes=options.mistakes)
    scores |= conversations(model, options.rounds, mistakes=options.mistakes)
    for name, rights in sorted(scores.items(), key=lambda item: (item[0][0] == " ", item[0])):
        print(f"{name}: {sum(rights) / len(rights):.1%} of {len(rights)}")
    whole = scores["described"]
    sys.exit(sum(whole) / len(whole) < GOAL)


if __name__ == "__main__":
    main()
