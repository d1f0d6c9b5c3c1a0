"""What answers are held to: a constraint, the tools' schemas, each written once and shared."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from ovchat_server.domain.chat_request import read_chat_request
from ovchat_server.domain.errors import (
    ApiError,
    InvalidRequestError,
    OverloadedError,
    UnavailableError,
)
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.identity import Identity
from ovchat_server.domain.structured_output import Constraint, ConstraintKind
from ovchat_server.engine.contract.engine import ANONYMOUS, Caller
from ovchat_server.engine.contract.generation_engine import SlowGrammarError
from ovchat_server.grammar.cache import ENTRY_BYTES, GrammarCache
from ovchat_server.grammar.schema.errors import SchemaError
from ovchat_server.grammar.values import json_grammar
from ovchat_server.serving.answer_format import AnswerFormats
from ovchat_server.serving.record import begin_record
from tests.unit.serving_tools import (
    WORKERS,
    ScriptedEngine,
    ScriptedGeneration,
    completions,
    served,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.domain.json_value import JsonValue
    from ovchat_server.engine.contract.generation import GeneratedTokens
    from ovchat_server.serving.answer_format import AnswerFormat

TEMPLATES = {
    "hermes": "<tool_call>",
    "qwen3_coder": "<tool_call><function=",
    "unknown": "{{ messages }}",
}
NOT: dict[str, Any] = {"type": "object", "properties": {"a": {"not": {"type": "null"}}}}
UNWRITABLE: dict[str, Any] = {"type": "object", "properties": {"a<b": {}}, "required": ["a<b"]}
PLAIN: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "null"}}}
TOO_DEEP: dict[str, Any] = {"type": "object"}
for _ in range(60):
    TOO_DEEP = {"type": "object", "properties": {"a": TOO_DEEP}}
WIDE = {"anyOf": [{"type": "string", "minLength": number} for number in range(800)]}
TOO_LARGE: dict[str, Any] = {"type": "object", "allOf": [WIDE, WIDE]}


@dataclass
class Permissive(ScriptedEngine):
    """Can follow any grammar, or none."""

    error: str | ApiError = ""
    checked_for: Caller | None = None

    async def check_grammar(self, grammar: str, caller: Caller = ANONYMOUS) -> str:  # noqa: ARG002
        self.checked_for = caller
        if isinstance(self.error, str):
            return self.error
        raise self.error


class Counting(GrammarCache):
    """Knows what was asked for, and where."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[JsonValue] = []
        self.threads: set[int] = set()

    def grammar(self, write: Callable[[Any], str], schema: JsonValue) -> str:
        self.asked.append(schema)
        self.threads.add(threading.get_ident())
        return super().grammar(write, schema)


async def planned(
    template: str,
    cache: GrammarCache | None = None,
    engine: Permissive | None = None,
    **fields: Any,
) -> tuple[AnswerFormat, Any]:
    """The format of an answer, and the grammar that the engine gets."""
    model = served(engine or Permissive(), template=TEMPLATES[template])
    messages = [{"role": "user", "content": "Hi"}]
    request = read_chat_request({"model": "demo", "messages": messages} | fields)
    formats = AnswerFormats(cache or GrammarCache(), WORKERS)
    planned = await formats.of_chat(model, request, None)
    return planned, json.loads(planned.grammar.text or "null")


def tool(name: str, parameters: Any, **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters} | more}


async def refused(template: str, **fields: Any) -> list[tuple[str, str, str]]:
    with pytest.raises(InvalidRequestError) as caught:
        await planned(template, **fields)
    return [(item.field, item.code, item.message) for item in caught.value.violations]


@pytest.mark.parametrize("choice", ["auto", "required"])
@pytest.mark.parametrize("template", ["hermes", "qwen3_coder"])
async def test_a_strict_schema_that_cannot_be_enforced_is_refused_by_name(
    template: str, choice: str
) -> None:
    tools = [tool("f", PLAIN, strict=True), tool("g", NOT, strict=True), tool("h", NOT)]

    [(path, code, message)] = await refused(template, tools=tools, tool_choice=choice)

    assert (path, code) == ("tools[1].function.parameters", "unsupported_schema")
    assert message == f"{path} uses not at /properties/a, which cannot be enforced."


async def test_a_strict_schema_is_refused_where_no_call_is_held_to_it() -> None:
    strict = [tool("g", NOT, strict=True)]
    for template, more in (("unknown", {}), ("hermes", {"min_tokens": 1})):
        [(path, *_)] = await refused(template, tools=strict, **more)
        assert path == "tools[0].function.parameters"
    older = [{"name": "g", "parameters": NOT, "strict": True}]
    [(path, *_)] = await refused("hermes", functions=older)
    assert path == "functions[0].parameters"


