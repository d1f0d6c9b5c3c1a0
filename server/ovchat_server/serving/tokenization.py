"""Tokenizing and detokenizing, with the models' own tokenizers and without their engines."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from ovchat_server.domain.errors import InvalidRequestError
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.limits import DEFAULT_LIMITS
from ovchat_server.domain.tokenization import PaddingSide, TextsInput, Tokenized, TokenSequence
from ovchat_server.serving.caller import current_caller
from ovchat_server.serving.deadline import Deadline
from ovchat_server.serving.models import LocalModel, TextModel
from ovchat_server.serving.render import render_conversation
from ovchat_server.serving.text_sizes import cutting
from ovchat_server.serving.vocabulary import check_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ovchat_server.domain.chat import ChatRequest
    from ovchat_server.domain.tokenization import DetokenizeRequest, TokenizeRequest
    from ovchat_server.engine.contract.image_encoder import EncodedImage
    from ovchat_server.serving.images import ImagePreparation
    from ovchat_server.serving.model_registry import ModelRegistry
    from ovchat_server.serving.worker_pool import WorkerPool
    from ovchat_server.tokenizer.huggingface import Tokenizer

# A few bytes can ask for any number of them.
MAX_PADDED_TOKENS = 1 << 20


class Tokenization:
    """Answers tokenize and detokenize requests."""

    def __init__(
        self,
        models: ModelRegistry,
        images: ImagePreparation,
        workers: WorkerPool,
        request_timeout: float | None = None,
        max_bytes: int = DEFAULT_LIMITS.max_tokenized_bytes,
    ) -> None:
        """Answer with the tokenizers of `models`.

        Args:
            models: Whose tokenizers to use.
            images: Encodes images, which tells how many tokens they take.
            workers: For tokenizing alone: megabytes of text take seconds.
            request_timeout: Seconds for each request; None: as long as it takes.
            max_bytes: How long a text may be that a conversation or tokens make; the reader of
                requests has bounded others.
        """
        self._models = models
        self._images = images
        self._request_timeout = request_timeout
        self._workers = workers
        self._max_bytes = max_bytes

    async def tokenize(self, request: TokenizeRequest) -> Tokenized:
        """Tokenize texts, or the prompt that a conversation makes.

        Raises:
            ModelNotFoundError: There is no such model.
            InvalidRequestError: The model cannot pad, or its template refuses the messages.
            ApiError: Their images cannot be encoded; see ImagePreparation.encode.
        """
        async with Deadline(self._request_timeout).limit():
            if isinstance(request.input, TextsInput):
                any_model = self._tokenizing(request.model)
                texts = partial(_tokenize_texts, any_model, request.input)
                return await self._workers.run(partial(_tokenized, any_model, request, texts))
            model = self._models.get_as(TextModel, request.model)
            images = await self._images.encode(
                model, request.input.messages, current_caller(priority=0)
            )
            chat = partial(_tokenize_chat, model, request.input, images, self._max_bytes)
            return await self._workers.run(partial(_tokenized, model, request, chat))

    async def detokenize(self, request: DetokenizeRequest) -> str:
        """Return the text of tokens, control tokens included.

        Raises:
            ModelNotFoundError: There is no such model.
            InvalidRequestError: Some ids are not of the model's vocabulary, or are too many.
        """
        tokenizer = self._tokenizing(request.model).files.tokenizer
        async with Deadline(self._request_timeout).limit():
            return await self._workers.run(
                partial(_detokenize, tokenizer, request.tokens, self._max_bytes)
            )

    def _tokenizing(self, identifier: str) -> LocalModel:
        # mypy takes abstract classes for what cannot be asked for: its issue 4717.
        return self._models.get_as(LocalModel, identifier)  # type: ignore[type-abstract]


def _tokenized(
    model: LocalModel,
    request: TokenizeRequest,
    tokenize: Callable[[], Sequence[Sequence[int]]],
) -> Tokenized:
    shown = partial(_strings, model.files.tokenizer) if request.token_strings else lambda _: None
    return Tokenized(
        sequences=tuple(TokenSequence(tokens, shown(tokens)) for tokens in tokenize()),
        context_length=_context_length(model),
    )


def _context_length(model: LocalModel) -> int:
    # Where an engine has less room for tokens than the model was made for, it says so.
    return model.status.context_length or model.files.context_length


def _tokenize_chat(
    model: TextModel, request: ChatRequest, images: Sequence[EncodedImage], max_characters: int
) -> Sequence[Sequence[int]]:
    # However many tokens: to know whether they fit is why one asks.
    return [render_conversation(model, request, images, max_characters=max_characters).tokens]


def _tokenize_texts(model: LocalModel, asked: TextsInput) -> list[list[int]]:
    tokenizer = model.files.tokenizer
    # Before the work: padding may be refused.
    padding = (
        _padding(tokenizer, asked, asked.max_length or _context_length(model)) if asked.pad else []
    )
    sequences = []
    for text in asked.texts:
        with cutting([FieldPath.of(asked.name)]):
            tokens = tokenizer.encode(
                text, special_tokens=asked.special_tokens, most_tokens=asked.max_length
            )
        fill = padding[len(tokens) :]
        left = asked.padding_side is PaddingSide.LEFT
        sequences.append(fill + tokens if left else tokens + fill)
    return sequences


def _strings(tokenizer: Tokenizer, tokens: Sequence[int]) -> list[str]:
    # Millions of tokens share a few thousand strings.
    strings = {token: tokenizer.token_text(token) for token in set(tokens)}
    return [strings[token] for token in tokens]


def _padding(tokenizer: Tokenizer, asked: TextsInput, length: int) -> list[int]:
    """Return `length` padding tokens.

    Raises:
        InvalidRequestError: The model has no padding token, or they are too many together.
    """
    if tokenizer.pad_token is None:
        complaint = "is not supported by this model: it has no padding token."
    elif length * len(asked.texts) > MAX_PADDED_TOKENS:
        complaint = (
            f"would return {len(asked.texts)} times {length} tokens; "
            f"at most {MAX_PADDED_TOKENS} are returned together."
        )
    else:
        return [tokenizer.pad_token] * length
    raise InvalidRequestError.about("pad_to_max_length", complaint)


def _detokenize(tokenizer: Tokenizer, tokens: Sequence[int], max_bytes: int) -> str:
    check_tokens(tokenizer, FieldPath.of("tokens"), tokens)
    counted = Counter(tokens).items()
    size = sum(count * len(tokenizer.token_bytes(token)) for token, count in counted)
    if size > max_bytes:
        complaint = f"must be a text of at most {max_bytes} bytes, got {size}."
        raise InvalidRequestError.about("tokens", complaint)
    # As vLLM, whose answer keeps control tokens.
    return tokenizer.decode(tokens, special_tokens=True)
