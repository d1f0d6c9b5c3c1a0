"""Prompts are those of Hugging Face's transformers, byte for byte, over the templates of families.

transformers is fed what our callers' messages become on purpose: arguments of calls as objects,
no content as an empty one, developers as systems where a template does not know them.
"""

from __future__ import annotations

import functools
import itertools
import json
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jinja2 import TemplateError
from transformers.utils import chat_template_utils

from ovchat_server.chat import template_sandbox
from ovchat_server.chat.template import ChatTemplate
from ovchat_server.domain.chat import Message, PromptEnding, Role, Tool, ToolCall
from ovchat_server.domain.content import Image
from ovchat_server.domain.errors import InvalidRequestError

if TYPE_CHECKING:
    from ovchat_server.domain.content import Content

TEMPLATES = Path(__file__).parent.parent / "data" / "templates"
FAMILIES = sorted(path.stem for path in TEMPLATES.glob("*.jinja"))
KNOW_DEVELOPERS = {"gemma-4", "gpt-oss"}
KNOW_PARTS_ALONE = {"llava-next", "smolvlm"}
# What they write for an image; the others know only texts.
IMAGE_TAGS = {
    "gemma-3": "<start_of_image>",
    "gemma-4": "<|image|>",
    "kimi-k2": "<|media_start|>image<|media_content|><|media_pad|><|media_end|>\n",
    "lfm2.5": "<image>",
    "llama-3.2-vision": "<|image|>",
    "llava-1.5": "<image>\n",
    "llava-next": "<image>\n",
    "ministral-3": "[IMG]",
    "mistral-small-3.2": "[IMG]",
    "pixtral": "[IMG]",
    "qwen2.5-vl": "<|vision_start|><|image_pad|><|vision_end|>",
    "qwen3-vl": "<|vision_start|><|image_pad|><|vision_end|>",
    "qwen3.5": "<|vision_start|><|image_pad|><|vision_end|>",
    "smolvlm": "<image>",
}
TOKENS = {"bos_token": "<|bos|>", "eos_token": "<|eos|>", "pad_token": "<|pad|>"}


@dataclass(frozen=True)
class Case:
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    documents: tuple[dict[str, Any], ...] = ()
    arguments: dict[str, Any] = field(default_factory=dict)


class FrozenDatetime(datetime):
    @classmethod
    def now(cls, tz: Any = None) -> datetime:
        return datetime(2026, 2, 3, 4, 5, 6, tzinfo=tz)


@pytest.fixture(autouse=True)
def _one_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (chat_template_utils, template_sandbox):
        monkeypatch.setattr(module, "datetime", FrozenDatetime)


@functools.cache
def source(family: str) -> str:
    return (TEMPLATES / f"{family}.jinja").read_text(encoding="utf-8")


@functools.cache
def template(family: str) -> ChatTemplate:
    return ChatTemplate(source(family), TOKENS)


def ours(family: str, case: Case, ending: PromptEnding) -> str | InvalidRequestError:
    try:
        return template(family).render(
            case.messages, case.tools, case.arguments, documents=case.documents, ending=ending
        )
    except InvalidRequestError as error:
        return error


def theirs(family: str, case: Case, ending: PromptEnding) -> str | Exception:
    try:
        prompts, _ = chat_template_utils.render_jinja_template(
            conversations=[[as_hugging_face_has_it(item, family) for item in case.messages]],
            tools=[tool_as_hugging_face_has_it(tool) for tool in case.tools] or None,
            documents=list(case.documents) or None,
            chat_template=source(family),
            continue_final_message=ending is PromptEnding.FINAL_MESSAGE,
            add_generation_prompt=ending is PromptEnding.ASSISTANT_TURN,
            **(TOKENS | case.arguments),
        )
    except Exception as error:  # noqa: BLE001  whatever a template does
        return error
    else:
        return prompts[0]


def as_hugging_face_has_it(message: Message, family: str) -> dict[str, Any]:
    developer = "developer" if family in KNOW_DEVELOPERS else "system"
    fields: dict[str, Any] = {
        "role": developer if message.role is Role.DEVELOPER else message.role.value,
        "content": content(message, family),
        "name": message.name,
        "tool_calls": [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": as_object(call.arguments)},
            }
            for call in message.tool_calls
        ]
        or None,
        "tool_call_id": message.tool_call_id,
        "reasoning_content": message.reasoning_content,
    }
    return {name: value for name, value in fields.items() if value is not None}


def content(message: Message, family: str) -> str | list[dict[str, str]]:
    shows_images = message.images and family in IMAGE_TAGS
    if family not in KNOW_PARTS_ALONE and not shows_images:
        return message.text
    return [
        {"type": "text", "text": part} if isinstance(part, str) else {"type": "image"}
        for part in message.content
    ]


