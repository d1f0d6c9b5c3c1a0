"""What the parameters do that belong to one endpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.parameters.case import Effect, Fields, of_both, said, written
from tests.parameters.generation import COUNT, GREET, becomes

if TYPE_CHECKING:
    from tests.parameters.answers import Answer, Tokens

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
USER = {"role": "user", "content": "Hi there!"}
# The answer goes on with what the assistant began to say.
BEGUN: Fields = {
    **GREET[0],
    "messages": [USER, {"role": "assistant", "content": "Hello! How"}],
}
SUM = said("17 + 25?", max_tokens=100)
TEXT: Fields = {"model": "demo", "text": "Hello there"}
PAIR: Fields = {"model": "demo", "text": ["Hello there", "a"], "max_length": 4}
MESSAGES: Fields = {"model": "demo", "messages": [USER]}
DOCUMENTS = {"documents": [{"text": "x"}, {"text": "y"}]}


def _empty(content: Fields) -> list[Fields]:
    """A conversation in which everybody once says nothing, as `content` has it."""
    silent: list[Fields] = [
        {"role": "system"},
        {"role": "user"},
        {"role": "assistant"},
        {"role": "tool", "tool_call_id": "call1"},
    ]
    return [*({**message, **content} for message in silent), USER]


def _thinks_no_more(without: Answer, given: Answer) -> bool:
    return (
        "carry" in without.choices[0].reasoning
        and given.choices[0].reasoning == ""
        and given.text == without.text == "17 + 25 = 42"
    )


def _thinks_less(without: Answer, given: Answer) -> bool:
    whole, cut = without.choices[0].reasoning, given.choices[0].reasoning
    return whole.startswith(cut) and 0 < len(cut) < len(whole) and bool(given.text)


def _calls(answer: Answer) -> list[list[str]]:
    return answer.choices[0].calls


def _count(without: Tokens, given: Tokens) -> tuple[int, int]:
    """Tokens without and with the parameter."""
    return (sum(map(len, without.sequences)), sum(map(len, given.sequences)))


def _fewer(without: Tokens, given: Tokens) -> bool:
    before, after = _count(without, given)
    return after < before


def _more(without: Tokens, given: Tokens) -> bool:
    return _fewer(given, without)


def _swapped(without: Tokens, given: Tokens) -> bool:
    """Padding on the other side."""
    [before, after] = [tokens.sequences[1] for tokens in (without, given)]
    return before[0] == after[-1] and before[1:] == after[:-1] == [before[-1]] * 3


CHAT_AND_TEXT: list[Effect] = [
    *of_both("model", GREET, {"model": "successor"}, lambda a, b: a.text != b.text),
]

CHAT: list[Effect] = [
    Effect(
        "chat",
        "messages",
        GREET[0],
        {"messages": [{"role": "user", "content": "What is 17 + 25?"}], "max_tokens": 100},
        becomes("Hello! How can I help you?", "17 + 25 = 42"),
    ),
    *(
        Effect(
            "chat",
            "messages",
            {**GREET[0], "messages": _empty({"content": ""})},
            {"messages": _empty(content)},
            lambda without, given: (
                (given.text, given.prompt_tokens) == (without.text, without.prompt_tokens)
            ),
            f"no content: {content}",
        )
        for content in (
            {},
            {"content": None},
            {"content": []},
            {"content": [{"type": "text", "text": ""}]},
        )
    ),
    Effect(
        "chat",
        "tools",
        said("What is the weather in Paris?"),
        {"tools": [WEATHER]},
        lambda without, given: (
            not _calls(without)
            and _calls(given) == [["get_weather", '{"city": "Paris"}']]
            and given.choices[0].finish == "tool_calls"
        ),
    ),
    *(
        Effect(
            "chat",
            name,
            said("What is the weather in Paris?"),
            {name: []},
            lambda without, given: (
                (given.text, given.prompt_tokens) == (without.text, without.prompt_tokens)
            ),
            "of which there are none",
        )
        for name in ("tools", "functions")
    ),
    Effect(
        "chat",
        "tool_choice",
        said("What is the weather in Paris?", tools=[WEATHER]),
        {"tool_choice": "none"},
        lambda without, given: (
            _calls(without) and not _calls(given) and given.prompt_tokens < without.prompt_tokens
        ),
    ),
    Effect(
        "chat",
        "tool_choice",
        said("Hi there!", tools=[WEATHER]),
        {"tool_choice": "required", "max_tokens": 200},
        lambda without, given: (
            not _calls(without) and [name for [name, _] in _calls(given)][:1] == ["get_weather"]
        ),
        "required",
    ),
    Effect(
        "chat",
        "parallel_tool_calls",
        said("What is the weather in Paris and in Rome?", tools=[WEATHER], max_tokens=100),
        {"parallel_tool_calls": False},
        lambda without, given: _calls(given) == _calls(without)[:1] != _calls(without),
    ),
    Effect(
        "chat",
        "functions",
        said("What is the weather in Paris?"),
        {"functions": [WEATHER["function"]]},
        lambda without, given: not _calls(without) and len(_calls(given)) == 1,
    ),
    Effect(
        "chat",
        "function_call",
        said("What is the weather in Paris?", functions=[WEATHER["function"]]),
        {"function_call": "none"},
        lambda without, given: len(_calls(without)) == 1 and not _calls(given),
    ),
    Effect(
        "chat",
        "agent_format",
        said("Hi there!", tools=[WEATHER]),
        {"agent_format": "qwen3"},
        # What it does to calls is not the same streamed and not: see test_tool_choice.py.
        lambda without, given: given.text == without.text,
    ),
    Effect(
        "chat",
        "include_reasoning",
        SUM,
        {"include_reasoning": False},
        lambda without, given: (
            without.choices[0].reasoning
            and not given.choices[0].reasoning
            and given.text == without.text
        ),
    ),
    Effect("chat", "reasoning_effort", SUM, {"reasoning_effort": "none"}, _thinks_no_more),
    Effect("chat", "thinking_token_budget", SUM, {"thinking_token_budget": 9}, _thinks_less),
    Effect(
        "chat",
        "thinking_token_budget",
        {**SUM, "n": 2},
        {"thinking_token_budget": 0},
        lambda without, given: (
            all("carry" in choice.reasoning for choice in without.choices)
            and all(choice.text and not choice.reasoning for choice in given.choices)
        ),
        "0 closes it at once",
    ),
    Effect(
        "chat",
        "thinking_token_budget",
        {**SUM, "reasoning_effort": "low", "structured_outputs": {"regex": "[0-9]{2}"}},
        {"thinking_token_budget": 9},
        _thinks_less,
        "before a form",
    ),
    Effect(
        "chat",
        "thinking_token_budget",
        GREET[0],
        {"thinking_token_budget": 0},
        becomes("Hello! How can I help you?", "Hello! How can I help you?"),
        "where there is none",
    ),
    Effect(
        "chat",
        "reasoning_effort",
        {**SUM, "reasoning_effort": "none"},
        {"reasoning_effort": "high"},
        lambda without, given: _thinks_no_more(given, without),
        "high",
    ),
    Effect(
        "chat",
        "chat_template_kwargs",
        SUM,
        {"chat_template_kwargs": {"enable_thinking": False}},
        _thinks_no_more,
    ),
    Effect(
        "chat",
        "chat_template_kwargs",
        {**SUM, "reasoning_effort": "none"},
        {"chat_template_kwargs": {"enable_thinking": True}},
        lambda without, given: _thinks_no_more(given, without),
        "wins over reasoning_effort",
    ),
    Effect(
        "chat",
        "documents",
        said("abc", "library", max_tokens=4),
        DOCUMENTS,
        becomes("defg", "z{|}"),
    ),
    Effect(
        "chat",
        "add_generation_prompt",
        GREET[0],
        {"add_generation_prompt": False},
        lambda without, given: given.prompt_tokens == without.prompt_tokens - 3,
    ),
    Effect(
        "chat",
        "continue_final_message",
        BEGUN,
        {"continue_final_message": True},
        becomes("Hello! How can I help you?", " can I help you?"),
    ),
    Effect(
        "chat",
        "echo",
        {**BEGUN, "continue_final_message": True},
        {"echo": True},
        becomes(" can I help you?", "Hello! How can I help you?"),
    ),
]

TEXTS: list[Effect] = [
    Effect("text", "prompt", COUNT[1], {"prompt": "x"}, becomes("defghijk", "yz{|}~ !")),
    Effect(
        "text",
        "prompt",
        COUNT[1],
        {"prompt": ["x", "abc"]},
        lambda _, given: given.texts == ["yz{|}~ !", "defghijk"],
        "several",
    ),
    Effect(
        "text",
        "prompt",
        COUNT[1],
        {"prompt": [ord("x")]},
        becomes("defghijk", "yz{|}~ !"),
        "tokens",
    ),
    Effect(
        "text",
        "prompt",
        COUNT[1],
        {"prompt": [[ord("x")], [ord("a"), ord("b")]]},
        lambda _, given: given.texts == ["yz{|}~ !", "cdefghij"],
        "several of tokens",
    ),
    Effect("text", "echo", COUNT[1], {"echo": True}, becomes("defghijk", "abcdefghijk")),
    Effect(
        "text",
        "return_token_ids",
        COUNT[1],
        {"return_token_ids": True},
        lambda without, given: (
            not without.choices[0].token_ids
            and bytes(given.choices[0].token_ids) == b"defghijk"
            and bytes(given.choices[0].prompt_token_ids) == b"abc"
        ),
    ),
    Effect(
        "text",
        "add_special_tokens",
        written("abc", "library", max_tokens=4, return_token_ids=True),
        {"add_special_tokens": False},
        lambda without, given: (
            without.choices[0].prompt_token_ids == [257, *b"abc"]
            and given.choices[0].prompt_token_ids == [*b"abc"]
        ),
    ),
]

TOKENIZE: list[Effect] = [
    Effect("tokenize", "model", TEXT, {"model": "successor"}, _more),
    Effect("tokenize", "text", TEXT, {"text": ["a", "b"]}, lambda _, b: len(b.sequences) == 2),
    Effect(
        "tokenize",
        "prompt",
        TEXT,
        {"text": None, "prompt": "Hello there"},
        lambda without, given: without == given,
    ),
    Effect("tokenize", "messages", TEXT, {"text": None, "messages": [USER]}, _more),
    Effect(
        "tokenize",
        "add_special_tokens",
        {"model": "library", "prompt": "abc"},
        {"add_special_tokens": False},
        lambda without, given: (
            without.sequences == [[257, *b"abc"]] and given.sequences == [[*b"abc"]]
        ),
    ),
    Effect(
        "tokenize",
        "return_token_strs",
        TEXT,
        {"return_token_strs": True},
        lambda without, given: not without.strings and given.strings == [["Hello", "Ġ", "there"]],
    ),
    Effect("tokenize", "max_length", TEXT, {"max_length": 2}, lambda a, b: _count(a, b) == (3, 2)),
    Effect(
        "tokenize",
        "pad_to_max_length",
        PAIR,
        {"pad_to_max_length": True},
        lambda without, given: _count(without, given) == (4, 8),
    ),
    Effect(
        "tokenize",
        "padding_side",
        {**PAIR, "pad_to_max_length": True},
        {"padding_side": "left"},
        _swapped,
    ),
    Effect("tokenize", "tools", MESSAGES, {"tools": [WEATHER]}, _more),
    Effect(
        "tokenize", "tool_choice", {**MESSAGES, "tools": [WEATHER]}, {"tool_choice": "none"}, _fewer
    ),
    Effect("tokenize", "reasoning_effort", MESSAGES, {"reasoning_effort": "none"}, _more),
    Effect(
        "tokenize",
        "chat_template_kwargs",
        MESSAGES,
        {"chat_template_kwargs": {"enable_thinking": False}},
        _more,
    ),
    Effect("tokenize", "add_generation_prompt", MESSAGES, {"add_generation_prompt": False}, _fewer),
    Effect(
        "tokenize", "continue_final_message", MESSAGES, {"continue_final_message": True}, _fewer
    ),
    Effect(
        "tokenize",
        "documents",
        {**MESSAGES, "model": "library"},
        DOCUMENTS,
        lambda without, given: given.sequences[0] == without.sequences[0] + [*b"xy"],
    ),
    Effect(
        "detokenize",
        "tokens",
        {"model": "successor", "tokens": [*b"abc"]},
        {"tokens": [*b"xyz"]},
        becomes("abc", "xyz"),
    ),
    Effect(
        "detokenize",
        "model",
        {"model": "successor", "tokens": [*b"abc"]},
        {"model": "demo"},
        lambda without, given: without.text != given.text,
    ),
]

EFFECTS = [*CHAT_AND_TEXT, *CHAT, *TEXTS, *TOKENIZE]
