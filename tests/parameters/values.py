"""Values that parameters take and refuse: at the bounds, of a wrong type, and what is neutral."""

from __future__ import annotations

import itertools
from typing import Any

from ovchat_server.domain.rerank_request import TEXT_NAMES
from tests.parameters import form, pooling
from tests.parameters.case import Bound, Fields, said, written
from tests.parameters.endpoints import MESSAGES, PAIR, TEXT, USER, WEATHER
from tests.parameters.messages_from_chats import MESSAGES_API
from tests.parameters.responses_from_chats import RESPONSES_API

# The shortest request of each endpoint, always answered the same.
SHORT: dict[str, Fields] = {
    "chat": said("abc", "successor", max_tokens=2),
    "text": written("abc", "successor", max_tokens=2),
    "responses": RESPONSES_API.of_chat(said("abc", "successor", max_tokens=2)),
    "messages": MESSAGES_API.of_chat(said("abc", "successor", max_tokens=2)),
    "tokenize": TEXT,
    "detokenize": {"model": "successor", "tokens": [97]},
    **pooling.SHORT,
}
# What must be there for a parameter to mean something.
BESIDE: dict[str, Fields] = {
    "top_logprobs": {"logprobs": True},
    "length_penalty": {"best_of": 2},
    "early_stopping": {"best_of": 2},
    "spaces_between_special_tokens": {"skip_special_tokens": False},
    "logprob_token_ids": {"logprobs": True},
    "return_tokens_as_token_ids": {"logprobs": True},
    "stream_options": {"stream": True},
    "tool_choice": {"tools": [WEATHER], "model": "demo"},
    "function_call": {"functions": [WEATHER["function"]], "model": "demo"},
    "max_tokens": {"stop": "d"},
    "max_completion_tokens": {"stop": "d", "max_tokens": None},
}

BESIDE_IN_TEXTS: dict[str, Fields] = {
    "logprob_token_ids": {"logprobs": 0},
    "return_tokens_as_token_ids": {"logprobs": 0},
}

# That many different ones.
PAIRS = list(map("".join, itertools.islice(itertools.product("abcdefghijkl", repeat=2), 128)))
# Nothing but how likely a prompt was.
SCORED: Fields = {"echo": True, "logprobs": 0, "max_tokens": 0}


def _both(name: str, accepted: tuple[Any, ...], refused: tuple[Any, ...]) -> list[Bound]:
    return [
        Bound(endpoint, name, accepted, refused, {**SHORT[endpoint], **BESIDE.get(name, {})})
        for endpoint in ("chat", "text")
    ]


def _beside(
    name: str, accepted: tuple[Any, ...], refused: tuple[Any, ...], **others: Any
) -> list[Bound]:
    return [
        Bound(endpoint, name, accepted, refused, {**SHORT[endpoint], **others})
        for endpoint in ("chat", "text")
    ]


def _one(endpoint: str, name: str, accepted: tuple[Any, ...], refused: tuple[Any, ...]) -> Bound:
    return _both(name, accepted, refused)[endpoint == "text"]


def _asked(name: str, accepted: tuple[Any, ...], refused: tuple[Any, ...], base: Fields) -> Bound:
    return Bound("tokenize", name, accepted, refused, base)


def _tools(count: int) -> list[Any]:
    return [
        {**WEATHER, "function": {**WEATHER["function"], "name": f"f{number}"}}  # type: ignore[dict-item]
        for number in range(count)
    ]


def _predicted(content: Any) -> Fields:
    return {"type": "content", "content": content}


DE = [{"type": "text", "text": "de"}]
NAMED = {"type": "function", "function": {"name": "get_weather"}}
FUNCTIONS = [{"name": f"f{number}"} for number in range(1024)]
AGENT_FORMATS = ("openai", "codex", "passthrough", "qwen3", "llama3", "auto")
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")