def as_object(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def tool_as_hugging_face_has_it(tool: Tool) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": tool.strict,
    }
    given = {name: value for name, value in function.items() if value is not None}
    return {"type": "function", "function": given}


def called(*calls: tuple[str, str], said: Content = (), **fields: Any) -> Message:
    # Nine letters and digits: Mistral's templates take no other id.
    made = (ToolCall(f"call0000{n}", name, text) for n, (name, text) in enumerate(calls))
    return Message(Role.ASSISTANT, said, tool_calls=tuple(made), **fields)


SYSTEM = Message(Role.SYSTEM, ("You are brief.",))
USER = Message(Role.USER, ("What is the weather in Zürich?",))
ASSISTANT = Message(Role.ASSISTANT, ("It is sunny.",))
THINKING = Message(Role.ASSISTANT, ("Sunny, I guess.",), reasoning_content="Hm, <b>\nlet me think.")
CALL = called(("get_weather", '{"unit": "°C", "city": "Zürich", "days": 3, "now": true}'))
RESULT = Message(Role.TOOL, ('{"sky": "clear"}',), tool_call_id="call00000")
TOOLS = (
    Tool(
        "get_weather",
        "Weather of a <city> & 'more' 🌦",
        {
            "type": "object",
            "properties": {
                "unit": {"type": "string", "enum": ["°C", "°F"], "default": "°C"},
                "city": {"type": "string", "description": 'A "city", <b>not</b> a land'},
                "days": {"type": ["integer", "null"], "minimum": 1},
                "now": {"type": "boolean", "default": False},
                "area": {
                    "type": "object",
                    "properties": {"z": {"type": "number"}, "a": {"type": "array", "items": {}}},
                    "required": ["z"],
                },
                "layers": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["city", "unit"],
        },
        strict=True,
    ),
    Tool("now", "The time", {"type": "object", "properties": {}}),
)
SIMPLE_TOOLS = (
    Tool(
        "get_weather",
        "Weather of a city",
        {
            "type": "object",
            "properties": {
                "unit": {"type": "string", "description": "°C or °F"},
                "city": {"type": "string", "description": "Its name"},
            },
            "required": ["city"],
        },
    ),
)
BARE_TOOLS = (Tool("now", None, None), Tool("later", "", None))

CASES = {
    "user": Case((USER,)),
    "system": Case((SYSTEM, USER)),
    "developer": Case((Message(Role.DEVELOPER, ("You are brief.",)), USER)),
    "system and developer": Case((SYSTEM, Message(Role.DEVELOPER, ("Use °C.",)), USER)),
    "late system": Case((USER, ASSISTANT, SYSTEM, USER)),
    "turns": Case((SYSTEM, USER, ASSISTANT, USER, ASSISTANT, USER)),
    "answered": Case((USER, ASSISTANT)),
    "system and answered": Case((SYSTEM, USER, ASSISTANT, USER, ASSISTANT)),
    "two users": Case((USER, USER)),
    "assistant first": Case((ASSISTANT, USER)),
    "only a system": Case((SYSTEM,)),
    "reasoning": Case((USER, THINKING)),
    "old reasoning": Case((USER, THINKING, USER)),
    "reasoning in the answer": Case(
        (USER, Message(Role.ASSISTANT, ("<think>\nHm\n</think>\n\nYes",)))
    ),
    "tools": Case((SYSTEM, USER), TOOLS),
    "tools, no system": Case((USER,), TOOLS),
    "simple tools": Case((SYSTEM, USER), SIMPLE_TOOLS),
    "simple tools, used": Case((USER, CALL, RESULT, ASSISTANT, USER), SIMPLE_TOOLS),
    "bare tools": Case((USER,), BARE_TOOLS),
    "call": Case((USER, CALL), TOOLS),
    "result": Case((USER, CALL, RESULT), TOOLS),
    "result, tools forgotten": Case((USER, CALL, RESULT)),
    "answer from a result": Case((SYSTEM, USER, CALL, RESULT, ASSISTANT), TOOLS),
    "answer, then a user": Case((SYSTEM, USER, CALL, RESULT, ASSISTANT, USER), TOOLS),
    "two calls": Case(
        (
            USER,
            called(("get_weather", '{"z": "<&>", "a": [1, null]}'), ("now", "{}")),
            RESULT,
            Message(Role.TOOL, ("42 & <b>",), tool_call_id="call00001", name="now"),
        ),
        TOOLS,
    ),
    "call with content": Case((USER, called(("now", "{}"), said=("Let me see.",))), TOOLS),
    "call with reasoning": Case(
        (USER, called(("now", "{}"), reasoning_content="I should look."), RESULT), TOOLS
    ),
    "call with everything": Case(
        (USER, called(("now", "{}"), said=("Look:",), reasoning_content="Hm."), RESULT), TOOLS
    ),
    "arguments that are no object": Case((USER, called(("now", "f(1)")), RESULT), TOOLS),
    "unasked result": Case((USER, RESULT), TOOLS),
    "documents": Case((USER,), documents=({"title": "Zürich", "text": "Is <b>sunny</b> 🌞"},)),
    "documents and tools": Case((USER,), TOOLS, ({"title": "Zürich", "text": "Is sunny"},)),
    "names": Case(
        (Message(Role.USER, ("Hi",), name="Ann"), Message(Role.ASSISTANT, ("Yo",), name="Al"))
    ),
    "thinks": Case((SYSTEM, USER), arguments={"enable_thinking": True, "thinking": True}),
    "does not think": Case((USER,), arguments={"enable_thinking": False, "thinking": False}),
    "does not think on": Case((USER, ASSISTANT), arguments={"enable_thinking": False}),
    "effort": Case((USER,), arguments={"reasoning_effort": "high", "thinking_budget": 512}),
    "no thought with tools": Case((USER, CALL, RESULT), TOOLS, (), {"enable_thinking": False}),
    "other tokens": Case((USER,), arguments={"bos_token": "<other>", "unknown": [1, {"a": None}]}),
    "white space": Case(
        (Message(Role.USER, (" \n a\t\u00a0",)), Message(Role.ASSISTANT, ("\n b \n\n",)))
    ),
    "only white space": Case((USER, Message(Role.ASSISTANT, ("  ",)))),
    "no text": Case((SYSTEM, Message(Role.USER, ("",)))),
    "marks of callers' control tokens": Case(
        (
            Message(Role.USER, ("<\ufdd0|im_end|>",)),
            Message(Role.ASSISTANT, ("a<\ufdd0think>b \ufdd0",)),
        )
    ),
    "unicode": Case(
        (
            Message(Role.USER, ("👩‍👩‍👧 é e\u0301 \u202e \ufeff 𐍈 \x00 <&'\">",)),
            Message(Role.ASSISTANT, ("ﬀ İ",)),
        )
    ),
    "transformers' own mark": Case(
        (Message(Role.USER, ("a CONTINUE_FINAL_MESSAGE_TAG b",)), ASSISTANT)
    ),
    "a template in the text": Case(
        (Message(Role.USER, ("{{ 7 * 7 }}{% raw %} {# #}",)), ASSISTANT)
    ),
}
IMAGES = {
    "image": Case((SYSTEM, Message(Role.USER, (Image(), "What is it?")))),
    "images and texts": Case(
        (
            Message(Role.USER, ("One:", Image(), "Two:", Image(), " and ", Image(), "the same?")),
            ASSISTANT,
            Message(Role.USER, ("And this? ", Image())),
        )
    ),
    "only an image": Case((Message(Role.USER, (Image(),)), ASSISTANT)),
    "image in a result": Case(
        (USER, CALL, Message(Role.TOOL, (Image(), "seen"), tool_call_id="call00000")), TOOLS
    ),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_prompts_are_those_of_hugging_face(family: str) -> None:
    for (name, case), ending in itertools.product((CASES | IMAGES).items(), PromptEnding):
        if ending is PromptEnding.FINAL_MESSAGE and not case.messages[-1].text:
            # transformers continues an empty message too: its prompt hangs on the template alone.
            assert isinstance(ours(family, case, ending), InvalidRequestError)
            continue
        expected, prompt = theirs(family, case, ending), ours(family, case, ending)
        if isinstance(expected, str):
            assert prompt == expected, (name, ending)
        else:
            assert isinstance(prompt, InvalidRequestError), (name, ending, expected)
            if isinstance(expected, TemplateError):
                said = " ".join(str(expected).split())
                assert said[:200] in prompt.message


def test_what_a_template_writes_for_an_image_is_found_out() -> None:
    tags = {family: template(family).image_tag() for family in FAMILIES}
    assert {family: tag for family, tag in tags.items() if tag} == IMAGE_TAGS


def test_every_familys_template_is_compared() -> None:
    assert len(FAMILIES) > 30
    for family in FAMILIES:
        prompts = [theirs(family, case, PromptEnding.ASSISTANT_TURN) for case in CASES.values()]
        # A template that refused everything would be compared with nothing.
        assert any(isinstance(prompt, str) and len(prompt) > 100 for prompt in prompts), family
