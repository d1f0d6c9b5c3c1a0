"""Tokenising for callers: with what special tokens, cut, padded, and without an engine."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from typing import TYPE_CHECKING, Any

import pytest
import tokenizers
from tokenizers import processors

from ovchat_server.chat.dialects.registry import Dialects
from ovchat_server.chat.prompt import PromptRenderer
from ovchat_server.domain.chat import ChatRequest, Message, Role
from ovchat_server.domain.errors import InvalidRequestError, ModelNotFoundError
from ovchat_server.domain.models import ModelState
from ovchat_server.domain.tokenization import (
    DetokenizeRequest,
    PaddingSide,
    TextsInput,
    Tokenized,
    TokenizeRequest,
)
from ovchat_server.engine.contract.generation import GenerationStatus
from ovchat_server.images.sources import ImageSources
from ovchat_server.serving.images import ImagePreparation
from ovchat_server.serving.model_files import read_model_files
from ovchat_server.serving.model_registry import ModelRegistry
from ovchat_server.serving.models import TextModel
from ovchat_server.serving.tokenization import MAX_PADDED_TOKENS, Tokenization
from ovchat_server.serving.worker_pool import WorkerPool
from ovchat_server.tokenizer.huggingface import Tokenizer
from tests.conftest import ROOT
from tests.unit.serving_tools import pipeline

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from ovchat_server.engine.contract.generation import GeneratedTokens, GenerationRequest

START, END, PAD = 257, 258, 256


class SlowTokenizer(Tokenizer):
    """Takes as long as the test wants."""

    def __init__(self, inner: tokenizers.Tokenizer, pad_token: str | None) -> None:
        super().__init__(inner, pad_token)
        self.began = threading.Event()
        self.go_on = threading.Event()

    def encode(self, text: str, **named: Any) -> list[int]:
        self.began.set()
        self.go_on.wait()
        return super().encode(text, **named)


class NoEngine:
    """An engine that was loaded never, or once with a cache for `context_length` tokens."""

    def __init__(self, context_length: int) -> None:
        self.status = GenerationStatus(ModelState.UNAVAILABLE, context_length=context_length)

    def generate(self, request: GenerationRequest) -> AsyncGenerator[GeneratedTokens, None]:
        raise NotImplementedError


def tokenization(
    *,
    pad_token: str | None = "<|endoftext|>",
    context: int = 0,
    kind: type[Tokenizer] = Tokenizer,
) -> Tokenization:
    """Of the successor's model, a token a byte, whose tokenizer starts and ends texts here."""
    inner = tokenizers.Tokenizer.from_file(str(ROOT / "models/successor/tokenizer.json"))
    inner.post_processor = processors.TemplateProcessing(
        "<|im_start|> $A <|im_end|>", None, [("<|im_start|>", START), ("<|im_end|>", END)]
    )
    tokenizer = kind(inner, pad_token)
    files = dataclasses.replace(read_model_files(ROOT / "models/successor"), tokenizer=tokenizer)
    renderer = PromptRenderer(files.template, tokenizer)
    return Tokenization(
        ModelRegistry(
            [TextModel("model", "fp", files, renderer, NoEngine(context), Dialects(), pipeline())]
        ),
        ImagePreparation(ImageSources()),
        WorkerPool("tokenize", 2),
    )


async def tokens_of(*texts: str, **fields: Any) -> list[list[int]]:
    tokenized = await tokenize(TextsInput(texts, **fields))
    return [list(sequence.tokens) for sequence in tokenized.sequences]


async def tokenize(asked: TextsInput | ChatRequest, **fields: Any) -> Tokenized:
    return await tokenization(**fields).tokenize(TokenizeRequest("model", asked))


async def test_special_tokens_stand_around_every_text() -> None:
    assert await tokens_of("ab", "") == [[START, 97, 98, END], [START, END]]
    assert await tokens_of("ab", "", special_tokens=False) == [[97, 98], []]