BOUNDS: list[Bound] = [
    # The prompt takes 3 of the model's 4,096 tokens: more are cut to those that are left.
    *_both("max_tokens", (1, 4093, 4094, 2**32 - 1), (0, -1, 2**32)),
    _one("chat", "max_completion_tokens", (1, 4093, 4094, 2**32 - 1), (0, -1, 2**32)),
    *_both("min_tokens", (0, 2), (-1, 3, 2**32)),
    *_both("stop", ([], ["x"] * 16), (["x"] * 17, "", ["x", ""])),
    *_both("stop_token_ids", ([], [0] * 1024, [258]), ([0] * 1025, [-1], [2**32], [259])),
    *_both("truncate_prompt_tokens", (-1, 1, 2**31 - 1), (-2, 0, 2**32)),
    *_both("truncation_side", ("left", "right"), ("top", "")),
    *_both("temperature", (0, 2), (-0.001, 2.001)),
    *_both("top_p", (1e-9, 1), (0, -0.001, 1.001)),
    *_both("top_k", (-1, 0, 2**31 - 1), (-2, 2**31)),
    *_both("min_p", (0, 0.999999), (-0.001, 1)),
    *_both("repetition_penalty", (0.01, 100), (0, -1, 0.009, 100.001)),
    *_both("presence_penalty", (-2, 0, 2), (-2.001, 2.001)),
    *_both("frequency_penalty", (-2, 0, 2), (-2.001, 2.001)),
    *_both(
        "logit_bias",
        ({}, {"0": -100, "258": 100}, {str(token): 1 for token in range(259)}),
        (
            {"x": 1},
            {"-1": 1},
            {"259": 1},
            {"5": -100.001},
            {"5": 100.001},
            {str(token): 0 for token in range(1025)},
        ),
    ),
    *_both(
        "allowed_token_ids",
        ([], [97], [97] * 4096, [0, 258]),
        ([97] * 4097, [-1], [2**32], [259]),
    ),
    *_both(
        "bad_words",
        ([], ["x"] * 128, ["x" * 256]),
        (["x"] * 129, ["x" * 257], [""], ["x", " "]),
    ),
    *_both("seed", (-(2**63), 2**63 - 1), (-(2**63) - 1, 2**63)),
    *_both("n", (1, 128), (0, -1, 129)),
    *_both("best_of", (1, 20), (0, -1, 21)),
    *_both("priority", (-(2**31), 2**31 - 1), (-(2**31) - 1, 2**31)),
    *_both("cache_salt", ("a", "a" * 1000), ("",)),
    *_both("length_penalty", (-7, 7), (-7.001, 7.001)),
    *_both("num_assistant_tokens", (0, 32), (-1, 33)),
    *_both("max_ngram_size", (1, 32), (0, 33)),
    *_both("assistant_confidence_threshold", (0, 1), (-0.001, 1.001)),
    _one("chat", "top_logprobs", (0, 1, 20), (-1, 21)),
    _one("text", "logprobs", (0, 1, 20), (-1, 21)),
    *_both("prompt_logprobs", (0, 1, 20), (-1, 21)),
    _one("chat", "reasoning_effort", EFFORTS, ("most", "")),
    _one("chat", "thinking_token_budget", (-1, 0, 2**31 - 1), (-2, 2**31)),
    _one(
        "chat",
        "tool_choice",
        ("none", "auto", "required", NAMED),
        ("named", {"type": "function", "function": {"name": "f"}}),
    ),
    _one("chat", "functions", ([], FUNCTIONS[:1], FUNCTIONS), ([*FUNCTIONS, *FUNCTIONS[:1]],)),
    _one(
        "chat",
        "function_call",
        ("none", "auto", {"name": "get_weather"}),
        ("required", {"name": "f"}, {}),
    ),
    # No tools are none, by either name.
    *(
        Bound("chat", name, ("none", "auto"), ("required", called), {**SHORT["chat"], listed: []})
        for name, called, listed in (
            ("tool_choice", NAMED, "tools"),
            ("function_call", {"name": "get_weather"}, "functions"),
        )
    ),
    _one("chat", "agent_format", AGENT_FORMATS, ("hermes", "")),
    _one(
        "chat",
        "prediction",
        (_predicted(""), _predicted("de"), _predicted([]), _predicted(DE * 1024)),
        (
            {},
            {"content": "de"},
            {"type": "content"},
            {"type": "text", "content": "de"},
            _predicted([{"type": "text"}]),
            _predicted([{"type": "refusal", "refusal": "de"}]),
            _predicted(DE * 1025),
        ),
    ),
    # A model of whose prompt only the last message is part.
    Bound(
        "chat",
        "messages",
        ([USER], [USER] * 2048),
        ([], [USER] * 2049),
        {**SHORT["chat"], "model": "library"},
    ),
    _one("chat", "tools", ([], _tools(1), _tools(1024)), (_tools(1025), [WEATHER, WEATHER])),
    _one("chat", "documents", ([{}] * 1024,), ([{}] * 1025,)),
    _one(
        "chat",
        "chat_template_kwargs",
        ({}, {"anything": [1]}),
        ({"messages": []}, {"bos_token": "x"}),
    ),
    _one("text", "prompt", ("a", ["a"], ["a"] * 128, [0], [[258]]), ("", [""], ["a"] * 129, [259])),
    _asked("text", ("", ["a"], ["a"] * 2048), (["a"] * 2049,), TEXT),
    _asked("max_length", (1, 2**32 - 1), (0, -1, 2**32), TEXT),
    _asked("padding_side", ("left", "right"), ("top",), PAIR),
    _asked("reasoning_effort", EFFORTS, ("most",), MESSAGES),
    _asked("tool_choice", ("none", "auto"), ("any",), {**MESSAGES, "tools": [WEATHER]}),
    _asked("messages", ([USER] * 2048,), ([USER] * 2049,), MESSAGES),
    _asked("tools", ([], _tools(1024)), (_tools(1025),), MESSAGES),
    _asked("tools", ([], _tools(1)), (), TEXT),
    _asked("documents", ([{}] * 1024,), ([{}] * 1025,), MESSAGES),
    _asked("add_special_tokens", (False,), (True,), MESSAGES),
    _asked("pad_to_max_length", (True,), (), {"model": "demo", "text": "a", "max_length": 2**20}),
    _asked(
        "pad_to_max_length", (), (True,), {"model": "demo", "text": "a", "max_length": 2**20 + 1}
    ),
    Bound(
        "detokenize",
        "tokens",
        ([], [0, 258]),
        ([259],),
        SHORT["detokenize"],
    ),
    Bound(
        "detokenize",
        "tokens",
        ([0] * 2**20,),
        ([0] * (2**20 + 1),),
        SHORT["detokenize"],
        heavy=True,
    ),
    *form.BOUNDS,
]

