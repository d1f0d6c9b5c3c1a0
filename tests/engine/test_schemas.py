"""Answers follow their JSON Schemas, on the real engine."""

from __future__ import annotations

import asyncio
import random
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import openvino as ov
import openvino_genai as genai
import pytest

from ovchat_server.engine.contract.generation import TokenFinish
from ovchat_server.engine.genai.grammar_compiler import GrammarCompiler, load_compiler, structured
from tests.combined_schemas import combined_schema
from tests.conftest import ROOT
from tests.effort import scaled
from tests.engine.test_structured_output import DEMO, END, TOKENIZER, answer, demo, grammar, request
from tests.generated_schemas import GENERATED, PRINTED, REFUSED, check
from tests.grammars import unenforced

if TYPE_CHECKING:
    from tests.engine.conftest import Watched

__all__ = ["demo"]

CONFIDENCE = {"type": "number", "minimum": 0, "maximum": 1}
ADDRESS = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 8}},
    "required": ["city"],
}


def fields(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties]}


SCHEMAS: dict[str, dict[str, Any]] = {
    "bounds of a number": fields(confidence=CONFIDENCE, weight={"exclusiveMinimum": 0}),
    "bounds in an array": {"type": "array", "items": CONFIDENCE, "minItems": 2, "maxItems": 3},
    "bounds in a recursive schema": {
        "$defs": {
            "node": {
                "type": "object",
                "properties": {
                    "score": {"type": "number", "minimum": -1, "exclusiveMaximum": 1},
                    "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
                },
                "required": ["score", "next"],
            }
        },
        "$ref": "#/$defs/node",
    },
    "multiples": fields(
        percent={"type": "number", "minimum": 0, "maximum": 100, "multipleOf": 0.5},
        minutes={"type": "integer", "minimum": 0, "maximum": 240, "multipleOf": 15},
        cents={"type": "integer", "minimum": 0, "multipleOf": 5},
        price={"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.05},
    ),
    "optional properties": {
        "type": "object",
        "properties": {name: {"type": "boolean"} for name in "abcdef"},
        "required": ["c"],
        "minProperties": 3,
        "maxProperties": 4,
    },
    "a map": {
        "type": "object",
        "propertyNames": {"maxLength": 4},
        "additionalProperties": CONFIDENCE,
        "minProperties": 1,
        "maxProperties": 2,
    },
    "a map of known names": {
        "type": "object",
        "additionalProperties": {"type": "boolean"},
        "propertyNames": {"enum": ["a", 'b"', "größe"]},
        "minProperties": 2,
    },
    "names beside patterns": {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "x-a": {"maxLength": 3}},
        "patternProperties": {"^x-": {"type": "string"}},
        "required": ["x-a", "x-b"],
    },
    "different items": {
        "type": "array",
        "items": {"enum": ["a", "b", "c", "d"]},
        "uniqueItems": True,
        "minItems": 2,
    },
    "first items": {
        "type": "array",
        "prefixItems": [{"type": "boolean"}, {"type": "null"}],
        "items": {"const": 1},
        "minItems": 1,
        "maxItems": 4,
    },
    "first items as in draft 7": {
        "type": "array",
        "items": [{"type": "boolean"}, {"type": "null"}],
        "additionalItems": {"const": 1},
        "minItems": 1,
        "maxItems": 4,
    },
    "formats beside patterns": fields(
        id=GENERATED["Zod 4.6.7"]["uuidv4"], at=GENERATED["Zod 4.6.7"]["datetime"]
    ),
    "all of objects": {
        "allOf": [ADDRESS, {"properties": {"age": {"type": "integer"}}, "required": ["age"]}],
        "unevaluatedProperties": False,
    },
    "one of objects": {
        "oneOf": [{**ADDRESS, "required": [name]} | fields(**{name: {}}) for name in ("a", "b")],
    },
    "one of objects beside another": {
        "allOf": [
            {"oneOf": [fields(**{name: {}}) for name in ("a", "b")]},
            {"properties": {name: {"type": "boolean"} for name in ("a", "b")}},
        ]
    },
    "all of maps": {
        "allOf": [
            {"type": "object", "additionalProperties": {"type": "integer"}},
            {"additionalProperties": {"minimum": 5}, "propertyNames": {"maxLength": 3}},
            {"additionalProperties": {"maximum": 90}, "minProperties": 1, "maxProperties": 3},
        ]
    },
    "any of what is required": {
        **fields(),
        "properties": {"a": {"type": "null"}, "b": {"type": "null"}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    },
    "patterns with lengths": fields(
        code={"type": "string", "pattern": "^[A-Z]+$", "minLength": 2, "maxLength": 4},
        quoted={"type": "string", "pattern": '^"[a-z]?"$'},
        link={"type": "string", "pattern": "^https://[a-z]*", "maxLength": 20},
    ),
    "formats": fields(
        day={"type": "string", "format": "date"},
        link={"type": "string", "format": "uri", "minLength": 1, "maxLength": 40},
        mail={"type": "string", "format": "email", "maxLength": 100},
    ),
    "values that begin alike": fields(
        word={"enum": ["baa", "b"]},
        text={
            "anyOf": [
                {"type": "string", "pattern": "^[0-9]{2,5}$"},
                {"type": "string", "maxLength": 4},
                {"enum": ["a", "ab", "abb"]},
            ]
        },
    ),
    "what is misread": fields(Größe={"enum": ["ße", 1, ["ä1"]]}),
}


# Of numbers, names, items, combinations and texts.
IN_GATE = (
    "bounds of a number",
    "optional properties",
    "names beside patterns",
    "different items",
    "one of objects",
    "all of maps",
    "patterns with lengths",
    "formats beside patterns",
    "what is misread",
)


@pytest.mark.parametrize(
    "name",
    [name if name in IN_GATE else pytest.param(name, marks=pytest.mark.slow) for name in SCHEMAS],
)
async def test_answers_follow_their_schemas(demo: Watched, name: str) -> None:
    schema = SCHEMAS[name]
    text = grammar("json_schema", schema)
    assert await demo.engine.check_grammar(text) == ""

    answers = await asyncio.gather(
        *(answer(demo, request(text, seed, self_terminating=True)) for seed in range(8))
    )

    ended = [said for said, finish in answers if finish is TokenFinish.STOP]
    assert len(ended) >= 2
    for said in ended:
        check(said, schema)


async def test_parameters_follow_their_schema_in_the_form_of_qwen(demo: Watched) -> None:
    schema = fields(days={"enum": [1, 22]}, city={"enum": ["Rome"]})
    schema["properties"]["note"] = {"type": "string"}
    text = grammar("structural_tag", {"type": "qwen_xml_parameter", "json_schema": schema})
    assert await demo.engine.check_grammar(text) == ""

    answers = await asyncio.gather(*(answer(demo, request(text, seed)) for seed in range(12)))

    known = r"<parameter=days>\n(1|22)\n</parameter>\n<parameter=city>\n\"Rome\"\n</parameter>"
    for said, _ in answers:
        assert re.match(rf"{known}(\Z|\n<parameter=note>\n)", said)


@pytest.mark.slow
def test_whatever_stands_together_holds_or_is_refused() -> None:
    compiler = load_compiler(str(ROOT / DEMO))
    outcomes = []
    for seed in range(scaled(500)):
        schema = combined_schema(random.Random(seed))
        if unenforced(schema):
            outcomes.append("refused")
            continue
        said = sampled(compiler, grammar("json_schema", schema), seed)
        outcomes.append("length" if said is None else "valid")
        if said is not None:
            check(said, schema)

    assert outcomes.count("valid") > len(outcomes) / 2, outcomes
    # Most of those have no value that follows them.
    assert outcomes.count("refused") < len(outcomes) / 3


@pytest.mark.slow
def test_what_generators_write_holds() -> None:
    compiler = load_compiler(str(ROOT / DEMO))
    said = {}
    for number, (generator, feature, schema) in enumerate(PRINTED):
        if (generator, feature) not in REFUSED:
            text = sampled(compiler, grammar("json_schema", schema), number)
            said[generator, feature] = text
            if text is not None:
                check(text, schema)

    assert sum(text is not None for text in said.values()) > len(said) / 2


def sampled(compiler: GrammarCompiler, grammar: str, seed: int) -> str | None:
    """A text under a grammar, of tokens that are all as likely; None: it did not end."""
    config = genai.GenerationConfig()
    config.max_new_tokens = 120
    config.do_sample = True
    config.rng_seed = seed
    config.stop_token_ids = {END}
    config.structured_output_config = structured(grammar)
    prompt = ov.Tensor(np.array([[0]], dtype=np.int64))
    [result] = compiler._pipeline.generate([prompt], [config])
    if result.finish_reasons[0] != genai.GenerationFinishReason.STOP:
        return None
    return TOKENIZER.decode(result.m_generation_ids[0], special_tokens=False)
