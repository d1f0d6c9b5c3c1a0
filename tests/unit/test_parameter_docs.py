"""docs/parameters.md against the code, the contract, and the SDKs of OpenAI and Anthropic."""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from anthropic.types import message_create_params
from anthropic.types.beta import message_create_params as beta_message_create_params
from openai.types import completion_create_params, embedding_create_params
from openai.types.chat import completion_create_params as chat_create_params
from openai.types.responses import response_create_params

from ovchat_server.domain.anthropic.reading import read_messages_request
from ovchat_server.domain.anthropic.spelling import spelled
from ovchat_server.domain.chat_request import read_chat_request
from ovchat_server.domain.embedding_request import read_embedding_request
from ovchat_server.domain.errors import InvalidRequestError
from ovchat_server.domain.generation import SamplingParams, SpeculationParams
from ovchat_server.domain.rerank_request import read_rerank_request, read_score_request
from ovchat_server.domain.responses.body import LOGPROBS
from ovchat_server.domain.responses.reading import read_responses_request
from ovchat_server.domain.text_request import read_text_request
from ovchat_server.domain.tokenization_request import read_detokenize_request, read_tokenize_request
from ovchat_server.engine.contract.generation_spec import GenerationOptions
from ovchat_server.engine.contract.speculation import Speculation
from ovchat_server.serving.generation import resolve_sampling, resolve_speculation
from ovchat_server.serving.model_files import GenerationDefaults
from tests.conftest import ROOT
from tests.parameters import checks, values
from tests.parameters.endpoints import USER, WEATHER
from tests.parameters.message import KINDS
from tests.parameters.messages_from_chats import with_input_schema
from tests.structured_output import SCHEMA, TAG

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ovchat_server.domain.anthropic.request import MessagesRequest
    from ovchat_server.domain.responses.request import ResponsesRequest


def read_responses(fields: dict[str, Any]) -> ResponsesRequest:
    """A request without its items as they are listed: their ids are random."""
    return dataclasses.replace(read_responses_request(fields), input_items=())


def read_messages(fields: dict[str, Any]) -> MessagesRequest:
    """A request whose faults are called what they are for the caller."""
    try:
        return read_messages_request(fields)
    except InvalidRequestError as error:
        error.respell(spelled)
        raise


READ: dict[str, Callable[[dict[str, Any]], Any]] = {
    "chat": read_chat_request,
    "text": read_text_request,
    "responses": read_responses,
    "messages": read_messages,
    "tokenize": read_tokenize_request,
    "detokenize": read_detokenize_request,
    "embeddings": read_embedding_request,
    "rerank": read_rerank_request,
    "score": read_score_request,
}
SDK = {
    "chat": {*chat_create_params.CompletionCreateParamsBase.__annotations__, "stream"},
    "text": {*completion_create_params.CompletionCreateParamsBase.__annotations__, "stream"},
    "responses": {*response_create_params.ResponseCreateParamsBase.__annotations__, "stream"},
    "embeddings": {*embedding_create_params.EmbeddingCreateParams.__annotations__},
}
# Parts of the type, range and default that a row gives for an endpoint.
CELL = re.compile(
    r"(?:(?P<endpoint>chat|text): )?(?P<range>.+?)"
    r"(?:\. (?:Default (?P<default>.+)|No default|(?P<required>Required)|(?P<form>One of .+)))?"
)
INTEGER = re.compile(r"integer (?:(?P<apart>-?\d+) or )?(?P<least>-?\d+) to (?P<most>-?\d+)")
NUMBER = re.compile(
    r"number (?P<above>above )?(?P<least>-?[\d.]+) to (?P<below>below )?(?P<most>-?[\d.]+)"
)
ARRAY = re.compile(r"(?P<string>string or )?array of (?P<least>\d+) to (?P<most>\d+) (?P<item>.+)")
OBJECT = re.compile(
    r"object of (?P<fewest>\d+) to (?P<entries>\d+) numbers (?P<least>-?\d+) to (?P<most>-?\d+)"
)
STEP = 1e-6
# What a request needs besides a parameter at its bounds.
BESIDE: dict[str, dict[str, Any]] = {
    "min_tokens": {"max_tokens": 2**32 - 1},
    "prompt": {"text": None},
    "messages": {"text": None},
    "items": {"documents": None},
    **{
        name: {"queries": None, "documents": None}
        for name in ("text_1", "text_2", "data_1", "data_2")
    },
}