# What goes with some values of other parameters only; the base has the others.
TOGETHER: list[Bound] = [
    *_beside("best_of", (3, 20), (2,), n=3),
    *_beside("n", (20,), (21,), use_beam_search=True),
    *_beside("max_tokens", (2**32 - 1,), (), truncate_prompt_tokens=2, stop="d"),
    # Cut for an answer of that length, nothing would be left of the prompt.
    *_beside("max_tokens", (4095,), (4096,), truncate_prompt_tokens=-1, stop="d"),
    # What must be written has to fit.
    *_beside("min_tokens", (4093,), (4094,), max_tokens=2**32 - 1),
    Bound("chat", "functions", ([],), (FUNCTIONS[:1],), {**SHORT["chat"], "tools": [WEATHER]}),
    Bound("chat", "functions", (FUNCTIONS[:1],), (), {**SHORT["chat"], "tools": []}),
    *_beside("use_beam_search", (True,), (False,), best_of=2),
    # What cannot act in a request is as good as absent.
    *_beside("length_penalty", (0, 1, 1.1), (7.001,)),
    *_beside("early_stopping", (True, "never"), ()),
    *_beside("spaces_between_special_tokens", (False,), ()),
    *_beside("logprob_token_ids", ([1],), (), logprobs=None),
    *_beside("return_tokens_as_token_ids", (True,), (), logprobs=None),
    Bound("chat", "return_tokens_as_token_ids", (True,), (), {**SHORT["chat"], "logprobs": False}),
    *_beside("min_tokens", (0,), (1,), best_of=2),
    *_beside("ignore_eos", (False,), (True,), best_of=2),
    *_beside("repetition_penalty", (1,), (1.1,), best_of=2),
    *_beside("presence_penalty", (0,), (0.1,), best_of=2),
    *_beside("frequency_penalty", (0,), (-0.1,), best_of=2),
    *_beside("logit_bias", ({}, {"5": 0}), ({"5": 1},), best_of=2),
    *_beside("allowed_token_ids", (None,), ([97],), best_of=2),
    *_beside("bad_words", ([],), (["x"],), best_of=2),
    *_beside("assistant_confidence_threshold", (None,), (0.5,), num_assistant_tokens=5),
    *_beside("stream_options", ({},), (), stream=True),
    *_beside("stream_options", (), ({},)),
    Bound("chat", "top_logprobs", (0,), (1,), SHORT["chat"]),
    Bound("chat", "top_logprobs", (0,), (1,), {**SHORT["chat"], "logprobs": True, "best_of": 2}),
    Bound("chat", "thinking_token_budget", (-1,), (0,), {**SHORT["chat"], "best_of": 2}),
    Bound("text", "logprobs", (0,), (1,), {**SHORT["text"], "best_of": 2}),
    Bound(
        "chat",
        "continue_final_message",
        (False,),
        (True,),
        {**SHORT["chat"], "add_generation_prompt": True},
    ),
    Bound("text", "logprobs", (0, 1, 20), (-1, 21), {**SHORT["text"], "echo": True}),
    Bound("text", "logprobs", (), (0, 1), {**SHORT["text"], "echo": True, "best_of": 2}),
    *_beside("prompt_logprobs", (), (0, 1), best_of=2),
    *_beside("prompt_logprobs", (), (0, 1), stream=True),
    # One of the 4,096 tokens is for what the engine has to say before it tells of a prompt.
    Bound("text", "prompt", ("a" * 4095,), ("a" * 4096,), {**SHORT["text"], **SCORED}),
    # All prompts together make 100,000 log probabilities.
    Bound(
        "text", "logprobs", (20,), (), {**SHORT["text"], **SCORED, "prompt": "a" * 4095}, heavy=True
    ),
    Bound(
        "text",
        "logprobs",
        (15,),
        (),
        {**SHORT["text"], **SCORED, "prompt": ["a" * 2000] * 3},
        heavy=True,
    ),
    Bound("text", "logprobs", (), (16,), {**SHORT["text"], **SCORED, "prompt": ["a" * 2000] * 3}),
    Bound("text", "max_tokens", (0,), (), {**SHORT["text"], "echo": True}),
    # All prompts together make 1,024 choices.
    Bound("text", "n", (8,), (), {**SHORT["text"], "prompt": PAIRS, "max_tokens": 1}, heavy=True),
    Bound("text", "n", (), (9,), {**SHORT["text"], "prompt": PAIRS, "max_tokens": 1}),
    # Bound to a form, the answer has it or calls.
    Bound(
        "chat",
        "tools",
        ([WEATHER],),
        (),
        {**SHORT["chat"], "model": "demo", "structured_outputs": {"regex": "a"}},
    ),
    Bound(
        "chat",
        "tools",
        ([WEATHER],),
        (),
        {**SHORT["chat"], "structured_outputs": {"regex": "a"}, "tool_choice": "none"},
    ),
    *form.TOGETHER,
]