async def test_a_template_writes_its_own_special_tokens() -> None:
    chat = ChatRequest("model", (Message(Role.USER, ("ab",)),))
    [sequence] = (await tokenize(chat)).sequences
    assert list(sequence.tokens) == [97, 98]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"max_length": 3}, [[START, 97, END], [START, END]]),
        ({"max_length": 3, "special_tokens": False}, [[97, 98, 99], []]),
        ({"max_length": 3, "pad": True}, [[START, 97, END], [START, END, PAD]]),
        (
            {"max_length": 6, "pad": True, "padding_side": PaddingSide.LEFT},
            [[PAD, START, 97, 98, 99, END], [PAD, PAD, PAD, PAD, START, END]],
        ),
        ({"padding_side": PaddingSide.LEFT}, [[START, 97, 98, 99, END], [START, END]]),
    ],
)
async def test_texts_are_cut_and_filled_up(fields: Any, expected: list[list[int]]) -> None:
    assert await tokens_of("abc", "", **fields) == expected


async def test_padding_without_a_length_goes_to_the_models_context() -> None:
    tokenized = await tokenize(TextsInput(("ab",), pad=True), context=5)
    assert list(tokenized.sequences[0].tokens) == [START, 97, 98, END, PAD]
    # As with OVMS: nothing asked for a cut.
    tokenized = await tokenize(TextsInput(("abcdef",), pad=True), context=5)
    assert tokenized.count == 8


@pytest.mark.parametrize(("context", "told"), [(0, 4096), (512, 512)])
async def test_an_engine_is_not_needed_and_its_context_counts_where_it_was(
    context: int, told: int
) -> None:
    tokenized = await tokenize(TextsInput(("ab", "c")), context=context)
    assert (tokenized.count, tokenized.context_length) == (7, told)


async def test_a_conversation_longer_than_the_context_is_counted() -> None:
    chat = ChatRequest("model", (Message(Role.USER, ("a" * 100_000,)),))
    assert (await tokenize(chat)).count == 100_000


async def test_padding_needs_a_padding_token() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        await tokenize(TextsInput(("a",), max_length=5, pad=True), pad_token=None)
    assert caught.value.param == "pad_to_max_length"
    assert "no padding token" in caught.value.message


@pytest.mark.parametrize("texts", [1, 2])
async def test_padding_is_bounded_over_all_texts(texts: int) -> None:
    length = MAX_PADDED_TOKENS // texts
    tokenized = await tokenize(TextsInput(("a",) * texts, max_length=length, pad=True))
    assert tokenized.count == MAX_PADDED_TOKENS
    with pytest.raises(InvalidRequestError) as caught:
        await tokenize(TextsInput(("a",) * texts, max_length=length + 1, pad=True))
    assert caught.value.param == "pad_to_max_length"


async def test_token_strings_are_the_vocabularys() -> None:
    request = TokenizeRequest("model", TextsInput((" a", "")), token_strings=True)
    sequences = (await tokenization().tokenize(request)).sequences
    assert [list(sequence.strings or ()) for sequence in sequences] == [
        ["<|im_start|>", "Ġ", "a", "<|im_end|>"],
        ["<|im_start|>", "<|im_end|>"],
    ]


async def test_long_texts_take_no_thread_from_chats() -> None:
    slow = tokenization(kind=SlowTokenizer)
    request = TokenizeRequest("model", TextsInput(("a",)))
    tokenizer = slow._models.get("model").files.tokenizer
    assert isinstance(tokenizer, SlowTokenizer)
    running = [asyncio.create_task(slow.tokenize(request)) for _ in range(100)]
    try:
        await asyncio.to_thread(tokenizer.began.wait)
        await asyncio.to_thread(str)
    finally:
        tokenizer.go_on.set()
    assert all(tokenized.count == 3 for tokenized in await asyncio.gather(*running))


async def test_detokenizing_keeps_control_tokens() -> None:
    request = DetokenizeRequest("model", [START, 0xC3, 0xA9, 0xC3, END])
    assert (
        await tokenization().detokenize(request)
        == "<|im_start|>é\N{REPLACEMENT CHARACTER}<|im_end|>"
    )


async def test_tokens_of_no_vocabulary_are_refused_by_their_place() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        await tokenization().detokenize(DetokenizeRequest("model", [0, 259, 258, -1, 2**70]))
    assert [item.field for item in caught.value.violations] == [
        "tokens[1]",
        "tokens[3]",
        "tokens[4]",
    ]
    assert "between 0 and 258" in caught.value.message


async def test_an_unknown_model_is_not_found() -> None:
    with pytest.raises(ModelNotFoundError):
        await tokenization().tokenize(TokenizeRequest("nobody", TextsInput(("a",))))
    with pytest.raises(ModelNotFoundError):
        await tokenization().detokenize(DetokenizeRequest("nobody", [1]))