@dataclass(frozen=True)
class Row:
    """What the docs say of a parameter at an endpoint."""

    endpoint: str
    name: str
    status: str
    cells: dict[str, str]

    def __str__(self) -> str:
        return f"{self.endpoint} {self.name}"

    @property
    def said(self) -> re.Match[str]:
        """Range and default, those of the endpoint where they differ."""
        for part in self.cells["type and range, default"].split("<br>"):
            found = CELL.fullmatch(part)
            assert found, part
            if found["endpoint"] in {None, self.endpoint}:
                return found
        pytest.fail(f"nothing is said of {self}")

    @property
    def range(self) -> str:
        return str(self.said["range"])


def documented() -> Iterator[Row]:
    head: list[str] = []
    for line in (ROOT / "docs/parameters.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if not line.startswith("| "):
            continue
        if "type and range, default" in cells:
            head = cells
        elif cells[0].startswith("`") and len(cells) == len(head) > 0:
            row = dict(zip(head, cells, strict=True))
            for endpoint in READ:
                if endpoint in row:
                    yield Row(endpoint, cells[0].strip("`"), row[endpoint], row)


ROWS = list(documented())
SERVED = [row for row in ROWS if row.status == "served"]
REFUSED = [row for row in ROWS if row.status == "refused"]


def request(row: Row, value: Any) -> dict[str, Any]:
    base = checks.request_with(row.endpoint, row.name, value)
    beside = BESIDE.get(row.name, {})
    if row.endpoint in checks.APIS:
        beside = checks.APIS[row.endpoint].of_chat(beside)
    if row.endpoint in {"chat", "messages"}:
        beside = {name: item for name, item in beside.items() if name != "text"}
    return {**base, **beside, row.name: value}


def complaints(row: Row, value: Any) -> list[str]:
    """The parameters that are refused where one has a value."""
    try:
        READ[row.endpoint](request(row, value))
    except InvalidRequestError as error:
        return [re.split(r"[.\[]", violation.field)[0] for violation in error.violations]
    return []


def item(kind: str, number: int) -> Any:
    """An item of an array, by its name in the docs."""
    function = {**WEATHER["function"], "name": f"f{number}"}  # type: ignore[dict-item]
    return {
        "strings": "x",
        "prompts": "x",
        "inputs": "x",
        "documents": "x",
        "token ids": 1,
        "objects": {},
        "messages": USER,
        "items": USER,
        "system messages": {**USER, "role": "system"},
        "text blocks": {"type": "text", "text": "x"},
        "functions": {"type": "function", "function": function},
        "functions with an input_schema": with_input_schema({"function": function}),
        "tools": {"type": "function", **function},
        "bare functions": function,
    }[kind]


def items(kind: str, count: int) -> list[Any]:
    return [item(kind, number) for number in range(count)]


def probes(said: str) -> tuple[list[Any], list[Any]]:
    """Values at the bounds that a range gives, and just outside."""
    if found := INTEGER.fullmatch(said):
        least, most = int(found["least"]), int(found["most"])
        apart = [int(found["apart"])] if found["apart"] else []
        return [least, most, *apart], [least - 1, most + 1, *(end - 1 for end in apart), 1.5]
    if found := NUMBER.fullmatch(said):
        least, most = float(found["least"]), float(found["most"])
        inside = [
            least + STEP if found["above"] else least,
            most - STEP if found["below"] else most,
        ]
        outside = [
            least if found["above"] else least - STEP,
            most if found["below"] else most + STEP,
        ]
        return inside, [*outside, "1"]
    if found := ARRAY.fullmatch(said):
        least, most, kind = int(found["least"]), int(found["most"]), found["item"]
        fewer = [items(kind, least - 1)] if least else []
        text = ["x"] if found["string"] else []
        return [items(kind, least), items(kind, most), *text], [*fewer, items(kind, most + 1), 1]
    if found := OBJECT.fullmatch(said):
        fewest, entries = int(found["fewest"]), int(found["entries"])
        least, most = int(found["least"]), int(found["most"])
        numbers = {str(key): least for key in range(entries)}
        many = [dict.fromkeys(list(numbers)[:fewest], least), numbers, {"0": most}]
        return many, [{**numbers, str(entries): 0}, {"0": least - STEP}, {"0": most + STEP}, 1]
    if said.startswith("one of "):
        return said.removeprefix("one of ").split(", "), ["other", 1]
    return {
        "tool choice": (["none", "auto"], ["other", 1, {}, {"type": "custom"}]),
        "older choice": (["none", "auto"], ["required", 1, {}]),
        "object with a kind of choice": (
            [{"type": "auto"}, {"type": "none"}],
            ["auto", 1, {}, {"type": "required"}],
        ),
        "object with a kind of thinking": (
            [{"type": "adaptive"}, {"type": "enabled", "budget_tokens": 1}],
            [True, {}, {"type": "enabled"}, {"type": "x"}],
        ),
        "object with a schema": (
            [{"type": "json_schema", "schema": SCHEMA}],
            ["x", {}, {"type": "json_schema"}, {"type": "json_object"}],
        ),
        "boolean": ([True, False], [1, "true"]),
        "string": (["x"], [1]),
        "object": ([{}], ["x", []]),
        "object of 0 to 16 strings": (
            [{}, {str(key): "" for key in range(16)}],
            ["x", {"a": 1}, {str(key): "" for key in range(17)}],
        ),
        "array of names": ([[], [LOGPROBS]], ["x", ["other"], [1]]),
        "object with a type": ([{"type": "text"}], ["x", [], {}, {"type": "x"}]),
        "object with a constraint": ([{"regex": "x"}], ["x", [], {}, {"regex": ""}]),
        "predicted content": (
            [{"type": "content", "content": content} for content in ("x", [])],
            ["x", [], {}, {"type": "content"}, {"type": "text", "content": "x"}],
        ),
        "structural tag": ([TAG], ["x", [], {}, {"type": "structural_tag"}]),
    }[said]


def test_a_parameter_has_one_row() -> None:
    named = [(row.endpoint, row.name) for row in ROWS]

    assert len(named) == len(set(named))
    assert {row.status for row in ROWS} == {"served", "accepted", "refused", "—"}


@pytest.mark.parametrize("endpoint", READ)
def test_every_known_parameter_has_its_row_and_no_other_is_known(endpoint: str) -> None:
    known = checks.KNOWN[endpoint]
    for status in ("served", "accepted", "refused"):
        rows = {row.name for row in ROWS if (row.endpoint, row.status) == (endpoint, status)}
        assert rows == set(getattr(known, status)), status


@pytest.mark.parametrize("endpoint", SDK)
def test_openais_column_is_what_its_sdk_takes(endpoint: str) -> None:
    columns = {row.name: row.cells["OpenAI"] for row in ROWS if row.endpoint == endpoint}
    takes = SDK[endpoint]

    assert {name for name, said in columns.items() if said in {"yes", endpoint}} >= takes
    # In the table of both, a chat's parameters are no text completion's, and the other way round.
    table = next(row.cells for row in ROWS if row.endpoint == endpoint)
    others = set().union(*(SDK[other] for other in SDK if other in table))
    assert {name for name, said in columns.items() if said != "—"} == others
    assert not {name for name in takes if columns[name] not in {"yes", endpoint}}


def test_anthropics_column_is_what_its_sdk_takes() -> None:
    said = {row.name: row.cells["Anthropic"] for row in ROWS if row.endpoint == "messages"}
    takes = {*message_create_params.MessageCreateParamsBase.__annotations__, "stream"}
    tries = {*beta_message_create_params.MessageCreateParamsBase.__annotations__}

    assert {name for name, column in said.items() if column == "yes"} == takes
    assert {name for name, column in said.items() if column == "beta"} == tries - takes


@pytest.mark.parametrize("endpoint", KINDS)
def test_every_field_of_the_contract_has_a_row(endpoint: str) -> None:
    rows = {row.name for row in ROWS if row.endpoint == endpoint and row.status != "—"}

    assert set(KINDS[endpoint].DESCRIPTOR.fields_by_name) <= rows


@pytest.mark.parametrize("row", SERVED, ids=str)
def test_the_documented_range_is_the_codes(row: Row) -> None:
    inside, outside = probes(row.range)
    for value in inside:
        assert complaints(row, value) == [], value
    for value in outside:
        assert row.name in complaints(row, value), value


def resolved(name: str) -> Any:
    """What a parameter is part of, where neither the request nor the model says anything."""
    defaults = GenerationDefaults()
    if hasattr(SamplingParams(), name):
        return resolve_sampling(SamplingParams(seed=1), defaults)
    options = GenerationOptions()
    size = 0 if name == "assistant_confidence_threshold" else options.max_ngram_size
    threshold = options.assistant_confidence_threshold
    own = Speculation(options.num_assistant_tokens, size, threshold)
    return resolve_speculation(SpeculationParams(), defaults, own)


@pytest.mark.parametrize("row", SERVED, ids=str)
def test_the_documented_default_is_the_codes(row: Row) -> None:
    said = row.said
    absent = {name: item for name, item in request(row, None).items() if name != row.name}
    if said["required"]:
        assert row.name in complaints(row, None)
    elif said["form"]:
        complaint = {
            "One of three": "Exactly one of text, prompt and messages",
            "One of four pairs": r"^\w+ is required",
        }[said["form"]]
        with pytest.raises(InvalidRequestError, match=complaint):
            READ[row.endpoint](absent)
    elif said["default"] is None:
        READ[row.endpoint](absent)
    elif said["default"].startswith("the model's, else "):
        ours = said["default"].removeprefix("the model's, else ")
        if row.name not in {"max_tokens", "max_output_tokens"}:
            assert getattr(resolved(row.name), row.name) == float(ours)
            assert hasattr(GenerationDefaults(), row.name)
    else:
        default = said["default"].partition(" ")[0]
        value = (
            default
            if default.isalpha() and default not in {"true", "false"}
            else json.loads(default)
        )
        assert READ[row.endpoint](request(row, value)) == READ[row.endpoint](absent)


def test_the_documented_keys_of_generation_config_are_those_that_count() -> None:
    text = (ROOT / "docs/parameters.md").read_text()
    [sentence] = re.findall(r"From that file ovchat reads (.+?)\. ", text, re.DOTALL)
    read = {field.name for field in dataclasses.fields(GenerationDefaults)}

    documented_keys = set(re.findall(r"`(\w+)`", sentence))

    assert documented_keys == read - {"max_tokens"} | {"max_new_tokens", "eos_token_id"}


@pytest.mark.parametrize("row", REFUSED, ids=str)
def test_the_documented_neutral_values_are_the_codes(row: Row) -> None:
    said = row.range
    neutral = [] if said == "none" else said.removeprefix("only ").split(" or ")

    code = checks.KNOWN[row.endpoint].refused[row.name]

    assert [json.loads(value) for value in neutral] == list(code)


@pytest.mark.parametrize("row", [row for row in ROWS if row.status == "accepted"], ids=str)
def test_an_accepted_parameter_may_have_any_value(row: Row) -> None:
    assert row.range == "any value"


@pytest.mark.parametrize("row", SERVED, ids=str)
def test_every_served_parameter_has_its_cases(row: Row) -> None:
    effects = {(effect.endpoint, effect.name) for effect in checks.EFFECTS}
    bounds = {(bound.endpoint, bound.name) for bound in checks.BOUNDS}

    # Of the server's making: see tests/rest/test_openai_responses.py.
    assert (row.endpoint, row.name) in effects or row.name == "previous_response_id"
    assert checks.wrong_types(row.endpoint, row.name)
    unbounded = row.range in {"boolean", "string", "object"}
    assert unbounded or (row.endpoint, row.name) in bounds


def test_every_parameter_without_effect_has_its_cases() -> None:
    assert {name for _, name in checks.ACCEPTED} == set(values.ACCEPTED)
    assert {name for _, name in checks.REFUSED} == set(values.REFUSED)
    for endpoint, name in checks.REFUSED:
        refused, neutral = values.REFUSED[name]
        assert refused
        assert neutral == checks.KNOWN[endpoint].refused[name]
