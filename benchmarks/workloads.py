"""What is asked: each workload draws a plan of prompts that no cache has seen."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from benchmarks.images import draw_image
from benchmarks.plan import Ask, Lane, Plan
from benchmarks.prompts import OPENING
from benchmarks.texts import QUOTES, TALK, quotes, talk

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.prompts import Prompts
    from benchmarks.scales import Scale

PROMPT = 64
LONG_PROMPT = 3000
PREFIX = 1000
TURN_WORDS = 100
TURNS = 5
STREAMS = (1, 4, 16, 64)
TALKERS = (1, 4, 16)
BURSTS = (1, 4, 15)

COLORS = ["red", "green", "blue", "yellow", "black", "white"]
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        name: {"type": "array", "items": {"enum": COLORS}, "minItems": 3, "maxItems": 3}
        for name in ("first", "second", "third")
    },
    "required": ["first", "second", "third"],
    "additionalProperties": False,
}


def _tool(name: str, about: str, parameter: str) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": {parameter: {"type": "string"}},
        "required": [parameter],
    }
    function = {"name": name, "description": about, "parameters": parameters}
    return {"type": "function", "function": function}


TOOLS = (
    _tool("get_weather", "Get the weather of a city.", "city"),
    _tool("search_web", "Search the web.", "query"),
    _tool("read_file", "Read a file.", "path"),
)


@dataclass(frozen=True, slots=True)
class Workload:
    """A name, what it is, and its plan."""

    name: str
    about: str
    plan: Callable[[Prompts, Scale], Plan]


def _plain(prompts: Prompts, tokens: int, answer: int, label: str = "") -> Ask:
    return Ask(label=label, messages=prompts.message(tokens), max_tokens=answer)


def _one_lane(*asks: Ask) -> Plan:
    return Plan(((Lane(asks),),))


def decode(streams: int) -> Workload:
    """Short prompts, so many callers."""

    def plan(prompts: Prompts, scale: Scale) -> Plan:
        return Plan(
            (
                tuple(
                    Lane(tuple(_plain(prompts, PROMPT, scale.answer) for _ in range(scale.repeats)))
                    for _ in range(streams)
                ),
            )
        )

    return Workload(f"decode-{streams}", f"64 tokens in, 64 out, {streams} at once", plan)


def _top(prompts: Prompts, scale: Scale) -> Plan:
    lanes = decode(16).plan(prompts, scale).phases[0]
    return Plan((tuple(Lane(tuple(map(_with_top, lane.asks))) for lane in lanes),))


def _with_top(ask: Ask) -> Ask:
    return msgspec.structs.replace(ask, top_logprobs=5)


def _first(prompts: Prompts, scale: Scale) -> Plan:
    # Some more of them: a step varies by more than what is added to it.
    return _one_lane(*(_plain(prompts, PROMPT, 1) for _ in range(10 * scale.repeats)))


def _prefill(prompts: Prompts, scale: Scale) -> Plan:
    return _one_lane(*(_plain(prompts, 2000, 16) for _ in range(scale.repeats)))


def _prefix(prompts: Prompts, scale: Scale) -> Plan:
    prefix = OPENING + prompts.words_of(PREFIX)

    def ask(label: str) -> Ask:
        text = prefix + prompts.words_of(PROMPT)
        return Ask(label=label, messages=(("user", text),), max_tokens=16)

    return _one_lane(ask("cold"), *(ask("warm") for _ in range(2 * scale.repeats)))


def _turns(prompts: Prompts, scale: Scale) -> Plan:
    del scale
    messages: tuple[tuple[str, str], ...] = ()
    asks: list[Ask] = []
    for number in range(TURNS):
        messages += (("user", OPENING + prompts.words_of(TURN_WORDS)),)
        label = "later turns" if number else "first turn"
        asks.append(Ask(label=label, messages=messages, max_tokens=32))
        # Not what the model said: all contenders are to read the same.
        messages += (("assistant", OPENING + prompts.words_of(TURN_WORDS)),)
    return _one_lane(*asks)


def _choices(prompts: Prompts, scale: Scale) -> Plan:
    message = [prompts.message(PROMPT) for _ in range(scale.repeats)]
    return _one_lane(*(Ask(messages=one, max_tokens=scale.answer, choices=4) for one in message))


def _schema(prompts: Prompts, scale: Scale) -> Plan:
    def ask() -> Ask:
        return Ask(messages=prompts.message(PROMPT), max_tokens=scale.answer, schema=SCHEMA)

    lanes = (Lane(tuple(ask() for _ in range(scale.repeats))) for _ in range(4))
    return Plan((tuple(lanes),))


def _tools(prompts: Prompts, scale: Scale) -> Plan:
    def ask() -> Ask:
        return Ask(messages=prompts.message(PROMPT), max_tokens=scale.answer, tools=TOOLS)

    lanes = (Lane(tuple(ask() for _ in range(scale.repeats))) for _ in range(4))
    return Plan((tuple(lanes),))


def _behind(prompts: Prompts, scale: Scale) -> Plan:
    alone = (Lane((_plain(prompts, PROMPT, 16, "alone"),)),)
    long = Lane((_plain(prompts, LONG_PROMPT, 16, "long"),))
    short = Lane((_plain(prompts, PROMPT, 16, "behind"),), scale.delay)
    return Plan((alone, (long, short)))


def _beside(prompts: Prompts, scale: Scale) -> Plan:
    streams = tuple(
        Lane((_plain(prompts, PROMPT, scale.stream_tokens, "running"),)) for _ in range(2)
    )
    # When those run.
    long = Lane((_plain(prompts, LONG_PROMPT, 16, "long"),), 2 * scale.delay)
    return Plan(((*streams, long),))


def _burst(prompts: Prompts, scale: Scale) -> Plan:
    def phase(count: int) -> tuple[Lane, ...]:
        stream = Lane((_plain(prompts, PROMPT, scale.stream_tokens, f"{count}, running"),))
        # When it runs.
        short = (_plain(prompts, PROMPT, 16, f"{count} at once") for _ in range(count))
        return (stream, *(Lane((ask,), 2 * scale.delay) for ask in short))

    return Plan(tuple(map(phase, BURSTS)))


def _image(prompts: Prompts, scale: Scale) -> Plan:
    def new(label: str, image: bytes) -> Ask:
        # The image comes last, so that no cache has what is before it.
        text = prompts.message(PROMPT)
        return Ask(label=label, messages=text, image=image, max_tokens=16)

    asks: list[Ask] = []
    for _ in range(scale.repeats):
        image = draw_image(prompts.draw)
        asks += [new("new", image), known := new("known", image)]
        said = ("assistant", OPENING + prompts.words_of(PROMPT))
        messages = (*known.messages, said, *prompts.message(PROMPT))
        asks.append(msgspec.structs.replace(known, label="next turn", messages=messages))
    return _one_lane(*asks)


def _images(prompts: Prompts, scale: Scale) -> Plan:
    def text() -> Ask:
        return _plain(prompts, PROMPT + prompts.image, 1, "texts")

    def image() -> Ask:
        message, file = prompts.message(PROMPT), draw_image(prompts.draw)
        return Ask(label="images", messages=message, image=file, max_tokens=1)

    def phase(ask: Callable[[], Ask]) -> tuple[Lane, ...]:
        asks = tuple(ask() for _ in range(scale.repeats))
        label = f"{asks[0].label}, running"
        stream = Lane((_plain(prompts, PROMPT, scale.stream_tokens, label),))
        # When it runs.
        return (stream, Lane(asks, 2 * scale.delay))

    return Plan((phase(text), phase(image)))


def long_prompt(prompts: Prompts) -> Plan:
    """A long prompt by itself."""
    return _one_lane(_plain(prompts, LONG_PROMPT, 1))


def plain_warm_up(prompts: Prompts) -> Plan:
    """What is asked first, whose figures are not kept: a long prompt, and some at once."""
    few = tuple(Lane((_plain(prompts, PROMPT, 16),)) for _ in range(4))
    return Plan(((Lane((_plain(prompts, 1000, 4),)),), few))


def warm_up(prompts: Prompts) -> Plan:
    """The same, and a little of each other kind."""
    form = Lane((Ask(messages=prompts.message(PROMPT), max_tokens=4, schema=SCHEMA),))
    tools = Lane((Ask(messages=prompts.message(PROMPT), max_tokens=4, tools=TOOLS),))
    return Plan((*plain_warm_up(prompts).phases, (form, tools)))


def vision_warm_up(prompts: Prompts) -> Plan:
    """The same as plain_warm_up, and an image."""
    message, image = prompts.message(PROMPT), draw_image(prompts.draw)
    ask = Ask(messages=message, image=image, max_tokens=16)
    return Plan((*plain_warm_up(prompts).phases, (Lane((ask,)),)))


WORKLOADS = {
    workload.name: workload
    for workload in (
        *map(decode, STREAMS),
        Workload("first", "64 tokens in, one out, one caller", _first),
        Workload("prefill", "2,000 tokens in, 16 out, one caller", _prefill),
        Workload("prefix", "1,000 tokens that requests share, and 64 of their own", _prefix),
        Workload("turns", f"a chat of {TURNS} turns, 100 tokens each way", _turns),
        Workload("n-4", "64 tokens in, four answers of 64 each", _choices),
        Workload("schema", f"JSON Schema of {len(json.dumps(SCHEMA))} bytes, 4 at once", _schema),
        Workload("top-5", "as decode-16, each token with the five likeliest", _top),
        Workload("tools", "three tools to choose from, 64 out, 4 at once", _tools),
        Workload("behind", "64 tokens asked while a prompt of 3,000 is read", _behind),
        Workload("beside", "two streams run when a prompt of 3,000 arrives", _beside),
        Workload("burst", "a stream runs when 1, 4 and 15 prompts of 64 arrive at once", _burst),
        Workload(
            "image", "an image of 2000x1500 and 64 tokens: new, known, in a next turn", _image
        ),
        Workload("images", "a stream runs when images or texts of as many tokens arrive", _images),
        Workload("quote-1", f"{len(QUOTES)} answers made of their prompt, one caller", quotes),
        *(
            Workload(
                f"talk-{streams}",
                f"{len(TALK)} answers of small talk, {streams} at once",
                talk(streams),
            )
            for streams in TALKERS
        ),
    )
}
# What vision models are asked, and only they.
OF_IMAGES = ("image", "images")
# What real models are asked, and only they: the same in each round.
OF_TEXTS = ("quote-1", *(f"talk-{streams}" for streams in TALKERS))
# Where the engine might begin with the first request alone.
CROWDS = ("decode-4", "decode-16")
# What servers of others are asked, too.
COMPARED = ("decode-1", "decode-4", "decode-16", "behind", "beside")