INTEGER = ("one", 1.5, True, [1], {})
NUMBER = ("one", [1], {})
BOOLEAN = ("yes", 1, 0, [], {})
STRING = (1, True, [], {})
ARRAY = (1, True, "x", [1], ["x"])
OBJECT = (1, True, [], "x")
STRINGS = (1, True, [1], [True], [[]], {})

NUMBERS = (
    "temperature",
    "top_p",
    "min_p",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
    "length_penalty",
    "assistant_confidence_threshold",
)

# Of every parameter that is served.
WRONG_TYPES: dict[str, tuple[Any, ...]] = {
    "model": STRING,
    "messages": ARRAY,
    "prompt": (1, True, {}, [True], [1.5], [{}], [["x"]], [[1.5]]),
    "text": STRINGS,
    "tokens": (1, True, "x", ["x"], [1.5], [True], {}),
    "tools": ARRAY,
    "documents": ARRAY,
    "tool_choice": (1, True, []),
    "functions": ARRAY,
    "function_call": (1, True, []),
    "agent_format": STRING,
    # Over gRPC a string.
    "prediction": (1, True, [], _predicted(1), _predicted({}), _predicted(["x"])),
    "parallel_tool_calls": BOOLEAN,
    "include_reasoning": BOOLEAN,
    "chat_template_kwargs": OBJECT,
    "stream_options": (
        1,
        True,
        "x",
        {"include_usage": "yes"},
        {"continuous_usage_stats": 1},
    ),
    "stop": STRINGS,
    "stop_token_ids": (1, True, "x", ["x"], [1.5], [True], {}),
    "allowed_token_ids": (1, True, "x", ["x"], [1.5], [True], {}),
    "bad_words": (1, True, "x", [1], [True], [[]], {}),
    "logit_bias": (*OBJECT, {"5": "x"}, {"5": []}),
    "max_length": INTEGER,
    **dict.fromkeys(("max_tokens", "max_completion_tokens", "min_tokens"), INTEGER),
    **dict.fromkeys(
        ("truncate_prompt_tokens", "top_k", "seed", "n", "best_of", "priority"), INTEGER
    ),
    "thinking_token_budget": INTEGER,
    "top_logprobs": INTEGER,
    "prompt_logprobs": INTEGER,
    **dict.fromkeys(("num_assistant_tokens", "max_ngram_size"), INTEGER),
    **dict.fromkeys(NUMBERS, NUMBER),
    **dict.fromkeys(("truncation_side", "reasoning_effort", "cache_salt"), STRING),
    # Over gRPC an enum, which has numbers.
    "padding_side": (99, [], {}),
    **dict.fromkeys(("ignore_eos", "include_stop_str_in_output", "skip_special_tokens"), BOOLEAN),
    **dict.fromkeys(("use_beam_search", "logprobs", "echo", "stream"), BOOLEAN),
    **dict.fromkeys(("add_generation_prompt", "continue_final_message"), BOOLEAN),
    **dict.fromkeys(("add_special_tokens", "return_token_ids", "return_token_strs"), BOOLEAN),
    "pad_to_max_length": BOOLEAN,
    "input": (1, True, {}, [True], [1.5], [{}], [["x"]], [[1.5]]),
    **dict.fromkeys(("encoding_format", "prompt_name", "query"), STRING),
    # Over gRPC an enum, which has numbers.
    "input_type": (99, [], {}),
    **dict.fromkeys(("dimensions", "top_n", "max_tokens_per_doc"), INTEGER),
    **dict.fromkeys(("normalize", "use_activation", "return_documents"), BOOLEAN),
    **form.WRONG_TYPES,
}
# Where the same name is another type.
WRONG_TYPES_OF_TEXT: dict[str, tuple[Any, ...]] = {"logprobs": INTEGER}
WRONG_TYPES_OF_RERANK: dict[str, tuple[Any, ...]] = {"documents": (1, True, "x", [1], {}, [[]])}
WRONG_TYPES_OF_SCORE: dict[str, tuple[Any, ...]] = dict.fromkeys(TEXT_NAMES, STRINGS)

