"""The form of answers, in OpenAI's, OVMS's and vLLM's words."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.structured_output import QUESTION, SCHEMA, TAG, assert_valid

if TYPE_CHECKING:
    import httpx

MESSAGES = [{"role": "user", "content": QUESTION}]
FORMS: dict[str, tuple[dict[str, Any], str]] = {
    "regex": ({"structured_outputs": {"regex": "[0-9]{2}-[a-z]{2}"}}, "[0-9]{2}-[a-z]{2}"),
    "choice": ({"structured_outputs": {"choice": ["yes", "no"]}}, "yes|no"),
    "grammar": ({"structured_outputs": {"grammar": 'root ::= "x" | "yy"'}}, "x|yy"),
    "tag": ({"structured_outputs": {"structural_tag": json.dumps(TAG)}}, "[ab]{3}"),
    "guided_regex": ({"guided_regex": "[0-9]{2}"}, "[0-9]{2}"),
    "guided_choice": ({"guided_choice": ["yes", "no"]}, "yes|no"),
    "guided_grammar": ({"guided_grammar": 'root ::= "x" | "yy"'}, "x|yy"),
    "structural_tag": ({"structural_tag": TAG}, "[ab]{3}"),
    "response_format's tag": ({"response_format": TAG}, "[ab]{3}"),
    "OVMS's native format": ({"response_format": TAG["format"]}, "[ab]{3}"),
}
SCHEMAS: dict[str, dict[str, Any]] = {
    "json_schema": {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "person", "strict": True, "schema": SCHEMA},
        }
    },
    "json": {"structured_outputs": {"json": SCHEMA}},
    "json as text": {"structured_outputs": {"json": json.dumps(SCHEMA)}},
    "guided_json": {"guided_json": SCHEMA},
    "guided_json as text": {"guided_json": json.dumps(SCHEMA)},
}


def body(**fields: Any) -> dict[str, Any]:
    """Without reasoning: at some temperature the demo model may never end it."""
    return {
        "model": "demo",
        "messages": MESSAGES,
        "max_tokens": 200,
        "temperature": 1,
        "chat_template_kwargs": {"enable_thinking": False},
        **fields,
    }


async def streamed(http: httpx.AsyncClient, request: dict[str, Any]) -> str:
    response = await http.post("/v3/chat/completions", json={**request, "stream": True})
    lines = [line[6:] for line in response.text.split("\n\n") if line.startswith("data: ")]
    assert lines.pop() == "[DONE]"
    chunks = [json.loads(line) for line in lines]
    return "".join(
        choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"]
    )


@pytest.mark.parametrize("form", FORMS)
async def test_answers_have_the_form_whole_and_streamed(http: httpx.AsyncClient, form: str) -> None:
    fields, pattern = FORMS[form]

    response = await http.post("/v3/chat/completions", json=body(**fields))

    assert response.status_code == 200, response.text
    assert re.fullmatch(pattern, response.json()["choices"][0]["message"]["content"])
    assert re.fullmatch(pattern, await streamed(http, body(**fields)))


@pytest.mark.parametrize("form", SCHEMAS)
async def test_json_follows_its_schema_whole_and_streamed(
    http: httpx.AsyncClient, form: str
) -> None:
    request = body(**SCHEMAS[form]) | {"temperature": 0}

    response = await http.post("/v3/chat/completions", json=request)

    [choice] = response.json()["choices"]
    assert choice["finish_reason"] == "stop"
    assert_valid(choice["message"]["content"], SCHEMA)
    assert list(json.loads(choice["message"]["content"])) == ["name", "age", "city"]
    assert await streamed(http, request) == choice["message"]["content"]


async def test_any_object_is_an_object(http: httpx.AsyncClient) -> None:
    request = body(response_format={"type": "json_object"})

    response = await http.post("/v3/chat/completions", json=request)

    assert response.json()["choices"][0]["message"]["content"].startswith("{")


async def test_text_completions_have_the_form(http: httpx.AsyncClient) -> None:
    request = {"model": "demo", "prompt": "The colour is", "guided_regex": "[a-z]{5}"}

    response = await http.post("/v3/completions", json=request)

    assert re.fullmatch("[a-z]{5}", response.json()["choices"][0]["text"])


@pytest.mark.parametrize(
    ("fields", "param", "part"),
    [
        ({"guided_regex": "[a"}, "guided_regex", "Unclosed '['"),
        ({"guided_json": {"type": "nonsense"}}, "guided_json", "unknown type 'nonsense'"),
        ({"guided_json": "{"}, "guided_json", "JSON in a string"),
        ({"structured_outputs": {"json": "["}}, "structured_outputs.json", "JSON in a string"),
        ({"guided_regex": "(" * 20_000 + "a" + ")" * 20_000}, "guided_regex", "nest parentheses"),
        ({"guided_regex": "((a{1000}){1000}){1000}"}, "guided_regex", "cannot be enforced: it"),
        ({"guided_regex": "a", "guided_choice": ["b"]}, "guided_choice", "guided_regex and"),
        ({"guided_regex": "a", "ignore_eos": True}, "ignore_eos", "with guided_regex"),
        ({"guided_regex": "a", "best_of": 2}, "best_of", "with guided_regex"),
    ],
)
async def test_what_cannot_be_enforced_is_refused_by_name(
    http: httpx.AsyncClient, fields: dict[str, Any], param: str, part: str
) -> None:
    response = await http.post("/v3/chat/completions", json=body(**fields))

    assert response.status_code == 400
    error = response.json()["error"]
    assert error["param"] == param
    assert part in error["message"]
    assert "/home" not in error["message"]


async def test_a_schema_too_deep_to_parse_is_refused(http: httpx.AsyncClient) -> None:
    schema = '{"type":"array","items":' * 3000 + "{}" + "}" * 3000
    text = json.dumps(body())[:-1] + f', "guided_json": {schema}}}'

    response = await http.post(
        "/v3/chat/completions", content=text, headers={"content-type": "application/json"}
    )

    assert response.status_code == 400
