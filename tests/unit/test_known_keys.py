"""Nothing is ignored in silence: an unknown key is named wherever in a request it stands."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

import pytest

from ovchat_server.domain.chat_request import read_chat_request
from ovchat_server.domain.embedding_request import read_embedding_request
from ovchat_server.domain.errors import InvalidRequestError
from ovchat_server.domain.rerank_request import read_rerank_request, read_score_request
from ovchat_server.domain.structural_tag import FORMATS
from ovchat_server.domain.text_request import read_text_request
from ovchat_server.domain.tokenization_request import read_detokenize_request, read_tokenize_request
from tests.conftest import ROOT
from tests.structured_output import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

UNKNOWN = "unheard_of"
HINTS = {"prompt_cache_breakpoint": {"mode": "explicit"}, "cache_control": {"type": "ephemeral"}}
FUNCTION = {"name": "f", "description": "", "parameters": SCHEMA, "strict": False}
CALLED = {"name": "f", "arguments": "{}"}
NAMED = {"type": "function", "function": {"name": "f"}}
IMAGE = {"url": "data:,", "detail": "low"}
FILE = {"data": b"GIF89a", "mime_type": "image/gif", "detail": "low"}
MESSAGES = [
    {"role": "user", "content": [{"type": "text", "text": "a", **HINTS}]},
    {"role": "user", "content": [{"type": "image_url", "image_url": IMAGE}]},
    {"role": "user", "content": [{"type": "image", "image": FILE}]},
    {
        "role": "assistant",
        "content": [{"type": "refusal", "refusal": "No", **HINTS}],
        "tool_calls": [{"id": "c", "type": "function", "function": CALLED, "index": 0}],
        "annotations": [{"type": "url_citation"}],
    },
    {"role": "assistant", "function_call": CALLED},
    {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "b"}]},
]
TOOL = {"type": "function", "function": FUNCTION, "defer_loading": False, "cache_control": {}}
CHAT = {"messages": MESSAGES, "tools": [TOOL], "chat_template_kwargs": {}, "documents": [{}]}
FORMS = [
    {"type": "const_string", "value": "a"},
    {"type": "json_schema", "json_schema": SCHEMA},
    {"type": "any_text", "excludes": ["x"]},
    {"type": "or", "elements": [{"type": "regex", "pattern": "a"}]},
    {"type": "grammar", "grammar": 'root ::= "a"'},
    {"type": "qwen_xml_parameter", "json_schema": SCHEMA},
]
TAG = {"type": "tag", "begin": "<a>", "content": {"type": "any_text"}, "end": "</a>"}
ALL_FORMS: dict[str, Any] = {
    "type": "sequence",
    "elements": [
        *FORMS,
        TAG,
        {
            "type": "triggered_tags",
            "triggers": ["<a"],
            "tags": [TAG],
            "excludes": [],
            "at_least_one": False,
            "stop_after_first": False,
        },
        {
            "type": "tags_with_separator",
            "tags": [{name: value for name, value in TAG.items() if name != "type"}],
            "separator": "",
            "at_least_one": False,
            "stop_after_first": False,
        },
    ],
}
OLDER_TAG = {
    "type": "structural_tag",
    "structures": [{"begin": "<a>", "schema": SCHEMA, "end": "</a>"}],
    "triggers": ["<a"],
}
DESCRIBED = {"name": "x", "description": "", "strict": True, "schema": SCHEMA}
CONSTRAINTS: list[dict[str, Any]] = [
    *(
        {"response_format": form}
        for form in (
            {"type": "text"},
            {"type": "json_object"},
            {"type": "json_object", "schema": SCHEMA},
            {"type": "json_schema", "json_schema": DESCRIBED},
            {"type": "json_schema", **DESCRIBED},
            {"type": "structural_tag", "format": ALL_FORMS},
            OLDER_TAG,
            ALL_FORMS,
            *(form for form in ALL_FORMS["elements"] if "json_schema" not in form),
        )
    ),
    {"structured_outputs": {"json": SCHEMA, "disable_fallback": True, "backend": "xgrammar"}},
    {"structured_outputs": {"json_object": True, "disable_any_whitespace": False}},
    {"structured_outputs": {"structural_tag": {"type": "structural_tag", "format": ALL_FORMS}}},
    {"guided_json": SCHEMA},
    {"structural_tag": {"type": "structural_tag", "format": ALL_FORMS}},
    {"structural_tag": OLDER_TAG},
]
BOTH: list[dict[str, Any]] = [
    {"stream": True, "stream_options": {"include_usage": True}},
    {"logit_bias": {"1": 1}},
    *CONSTRAINTS,
]
ALLOWED = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [NAMED]}}
PREDICTED = {"type": "content", "content": [{"type": "text", "text": "a", **HINTS}]}
PROMPTS: list[dict[str, Any]] = [
    CHAT,
    {**CHAT, "tool_choice": NAMED},
    {**CHAT, "tool_choice": ALLOWED},
    {"messages": MESSAGES, "functions": [FUNCTION], "function_call": {"name": "f"}},
]
REQUESTS: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    *((read_chat_request, request) for request in PROMPTS),
    *((read_chat_request, {"messages": MESSAGES, **others}) for others in BOTH),
    (read_chat_request, {"messages": MESSAGES, "prediction": PREDICTED}),
    *((read_text_request, {"prompt": "a", **others}) for others in BOTH),
    *(
        (read_tokenize_request, request)
        for request in ({"text": "a"}, *(prompt for prompt in PROMPTS if "tools" in prompt))
    ),
    (read_detokenize_request, {"tokens": [1]}),
    (read_embedding_request, {"input": ["a", [1]]}),
    (read_rerank_request, {"query": "a", "documents": ["b", {"text": "c"}]}),
    (read_score_request, {"queries": "a", "documents": ["b"]}),
]
TAGS = ("response_format", "structural_tag", "structured_outputs.structural_tag")
# Objects whose keys are the caller's own, and hints that are not looked at.
FREE = {
    "chat_template_kwargs",
    "documents[]",
    "messages[].annotations[]",
    "messages[].content[].cache_control",
    "messages[].content[].prompt_cache_breakpoint",
    "prediction.content[].cache_control",
    "prediction.content[].prompt_cache_breakpoint",
    "tools[].cache_control",
    "tools[].function.parameters",
    "functions[].parameters",
    "response_format.schema",
    "response_format.json_schema.schema",
    "structured_outputs.json",
    "guided_json",
    "response_format.elements[].json_schema",
    *(f"{tag}.format.elements[].json_schema" for tag in TAGS),
    *(f"{tag}.structures[].schema" for tag in TAGS),
}


def with_unknown(value: Any, unknown: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """A value with an unknown key in each of its objects in turn, after the path of that object."""
    if isinstance(value, dict):
        yield path, {**value, UNKNOWN: unknown}
        for name, child in value.items():
            inside = f"{path}.{name}" if path else name
            for found, changed in with_unknown(child, unknown, inside):
                yield found, {**value, name: changed}
    elif isinstance(value, list):
        for index, child in enumerate(value):
            for found, changed in with_unknown(child, unknown, f"{path}[{index}]"):
                yield found, [*value[:index], changed, *value[index + 1 :]]


def is_free(path: str, read: Callable[..., Any]) -> bool:
    """Whether an object is one of FREE, or in one."""
    if read is read_rerank_request:
        # Its documents are not those that a template is handed.
        return False
    plain = re.sub(r"\[\d+\]", "[]", path)
    return any(plain == free or plain.startswith((f"{free}.", f"{free}[")) for free in FREE)


@pytest.mark.parametrize(("read", "request_"), REQUESTS)
def test_requests_of_known_keys_have_none_that_is_unknown(
    read: Callable[..., Any], request_: dict[str, Any]
) -> None:
    assert read(request_, strict=True).ignored == ()


@pytest.mark.parametrize("unknown", [1, None])
@pytest.mark.parametrize(("read", "request_"), REQUESTS)
def test_an_unknown_key_is_named_in_whatever_object_it_stands(
    read: Callable[..., Any], request_: dict[str, Any], unknown: int | None
) -> None:
    for path, changed in with_unknown(request_, unknown):
        if path == "logit_bias":
            # Its keys are tokens, and this is none.
            continue
        named = f"{path}.{UNKNOWN}".removeprefix(".")
        if is_free(path, read):
            assert read(changed, strict=True).ignored == (), path
            continue
        assert read(changed).ignored == (named,)
        with pytest.raises(InvalidRequestError) as caught:
            read(changed, strict=True)
        assert [(str(item.field), item.code) for item in caught.value.violations] == [
            (named, "unknown_parameter")
        ]


@pytest.mark.parametrize(
    "fields",
    [
        {"response_format": {"type": "text", "json_schema": None, "schema": None}},
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "a", "schema": None},
                "schema": SCHEMA,
            }
        },
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"schema": SCHEMA},
                "schema": SCHEMA,
            }
        },
        {"tools": [TOOL], "tool_choice": {**NAMED, "allowed_tools": None}},
    ],
)
def test_a_null_is_absent_and_the_same_schema_is_one(fields: dict[str, Any]) -> None:
    read = read_chat_request({"messages": MESSAGES, **fields}, strict=True)
    assert read.ignored == ()


def test_what_sdks_add_to_a_message_that_is_given_back_is_known() -> None:
    # OpenAI's has parsed arguments and content, LiteLLM keeps what else the provider said.
    more = {"provider_specific_fields": {"refusal": None}}
    call = {"id": "c", "type": "function", "function": {**CALLED, "parsed_arguments": {}}, **more}
    given_back = {
        "role": "assistant",
        "content": "",
        "parsed": {"a": 1},
        "tool_calls": [call],
        **more,
    }
    result = {"role": "tool", "tool_call_id": "c", "content": "b"}
    read = read_chat_request({"messages": [*MESSAGES, given_back, result]}, strict=True)
    assert read.ignored == ()


def test_the_requests_here_have_all_objects_that_are_read() -> None:
    read = {
        node.args[0].value
        for file in (ROOT / "server/ovchat_server/domain").glob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in {"object", "objects", "json_object"}
        and isinstance(node.args[0], ast.Constant)
    }
    paths = [path for _, request in REQUESTS for path, _ in with_unknown(request, 1)]
    assert {"messages", "response_format", "tags"} < read
    assert read <= set(re.findall(r"\w+", " ".join(paths)))


def test_the_requests_here_have_all_formats_of_structural_tags() -> None:
    assert {form["type"] for form in ALL_FORMS["elements"]} | {"sequence", "regex"} == {*FORMATS}