# Served without them the request makes no sense.
REQUIRED: dict[str, tuple[str, ...]] = {
    "chat": ("model", "messages"),
    "text": ("model", "prompt"),
    "responses": ("model", "input"),
    "messages": ("model", "messages", "max_tokens"),
    "tokenize": ("model", "text"),
    "detokenize": ("model", "tokens"),
    **pooling.REQUIRED,
}

# Parameters without effect: a value as documented, and one that nobody looks at.
ACCEPTED: dict[str, tuple[Any, Any]] = {
    "user": ("u", 5),
    "request_id": ("r", 5),
    "session_id": ("s", 5),
    "stream_interval": (5, "x"),
    "metadata": ({"a": "b"}, 5),
    "store": (True, "x"),
    "service_tier": ("flex", 5),
    "safety_identifier": ("u", 5),
    "prompt_cache_key": ("k", 5),
    "prompt_cache_options": ({"mode": "implicit"}, 5),
    "prompt_cache_retention": ("24h", 5),
    "verbosity": ("low", 5),
    "routed_experts_prompt_start": (0, "x"),
    "return_mm_kwargs": (True, 5),
    "audio": ({"format": "wav", "voice": "x"}, 5),
    "access_programs": ({"cyber": "standard"}, 5),
    "client_metadata": ({"a": "b"}, 5),
    "max_tool_calls": (1, "x"),
    "background_options": ({"completion_window": "soonest"}, 5),
    "image": ({"context_compression": "auto"}, 5),
    "user_profile_id": ("u", 5),
    "workspace_id": ("w", 5),
    "inference_geo": ("eu", 5),
    "speed": ("fast", 5),
    "billing_policy": ({"type": "x"}, 5),
    "cache_control": ({"type": "ephemeral"}, 5),
    "context_management": ({"edits": [{"type": "clear_tool_uses_20250919"}]}, 5),
    "diagnostics": ({"previous_message_id": "m"}, 5),
    "container": ("c", 5),
    "fallbacks": ([{"model": "x"}], 5),
    "fallback_credit_token": ("t", 5),
    "betas": (["x"], 5),
    "anthropic_beta": (["x"], 5),
    "anthropic_version": ("bedrock-2023-05-31", 5),
    "length_penalty": (2, "x"),
    "cache_salt": ("a", 5),
}

