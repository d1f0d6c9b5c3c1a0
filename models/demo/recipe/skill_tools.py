"""Tools: choosing one, copying its arguments, two calls at once, answering from the results."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .catalog import CATALOG
from .prompts import styled, system
from .samples import Answer, Call, Message, Sample, ToolSchema, user
from .skill_chat import greeting, small_turn
from .skill_facts import capitals
from .words import NOUNS, VERBS, Draw, listed


@dataclass(frozen=True)
class Parameter:
    """One parameter: its JSON Schema, and how to draw a value that a user may write."""

    name: str
    value: Callable[[], Any]
    schema: dict[str, Any]


@dataclass(frozen=True)
class Tool:
    """A tool and the requests that ask for it, with `{parameter}` where a value goes."""

    name: str
    description: str
    parameters: list[Parameter]
    requests: Sequence[str]
    required: list[str] = field(default_factory=list)


_NAMES = listed(
    "name title city country color size count amount value text note level mode user date day "
    "time code id label tag speed weight width height price target source path key kind type "
    "item topic room query limit language unit age"
)
_CURRENCIES = ("EUR", "USD", "GBP", "JPY", "CHF", "euros", "dollars", "pounds", "yen")
_LANGUAGES = ("French", "German", "Spanish", "Italian", "Japanese", "Polish", "Greek", "Dutch")
_ROOMS = (
    "kitchen",
    "bedroom",
    "bathroom",
    "living room",
    "garage",
    "office",
    "hall",
    "garden",
    "cellar",
    "attic",
)


def _value_kinds(draw: Draw) -> dict[str, tuple[Callable[[], Any], dict[str, Any]]]:
    text: dict[str, Any] = {"type": "string"}
    integer: dict[str, Any] = {"type": "integer"}
    number = {"type": draw.pick(("integer", "integer", "number"))}
    units = ["celsius", "fahrenheit"]

    def file() -> str:
        folders = [draw.plain_word() for _ in range(draw.number(0, 2))]
        return (
            draw.pick(("", "/", "./"))
            + "/".join([*folders, draw.plain_word()])
            + draw.pick(("", ".txt", ".md", ".py", ".json"))
        )

    def expression() -> str:
        parts = [str(draw.number(1, 999))]
        for _ in range(draw.number(1, 3)):
            parts += [draw.pick("+-*/"), str(draw.number(1, 999))]
        return " ".join(parts)

    return {
        "city": (draw.city, text),
        "name": (draw.name, text),
        "email": (draw.email, text),
        "phrase": (draw.phrase, text),
        "word": (draw.plain_word, text),
        "any": (draw.word, text),
        "code": (draw.code, text),
        "date": (draw.date, text),
        "time": (draw.time, text),
        "file": (file, text),
        "expression": (expression, text),
        "ticker": (
            lambda: "".join(
                draw.pick("ABCDEFGHIJKLMNOPQRSTUVWXYZ") for _ in range(draw.number(1, 5))
            ),
            text,
        ),
        "room": (lambda: draw.pick(_ROOMS) if draw.chance(0.6) else draw.plain_word(), text),
        "language": (
            lambda: draw.pick(_LANGUAGES) if draw.chance(0.6) else draw.plain_word().capitalize(),
            text,
        ),
        "currency": (lambda: draw.pick(_CURRENCIES), text),
        "unit": (lambda: draw.pick(units), text | ({"enum": units} if draw.chance(0.7) else {})),
        "int": (lambda: draw.number(0, draw.pick((9, 99, 99, 999, 99999))), number),
        "small": (lambda: draw.number(1, 20), integer),
    }


def _described(draw: Draw, name: str, schema: dict[str, Any]) -> dict[str, Any]:
    if not draw.chance(0.4):
        return schema
    words = name.replace("_", " ")
    example = draw.pick(
        (
            f"The {words}",
            f"The {words}.",
            f"the {words}, e.g. {draw.word()}",
            f"{words.capitalize()} to use",
            f"{words}",
            f"Name of the {words}",
        )
    )
    return (
        {"type": schema["type"], "description": example} | schema
        if draw.chance(0.7)
        else schema | {"description": example}
    )


def _known_tool(draw: Draw, entry: tuple[str, str, str, tuple[str, ...]]) -> Tool:
    names, descriptions, parameters, requests = entry
    kinds = _value_kinds(draw)
    made: list[Parameter] = []
    required: list[str] = []
    # Alternatives of one parameter are written name/name:kind|name:kind, optional ones end in "?".
    for column in parameters.split():
        options, _, kind = draw.pick(column.split("|")).partition(":")
        name = options.split("/")[0] if draw.chance(0.4) else draw.pick(options.split("/"))
        value, schema = kinds[kind.rstrip("?")]
        made.append(Parameter(name, value, _described(draw, name, schema)))
        if not kind.endswith("?"):
            required.append(name)
    optional = len(made) - len(required)
    if optional and draw.chance(0.5):
        made = made[:-1]
    requests = tuple(text for text in requests if f"{{{len(made)}}}" not in text)
    name = names.split("|")[0] if draw.chance(0.4) else draw.pick(names.split("|"))
    return Tool(name, draw.pick(descriptions.split("|")), made, requests, required)


def _made_up_tool(draw: Draw, near: Tool | None = None) -> Tool:
    """A tool nobody has seen, possibly sharing a word of its name with another one."""
    kinds = _value_kinds(draw)
    verb = draw.pick(VERBS) if draw.chance(0.5) else draw.plain_word()
    noun = draw.pick(NOUNS) if draw.chance(0.4) else draw.plain_word()
    if near and "_" in near.name and draw.chance(0.5):
        first, _, last = near.name.partition("_")
        verb, noun = (first, noun) if draw.chance(0.5) else (verb, last)
    camel = f"{verb}{noun.capitalize()}" if noun in NOUNS else f"{verb}_{noun}"
    name = draw.pick(
        (
            f"{verb}_{noun}",
            f"{verb}_{noun}",
            camel,
            f"{verb}-{noun}",
            f"{verb}_{noun}_{draw.plain_word()}",
            verb,
        )
    )
    spoken = f"{verb} {noun}" if name != verb else verb
    description = draw.pick(
        (
            f"{verb.capitalize()} a {noun}.",
            f"{verb.capitalize()} the {noun}",
            f"{spoken.capitalize()}.",
            f"Use this to {verb} a {noun}.",
            draw.phrase(5),
        )
    )
    parameters: list[Parameter] = []
    taken: set[str] = set()
    for _ in range(draw.pick((0, 1, 1, 1, 1, 2, 2, 3))):
        label = draw.pick(_NAMES) if draw.chance(0.6) else draw.plain_word()
        label = f"{label}_{draw.plain_word()}" if draw.chance(0.1) else label
        if label in taken:
            continue
        taken.add(label)
        value, schema = kinds[
            draw.pick(
                ("any", "any", "name", "city", "phrase", "code", "int", "int", "date", "email")
            )
        ]
        parameters.append(Parameter(label, value, _described(draw, label, schema)))
    pairs = [
        f"{draw.pick((parameter.name, parameter.name.replace('_', ' ')))}{{sep}}{{{i}}}"
        for i, parameter in enumerate(parameters)
    ]
    style = draw.number(0, 2)
    plain = (" and " if len(pairs) < 3 else ", ").join(pairs).replace("{sep}", " ")
    listed = ", ".join(pairs).replace("{sep}", draw.pick((" = ", "=", ": ")))
    article = draw.pick(("a ", "the ", "my ", ""))
    action = f"{verb} {article}{noun}" if name != verb else f"{verb} it"
    # Nobody starts a sentence with a verb that does not exist.
    start = (
        action.capitalize()
        if verb in VERBS
        else f"{draw.pick(('Please', 'Now', 'I want to'))} {action}"
    )
    requests: tuple[str, ...]
    if not pairs:
        requests = (
            f"{start}.",
            f"Use {name}.",
            f"Call {name}.",
            f"Please {action}.",
            f"Can you {action}?",
        )
    elif len(pairs) == 1 and style == 0 and name != verb:
        requests = (
            f"{start} {{0}}.",
            f"{start} for {{0}}.",
            f"Can you {action} {{0}}?",
            f"{start}: {{0}}",
            f"Use {name} with {{0}}.",
            f"Call {name} for {{0}}.",
        )
    else:
        requests = (
            f"{start} with {plain}.",
            f"Use {name} with {plain}.",
            f"Call {name} with {listed}.",
            f"{start}: {listed}",
            f"Please {action} with {plain}.",
            f"Use the tool {name} with {listed}.",
            f"Call {name}({listed})",
            f"{start}, {plain}.",
        )
    required = [parameter.name for parameter in parameters]
    return Tool(name, description, parameters, requests, required)


def _schema(draw: Draw, tool: Tool) -> ToolSchema:
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {parameter.name: parameter.schema for parameter in tool.parameters},
    }
    if draw.chance(0.8):
        parameters["required"] = tool.required
    if draw.chance(0.2):
        parameters["additionalProperties"] = False
    function: dict[str, Any] = {"name": tool.name}
    if draw.chance(0.8):
        function["description"] = tool.description
    if tool.parameters or draw.chance(0.6):
        function["parameters"] = parameters
    if draw.chance(0.1):
        function["strict"] = True
    if draw.chance(0.1):
        function = dict(reversed(function.items()))
    return {"type": "function", "function": function}


def _toolbox(draw: Draw, least: int, most: int, made_up: float = 0.5) -> list[Tool]:
    """Tools to choose from; so large a share of them has made-up names."""
    tools: list[Tool] = []
    entries = draw.rng.sample(CATALOG, most)
    if sum(entry[0].startswith(("calculate|", "add|")) for entry in entries) > 1:
        return _toolbox(draw, least, most, made_up)  # "What is 1 + 2?" would ask for both
    for entry in entries[: draw.number(least, most)]:
        tool = (
            _known_tool(draw, entry)
            if not draw.chance(made_up)
            else _made_up_tool(draw, tools[0] if tools else None)
        )
        # One verb must not ask for two tools at once.
        if all(
            tool.name != other.name and tool.description != other.description for other in tools
        ):
            tools.append(tool)
    return tools if len(tools) >= least else _toolbox(draw, least, most, made_up)


def _request(draw: Draw, tool: Tool) -> tuple[str, Call]:
    template = draw.pick(tool.requests)
    arguments: dict[str, Any] = {}
    texts: list[str] = []
    quote = draw.pick(('"', "'")) if draw.chance(0.12) else ""
    for position, parameter in enumerate(tool.parameters):
        value = parameter.value()
        texts.append(f"{quote}{value}{quote}" if isinstance(value, str) else str(value))
        if f"{{{position}}}" in template:
            arguments[parameter.name] = value
    return template.format(*texts), Call(tool.name, arguments)


def _finish(
    draw: Draw, skill: str, tools: list[Tool], messages: list[Message], answer: Answer
) -> Sample:
    schemas = [_schema(draw, tool) for tool in tools]
    draw.rng.shuffle(schemas)
    return Sample(skill, messages, answer, schemas)


def tool_call(draw: Draw) -> Sample:
    """One call of the right tool among one to five, as people have them; values never seen."""
    return _one_call(draw, "tool_call", _toolbox(draw, 1, 5, made_up=0))


def made_up_call(draw: Draw) -> Sample:
    """One call of the right tool among one to five, where half of them have made-up names."""
    return _one_call(draw, "made_up_call", _toolbox(draw, 1, 5))


def _one_call(draw: Draw, skill: str, tools: list[Tool]) -> Sample:
    messages = [*system(draw), *_earlier(draw, tools)]
    if draw.chance(0.08):
        other = draw.pick((greeting, capitals))(draw)
        # No tool fits: the model answers by itself.
        fitting = [
            tool for tool in tools if not any(word in tool.name for word in ("capital", "hello"))
        ]
        return _finish(draw, skill, fitting, [*messages, other.messages[-1]], other.answer)
    text, call = _request(draw, draw.pick(tools))
    return _finish(
        draw, skill, tools, [*messages, user(styled(draw, text))], Answer(tool_calls=(call,))
    )


def _two_requests(draw: Draw, tools: list[Tool]) -> tuple[str, tuple[Call, ...]]:
    with_parameters = [tool for tool in tools if tool.parameters]
    if draw.chance(0.45) and with_parameters:
        tool = draw.pick(with_parameters)
        single = [
            text
            for text in tool.requests
            if "{0}" in text and "{1}" not in text and text.count("{") == 1
        ]
        if single:
            # "What is the weather in Paris and Rome?"
            template, parameter = draw.pick(single), tool.parameters[0]
            first, second = parameter.value(), parameter.value()
            joined = draw.pick(
                (
                    f"{first} and {second}",
                    f"{first} and {second}",
                    f"{first} and in {second}" if "in {0}" in template else f"{first} and {second}",
                    f"{first} and for {second}"
                    if "for {0}" in template
                    else f"both {first} and {second}",
                )
            )
            calls = (
                Call(tool.name, {parameter.name: first}),
                Call(tool.name, {parameter.name: second}),
            )
            return template.replace("{0}", joined), calls
    first_tool = draw.pick(tools)
    second_tool = draw.pick(tools) if draw.chance(0.7) else first_tool
    (text, call), (other_text, other_call) = _request(draw, first_tool), _request(draw, second_tool)
    if text[-1] not in ".?":
        text += "."  # or nothing would tell where the last value ends
    if draw.chance(0.6):
        link = draw.pick((" and ", " and ", ", and ", " and then ", " and also "))
        text = text[:-1] + link + other_text[0].lower() + other_text[1:]
    else:
        text += draw.pick((" ", " ", " Then ", " And ")) + other_text
    return text, (call, other_call)


def two_calls(draw: Draw) -> Sample:
    """Two calls in one answer, of tools as people have them, with values never seen."""
    return _two_calls(draw, "two_calls", _toolbox(draw, 1, 4, made_up=0))


def two_made_up_calls(draw: Draw) -> Sample:
    """Two calls in one answer, where half of the tools have made-up names."""
    return _two_calls(draw, "two_made_up_calls", _toolbox(draw, 1, 4))


def _two_calls(draw: Draw, skill: str, tools: list[Tool]) -> Sample:
    before = [*system(draw), *_earlier(draw, tools)]
    text, calls = _two_requests(draw, tools)
    return _finish(
        draw, skill, tools, [*before, user(styled(draw, text))], Answer(tool_calls=calls)
    )


_RESULT_KEYS = listed(
    "temperature condition humidity wind price status time total count result distance duration "
    "name date city score level balance answer weather speed email phone address rating stock id"
)
_CONDITIONS = ("sunny", "cloudy", "rainy", "windy", "snowy", "clear", "foggy", "stormy")


def _result(draw: Draw) -> tuple[str, str]:
    """A tool's result as it writes it, and what there is to say about it."""
    roll = draw.rng.random()
    if roll < 0.08:
        problem = draw.phrase(4)
        return json.dumps(
            {"error": problem}, ensure_ascii=False
        ), f"the tool reports an error: {problem}."
    if roll < 0.16:
        condition = draw.pick(_CONDITIONS)
        text = draw.pick(
            (
                draw.phrase(5),
                draw.phrase(5),
                str(draw.number(0, 9999)),
                f"{condition}, {draw.number(0, 40)} degrees",
                f"{draw.number(0, 40)} degrees and {condition}",
                f"{draw.phrase(2)}, {draw.phrase(2)}",
            )
        )
        return text, f"the result is {text}."
    facts: dict[str, Any] = {}
    if roll < 0.35:
        facts = {"temperature": draw.number(-20, 40), "condition": draw.pick(_CONDITIONS)}
    else:
        for _ in range(draw.pick((1, 1, 2, 2, 3, 4))):
            key = draw.pick(_RESULT_KEYS) if draw.chance(0.6) else draw.plain_word()
            key = f"{key}_{draw.plain_word()}" if draw.chance(0.1) else key
            facts[key] = _fact_value(draw)
    separators = (",", ":") if draw.chance(0.12) else None
    text = json.dumps(
        facts, ensure_ascii=False, separators=separators, indent=2 if draw.chance(0.05) else None
    )
    said = [
        f"the {key.replace('_', ' ')} is {json.dumps(value) if isinstance(value, bool) else value}"
        for key, value in facts.items()
    ]
    return text, (said[0] if len(said) == 1 else f"{', '.join(said[:-1])} and {said[-1]}") + "."


