"""Answers of both doors in one form, so that one predicate judges either."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ovchat.v1 import chat_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ovchat.v1 import completion_pb2, tokenizer_service_pb2


# A token, its log probability, alternatives to it. A prompt's first token has neither.
Said = tuple[str, float | None, list[str]]
# A token, its log probability, its rank.
Ranked = tuple[str, float, int]


@dataclass
class Choice:
    """A whole choice, or what a stream brought of it so far."""

    text: str = ""
    reasoning: str = ""
    calls: list[list[str]] = field(default_factory=list)
    finish: str = ""
    stop_reason: str | int | None = None
    # Token, log probability, alternatives.
    logprobs: list[Said] = field(default_factory=list)
    # Of each token of the prompt itself and the likeliest, each once.
    prompt_logprobs: list[list[Ranked]] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)
    prompt_token_ids: list[int] = field(default_factory=list)


@dataclass
class Answer:
    """An answer, whole or joined; `usages` has one item for each chunk of a stream."""

    choices: list[Choice]
    usage: tuple[int, int] | None = None
    usages: list[tuple[int, int] | None] = field(default_factory=list)

    @property
    def text(self) -> str:
        return self.choices[0].text

    @property
    def texts(self) -> list[str]:
        return [choice.text for choice in self.choices]

    @property
    def prompt_tokens(self) -> int:
        assert self.usage
        return self.usage[0]

    @property
    def tokens(self) -> int:
        assert self.usage
        return self.usage[1]


@dataclass
class Tokens:
    """An answer of tokenize; `text` is that of detokenize."""

    sequences: list[list[int]] = field(default_factory=list)
    strings: list[list[str]] = field(default_factory=list)
    text: str = ""


def of_json(body: dict[str, Any]) -> Answer:
    """A whole answer of the REST door."""
    return _joined_json([body])


def of_events(lines: Iterable[str]) -> Answer:
    """A stream of the REST door, on a slow machine with comments."""
    events = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    assert events.pop() == "[DONE]"
    chunks = [json.loads(event) for event in events]
    answer = _joined_json(chunks)
    answer.usages = [_json_usage(chunk) for chunk in chunks]
    return answer


def of_messages(
    parts: Sequence[
        chat_pb2.ChatCompletion
        | chat_pb2.ChatCompletionChunk
        | completion_pb2.Completion
        | completion_pb2.CompletionChunk
    ],
    *,
    stream: bool,
) -> Answer:
    """A whole answer, or a stream, of the gRPC door."""
    choices: dict[int, Choice] = {}
    for part in parts:
        for item in part.choices:
            # A chat's choices have one prompt.
            of_prompt = getattr(part, "prompt_logprobs", None) or getattr(
                item, "prompt_logprobs", ()
            )
            _add_message(choices.setdefault(item.index, Choice()), item, of_prompt)
    usages = [_usage(part) for part in parts]
    known = [usage for usage in usages if usage]
    ordered = [choices[index] for index in sorted(choices)]
    return Answer(ordered, known[-1] if known else None, usages if stream else [])


def tokens_of_json(body: dict[str, Any]) -> Tokens:
    """An answer of the REST door's tokenize or detokenize."""
    if "prompt" in body:
        return Tokens(text=body["prompt"])
    tokens, strings = body["tokens"], body["token_strs"]
    nested = bool(tokens) and isinstance(tokens[0], list)
    return Tokens(
        sequences=tokens if nested else [tokens],
        strings=[] if strings is None else (strings if nested else [strings]),
    )


def tokens_of_message(answer: tokenizer_service_pb2.TokenizeResponse) -> Tokens:
    """An answer of the gRPC door's tokenize."""
    strings = [list(sequence.token_strs) for sequence in answer.sequences]
    return Tokens(
        sequences=[list(sequence.tokens) for sequence in answer.sequences],
        strings=strings if any(strings) else [],
    )