# Parameters that are refused: values that are, of a wrong type too, and what is neutral.
REFUSED: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "watermarking": ((True, "x"), (False,)),
    "repetition_detection": (({"min_count": 2},), ()),
    "logprob_token_ids": (([1], 5), ([],)),
    "return_tokens_as_token_ids": ((True, 0), (False,)),
    "return_token_offsets": ((True, 0), (False,)),
    "spaces_between_special_tokens": ((False, 1), (True,)),
    "early_stopping": ((True, 0), (False,)),
    "detokenize": ((False, 1), (True,)),
    "logits_processors": ((["x"], 5), ([],)),
    "vllm_xargs": (({"x": 1}, 5), ({},)),
    "kv_transfer_params": (({"x": 1},), ({},)),
    "ec_transfer_params": (({"x": 1},), ({},)),
    "suffix": (("x", 5), ("",)),
    "prompt_embeds": (("x",), ()),
    "return_token_ids": ((True, 0), (False,)),
    "return_prompt_text": ((True, 0), (False,)),
    "chat_template": (("x", 5), ("",)),
    "mm_processor_kwargs": (({"max_pixels": 1}, 5), ({},)),
    "media_io_kwargs": (({"image": {"rgba_background_color": [0, 0, 0]}}, 5), ({},)),
    "add_special_tokens": ((True, 0), (False,)),
    "modalities": ((["audio"], 5), (["text"], [])),
    "base_url": (("http://a.example",), ()),
    "api_key": (("sk",), ()),
    "moderation": (({"model": "x"},), ()),
    "web_search_options": (({},), ()),
    "background": ((True, 0), (False,)),
    "conversation": (("c", {"id": "c"}), ()),
    "prompt": (({"id": "p"}, "x"), ()),
    "context_management": (([{"type": "compaction"}], 5), ([],)),
    "mcp_servers": (([{"type": "url", "url": "http://a.example", "name": "x"}], 5), ([],)),
    "thread": (({"type": "create"}, "x"), ()),
    "compaction": (({"type": "auto"}, 5), ()),
    "response_format": (({"type": "json_object"}, 5), ()),
    "n": ((2, True), (1,)),
    "best_of": ((2, True), (1,)),
    "logprobs": ((True, 0), (False,)),
    "previous_input_messages": (([{}], 5), ([],)),
    "enable_response_messages": ((True, 0), (False,)),
    "include_reasoning": ((False, 1), (True,)),
    "padding": ((True, "longest", 5), ("do_not_pad",)),
    "embed_dtype": (("float16", 5), ("float32",)),
    "endianness": (("big", 5), ("little", "native")),
    "messages": (([USER], "x"), ()),
    "add_generation_prompt": ((True, 0), (False,)),
    "continue_final_message": ((True, 0), (False,)),
    "chat_template_kwargs": (({"x": 1}, 5), ({},)),
    "truncate": (("END", True, 0), ("NONE", False)),
    "truncation_side": (("left", 5), ("right",)),
    **dict.fromkeys(("use_activation", "activation", "softmax"), ((False, 1), (True,))),
    "rank_fields": ((["title"], "text"), (["text"],)),
    "max_chunks_per_doc": ((2, True), (1,)),
    "raw_scores": ((True,), (False,)),
    "normalized": ((False,), (True,)),
    "embedding_type": (("binary",), ("float",)),
    "embedding_types": ((["int8"],), (["float"],)),
    "output_dimension": ((8,), ()),
    "output_dtype": (("int8",), ("float",)),
    "task": (("retrieval.query",), ()),
    "instruction": (("Find duplicates.",), ()),
    "late_chunking": ((True,), (False,)),
}