async def test_what_only_the_dialect_cannot_say_is_refused_where_it_is_strict() -> None:
    strict = [tool("f", UNWRITABLE, strict=True)]

    [(path, code, message)] = await refused("qwen3_coder", tools=strict)

    assert (path, code) == ("tools[0].function.parameters", "unsupported_schema")
    assert "asks for an argument called 'a<b'" in message
    assert (await planned("hermes", tools=strict))[0].grammar.text


def unenforced(answer_format: AnswerFormat) -> list[str]:
    return [*map(str, answer_format.unenforced)]


@pytest.mark.parametrize("choice", ["auto", "required"])
@pytest.mark.parametrize("template", ["hermes", "qwen3_coder"])
async def test_the_rest_of_a_schema_is_enforced_and_what_is_not_is_named(
    template: str, choice: str
) -> None:
    tools = [tool("f", PLAIN), tool("g", NOT, strict=False), tool("h", None)]
    found, grammar = await planned(template, tools=tools, tool_choice=choice)
    left = [tools[0], tool("g", {"type": "object", "properties": {"a": {"anyOf": [{}]}}}), tools[2]]
    whole, expected = await planned(template, tools=left, tool_choice=choice)

    assert grammar == expected
    assert unenforced(found) == ["tools[1].function.parameters/properties/a/not"]
    assert unenforced(whole) == []


@pytest.mark.parametrize("parameters", [TOO_DEEP, TOO_LARGE])
async def test_what_is_left_out_as_a_whole_is_named_as_a_whole(parameters: Any) -> None:
    found, grammar = await planned("qwen3_coder", tools=[tool("f", parameters)])
    _, free = await planned("qwen3_coder", tools=[tool("f", {"type": "object"})])

    assert grammar == free
    assert unenforced(found) == ["tools[0].function.parameters"]
    found, _ = await planned("hermes", functions=[{"name": "f", "parameters": parameters}])
    assert unenforced(found) == ["functions[0].parameters"]


@pytest.mark.parametrize(
    ("parameters", "pointers"),
    [
        ({"type": "string", "maxLength": 3}, ["/type"]),
        (
            {"type": ["integer"], "properties": {"a": {"not": {"type": "null"}}}},
            ["/type", "/properties/a/not"],
        ),
        ({"type": ["object", "null"]}, []),
    ],
)
async def test_arguments_are_objects(parameters: Any, pointers: list[str]) -> None:
    found, _ = await planned("hermes", tools=[tool("f", parameters)])
    assert unenforced(found) == [f"tools[0].function.parameters{end}" for end in pointers]


async def test_tools_that_no_grammar_can_hold_together_are_all_named() -> None:
    tools = [tool("f", PLAIN), tool("g", NOT)]
    for error in ("it takes more than 1.5 seconds to compile", UnavailableError("Busy.")):
        found, grammar = await planned("hermes", engine=Permissive(error=error), tools=tools)
        assert grammar is None
        assert unenforced(found) == [f"tools[{index}].function.parameters" for index in range(2)]


class SlowGrammar(ScriptedGeneration):
    """Ends because its grammar is slow to follow."""

    async def __anext__(self) -> GeneratedTokens:
        raise SlowGrammarError("it is slow")


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        (
            {"response_format": {"type": "json_object"}},
            InvalidRequestError,
            "response_format cannot be enforced: it is slow.",
        ),
        (
            {"tools": [tool("f", PLAIN)], "tool_choice": "required"},
            InvalidRequestError,
            "tool_choice cannot be enforced: it is slow.",
        ),
        (
            {"tools": [tool("f", PLAIN, strict=True)]},
            InvalidRequestError,
            "tool_choice cannot be enforced: it is slow.",
        ),
        ({"tools": [tool("f", PLAIN)]}, UnavailableError, "Send it again"),
    ],
    ids=["format", "forced", "strict", "auto"],
)
async def test_who_asks_for_a_slow_grammar_is_told_so_and_who_need_not_have_it_comes_back(
    fields: dict[str, Any], error: type[ApiError], message: str
) -> None:
    engine = Permissive()
    engine.generation = SlowGrammar(())
    model = served(engine, template=TEMPLATES["hermes"])
    messages = [{"role": "user", "content": "Hi"}]
    answer = await completions(model).answer(
        read_chat_request({"model": "demo", "messages": messages} | fields)
    )
    with pytest.raises(error, match=message) as caught:
        await answer.whole()
    assert (caught.value.retry_after is not None) == (error is UnavailableError)


async def test_a_grammar_is_checked_for_its_caller_who_comes_back_if_too_many_of_it_wait() -> None:
    engine = Permissive(error=OverloadedError("64 new grammars of yours are waiting"))
    begin_record().caller = Identity("me")
    with pytest.raises(OverloadedError, match="of yours"):
        await planned("hermes", engine=engine, tools=[tool("f", PLAIN)])
    assert engine.checked_for == Caller("me")