def _joined_json(parts: Sequence[dict[str, Any]]) -> Answer:
    choices: dict[int, Choice] = {}
    for part in parts:
        for item in part["choices"]:
            # A chat's choices have one prompt.
            of_prompt = part.get("prompt_logprobs")
            _add_json(
                choices.setdefault(item["index"], Choice()),
                {**item, "prompt_logprobs": of_prompt} if of_prompt else item,
            )
    known = [usage for part in parts if (usage := _json_usage(part))]
    ordered = [choices[index] for index in sorted(choices)]
    return Answer(ordered, known[-1] if known else None)


def _json_usage(part: dict[str, Any]) -> tuple[int, int] | None:
    usage = part.get("usage")
    return (usage["prompt_tokens"], usage["completion_tokens"]) if usage else None


def _add_json(choice: Choice, item: dict[str, Any]) -> None:
    said = item.get("message") or item.get("delta") or item
    choice.text += said.get("content") or said.get("text") or ""
    choice.reasoning += said.get("reasoning_content") or ""
    for call in said.get("tool_calls") or []:
        _add_call(choice, call.get("index"), call["function"])
    if older := said.get("function_call"):
        _add_call(choice, None if "message" in item else 0, older)
    choice.finish = item["finish_reason"] or choice.finish
    choice.stop_reason = item.get("stop_reason", choice.stop_reason)
    logprobs = item["logprobs"] or {}
    if "content" in logprobs:
        choice.logprobs += [
            (
                token["token"],
                round(token["logprob"], 3),
                [top["token"] for top in token["top_logprobs"]],
            )
            for token in logprobs["content"]
        ]
    elif logprobs:
        tops = [list(top or ()) for top in logprobs["top_logprobs"]]
        numbers = [_rounded(number) for number in logprobs["token_logprobs"]]
        choice.logprobs += zip(logprobs["tokens"], numbers, tops, strict=True)
    choice.token_ids += item.get("token_ids") or []
    choice.prompt_token_ids += item.get("prompt_token_ids") or []
    choice.prompt_logprobs += [
        [
            (told["decoded_token"], round(told["logprob"], 3), told["rank"])
            for told in (tokens or {}).values()
        ]
        for tokens in item.get("prompt_logprobs") or ()
    ]


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 3)


def _add_call(choice: Choice, index: int | None, function: dict[str, str]) -> None:
    if index is None or index == len(choice.calls):
        choice.calls.append(["", ""])
    choice.calls[-1][0] += function.get("name", "")
    choice.calls[-1][1] += function.get("arguments", "")


def _usage(part: Any) -> tuple[int, int] | None:
    if not part.HasField("usage"):
        return None
    return part.usage.prompt_tokens, part.usage.completion_tokens


def _add_message(choice: Choice, item: Any, of_prompt: Iterable[Any]) -> None:
    match item:
        case chat_pb2.Choice():
            choice.text += "".join(part.text for part in item.message.content)
            choice.reasoning += item.message.reasoning_content
            choice.calls += [
                [call.function.name, call.function.arguments] for call in item.message.tool_calls
            ]
        case chat_pb2.ChunkChoice():
            choice.text += item.delta.content
            choice.reasoning += item.delta.reasoning_content
            for call in item.delta.tool_calls:
                function = {"name": call.name, "arguments": call.arguments}
                _add_call(choice, call.index, function)
        case _:
            choice.text += item.text
            choice.token_ids += item.token_ids
            choice.prompt_token_ids += item.prompt_token_ids
    if item.finish_reason:
        name = chat_pb2.FinishReason.Name(item.finish_reason)
        choice.finish = name.removeprefix("FINISH_REASON_").lower()
    for reason in ("stop_reason", "stop_token_id"):
        if item.HasField(reason):
            choice.stop_reason = getattr(item, reason)
    choice.logprobs += [
        (
            token.token,
            round(token.logprob, 3) if token.HasField("logprob") else None,
            [top.token for top in token.top_logprobs],
        )
        for token in item.logprobs.content
    ]
    choice.prompt_logprobs += [_ranked(token) for token in of_prompt]


def _ranked(token: chat_pb2.TokenLogprob) -> list[Ranked]:
    if not token.HasField("logprob"):
        return []
    others = [top for top in token.top_logprobs if top.token_id != token.token_id]
    return [(item.token, round(item.logprob, 3), item.rank) for item in (token, *others)]