def _fact_value(draw: Draw) -> object:
    kind = draw.number(0, 9)
    if kind <= 2:
        return draw.number(0, draw.pick((9, 99, 999, 99999)))
    if kind == 3:
        return draw.number(0, 999) / 10
    if kind == 4:
        return draw.chance(0.5)
    return draw.pick(
        (draw.word, draw.word, draw.name, draw.city, lambda: draw.phrase(3), draw.time, draw.date)
    )()


def _round(draw: Draw, tools: list[Tool]) -> tuple[list[Message], Answer]:
    """A request, the calls it made and their results; and the answer to give."""
    if draw.chance(0.25):
        text, calls = _two_requests(draw, tools)
    else:
        text, call = _request(draw, draw.pick(tools))
        calls = (call,)
    messages = [user(styled(draw, text)), Answer(tool_calls=calls).as_message()]
    said: list[str] = []
    for number, call in enumerate(calls):
        result, statement = _result(draw)
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": result})
        subjects = list(call.arguments.values())
        # The one thing asked about, where there is one, opens the sentence.
        if len(subjects) == 1 and isinstance(subjects[0], str):
            said.append(f"For {subjects[0]}, {statement}")
        else:
            said.append(statement[0].upper() + statement[1:])
    return messages, Answer(" ".join(said))


def _earlier(draw: Draw, tools: list[Tool]) -> list[Message]:
    """Earlier turns, or none: they make one reading of the tools teach several answers."""
    if draw.chance(0.05):
        return small_turn(draw)
    messages: list[Message] = []
    if draw.chance(0.45):
        for _ in range(draw.number(1, 4)):
            turn, answer = _round(draw, tools)
            messages += [*turn, answer.as_message()]
    return messages


def tool_result(draw: Draw) -> Sample:
    """An answer in a sentence from what the tools returned."""
    tools = _toolbox(draw, 1, 3)
    before = [*system(draw), *_earlier(draw, tools)]
    messages, answer = _round(draw, tools)
    return _finish(draw, "tool_result", tools, [*before, *messages], answer)