@pytest.mark.parametrize(
    ("template", "fields"),
    [
        ("hermes", {"tool_choice": "none"}),
        ("hermes", {"min_tokens": 1}),
        ("unknown", {}),
        ("hermes", {"tools": [tool("f", PLAIN)]}),
        (
            "hermes",
            {
                "tools": [tool("f", PLAIN), tool("g", NOT)],
                "tool_choice": {"type": "function", "function": {"name": "f"}},
            },
        ),
    ],
)
async def test_nothing_is_named_that_would_not_be_held_anyway(
    template: str, fields: dict[str, Any]
) -> None:
    found, _ = await planned(template, **{"tools": [tool("f", NOT)], **fields})
    assert unenforced(found) == []


async def test_every_fault_of_the_schemas_is_reported_at_once() -> None:
    faults = await refused(
        "hermes",
        tools=[tool("f", NOT, strict=True), tool("g", NOT, strict=True)],
        guided_json=NOT,
    )

    assert [path for path, *_ in faults] == [
        "guided_json",
        "tools[0].function.parameters",
        "tools[1].function.parameters",
    ]


async def test_a_constraint_that_cannot_be_enforced_is_refused_by_name() -> None:
    [fault] = await refused("hermes", guided_json={"type": "array", "uniqueItems": True})
    assert fault[:2] == ("guided_json", "unsupported_schema")
    inside = {
        "type": "sequence",
        "elements": [{"type": "json_schema", "json_schema": {"not": {"type": "null"}}}],
    }
    [fault] = await refused("hermes", structural_tag={"type": "structural_tag", "format": inside})
    assert fault == (
        "structural_tag",
        "unsupported_schema",
        "structural_tag uses not at the top, which cannot be enforced.",
    )


async def test_a_text_is_refused_alike() -> None:
    constraint = Constraint(
        ConstraintKind.JSON_SCHEMA, {"not": {"type": "null"}}, FieldPath.of("guided_json")
    )
    with pytest.raises(InvalidRequestError, match="guided_json uses not") as caught:
        await AnswerFormats(GrammarCache(), WORKERS).of_text(served(Permissive()), constraint)
    [violation] = caught.value.violations
    assert (violation.field, violation.code) == ("guided_json", "unsupported_schema")


@pytest.mark.parametrize("template", ["hermes", "qwen3_coder"])
async def test_a_schema_is_written_once_and_in_a_thread(template: str) -> None:
    cache = Counting()
    fields: dict[str, Any] = {"tools": [tool("f", PLAIN, strict=True)], "guided_json": PLAIN}

    await planned(template, cache, **fields)

    assert cache.asked == [PLAIN, PLAIN]
    assert threading.get_ident() not in cache.threads
    size = cache.size
    await planned(template, cache, tool_choice="required", **fields)
    assert cache.size == size


def test_grammars_are_kept_up_to_a_size() -> None:
    cache = GrammarCache(max_bytes=4 * (ENTRY_BYTES + 100))
    written: list[Any] = []

    def write(schema: Any) -> str:
        written.append(schema)
        return json_grammar(schema)

    for number in range(100):
        assert cache.grammar(write, {"const": number}) == json_grammar({"const": number})
        assert cache.size <= 4 * (ENTRY_BYTES + 100)
    cache.grammar(write, {"const": 99})
    assert len(written) == 100
    cache.grammar(write, {"const": 0})
    assert len(written) == 101


def test_the_longest_unused_is_forgotten_first() -> None:
    cache = GrammarCache(max_bytes=2 * (ENTRY_BYTES + 100))
    written: list[Any] = []

    def write(schema: Any) -> str:
        written.append(schema)
        return "root"

    for schema in (1, 2, 1, 3, 1, 2):
        cache.grammar(write, schema)
    assert written == [1, 2, 3, 2]


def test_what_cannot_be_enforced_is_known_the_second_time() -> None:
    cache = GrammarCache()
    written: list[Any] = []

    def write(schema: Any) -> str:
        written.append(schema)
        return json_grammar(schema)

    for _ in range(2):
        with pytest.raises(SchemaError, match="uses not at the top"):
            cache.grammar(write, {"not": {"type": "null"}})
    assert len(written) == 1


def test_the_order_of_properties_makes_another_grammar() -> None:
    cache = GrammarCache()
    names = {"a": {"type": "null"}, "b": {"type": "null"}}
    orders = [{"properties": dict(items)} for items in (names.items(), reversed(names.items()))]
    assert len({cache.grammar(json_grammar, schema) for schema in orders}) == 2
