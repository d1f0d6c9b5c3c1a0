"""Embeddings: vectors of texts."""

from __future__ import annotations

import time
import uuid
from functools import partial
from typing import TYPE_CHECKING

from ovchat_server.domain.embeddings import Embeddings
from ovchat_server.domain.errors import InvalidRequestError
from ovchat_server.domain.generation import TruncationSide
from ovchat_server.engine.contract.pooling_engine import TokenizedText
from ovchat_server.serving.pooling import PoolingParams, check_lengths, kept_tokens
from ovchat_server.serving.pooling_models import EmbeddingModel
from ovchat_server.serving.text_sizes import check_sizes, cutting
from ovchat_server.serving.vocabulary import check_tokens
from ovchat_server.tokenizer.huggingface import NO_FRAME, kept

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.domain.embeddings import EmbeddingRequest
    from ovchat_server.domain.field_path import FieldPath
    from ovchat_server.serving.model_registry import ModelRegistry
    from ovchat_server.serving.pooling import Pooler
    from ovchat_server.serving.pooling_files import PoolingFiles


class TextEmbeddings:
    """Answers requests for embeddings."""

    def __init__(self, models: ModelRegistry, pooler: Pooler) -> None:
        """Answer with `models`, by way of `pooler`."""
        self._models = models
        self._pooler = pooler

    async def create(self, request: EmbeddingRequest) -> Embeddings:
        """Return the embeddings of a request's inputs.

        Raises:
            ModelNotFoundError: There is no such model.
            InvalidRequestError: It makes no embeddings, or an input is too long or no input of it.
            ApiError: Its engine cannot answer; see PoolingEngine.pool.
        """
        created = int(time.time())
        model = self._models.asked(EmbeddingModel, "embeddings", request.model)
        prompt = _prompt(model, request)
        dimensions = _dimensions(model, request)
        pooled = await self._pooler.pool(
            model,
            partial(_tokenize, model, request, prompt),
            PoolingParams(
                request.priority,
                model.normalize if request.normalize is None else request.normalize,
                dimensions,
            ),
            request.inputs,
        )
        return Embeddings(
            id=f"embd-{uuid.uuid4().hex}",
            created=created,
            model=request.model or model.id,
            vectors=pooled.vectors,
            prompt_tokens=pooled.prompt_tokens,
            encoding_format=request.encoding_format,
        )


def _prompt(model: EmbeddingModel, request: EmbeddingRequest) -> str:
    """Return the text to put before those of a request.

    Raises:
        InvalidRequestError: The model has no prompt of the name that is asked for.
    """
    named = "input_type" if request.prompt_name is None else "prompt_name"
    asked = request.input_type or request.prompt_name
    if asked is not None and not all(isinstance(item, str) for item in request.inputs):
        complaint = "names a text to put before others, and the input is token ids."
        raise InvalidRequestError.about(named, complaint)
    if request.input_type is not None:
        # As sentence-transformers: a model without such a prompt takes texts as they are.
        return model.prompt_for(request.input_type)
    name = model.default_prompt if request.prompt_name is None else request.prompt_name
    if name is None:
        return ""
    if name not in model.prompts:
        known = ", ".join(map(repr, model.prompts)) or "none"
        complaint = f"names no prompt of this model; it has {known}."
        raise InvalidRequestError.about("prompt_name", complaint)
    return model.prompts[name]


def _dimensions(model: EmbeddingModel, request: EmbeddingRequest) -> int:
    """Return how many numbers of each vector are kept; 0: all.

    What a model cannot do that was never loaded is not known yet: it is not available.

    Raises:
        InvalidRequestError: The model's vectors cannot be cut so.
    """
    asked, size = request.dimensions, model.engine.size
    if asked is None or not size or asked == size:
        return 0
    allowed = model.matryoshka
    if allowed == ():
        complaint = (
            f"must be {size}, the size of this model's embeddings: its files do not say that they "
            "may be cut. If its card does, its operator sets matryoshka = true."
        )
    elif allowed is not None and asked not in allowed:
        complaint = f"must be one of {', '.join(map(str, sorted(allowed)))}."
    elif asked > size:
        complaint = f"must be at most {size}, the size of this model's embeddings."
    else:
        return asked
    raise InvalidRequestError.about("dimensions", complaint)


def _tokenize(model: EmbeddingModel, request: EmbeddingRequest, prompt: str) -> list[TokenizedText]:
    files, fields = model.files, request.input_fields
    named = [*zip(fields, request.inputs, strict=True)]
    texts = {field: item for field, item in named if isinstance(item, str)}
    keep, left = kept_tokens(request.truncation, files.context_length), _cuts_left(request)
    if keep is None:
        check_sizes(files, texts.items())
    with cutting([*texts]):
        tokenized = _tokenize_texts(files, request, prompt, [*texts.values()], keep)
    tokens: dict[FieldPath, Sequence[int]] = dict(zip(texts, tokenized, strict=True))
    for field, item in named:
        if not isinstance(item, str):
            check_tokens(files.tokenizer, field, item)
            tokens[field] = kept(item, keep, cut_left=left)
    found = [TokenizedText.of(tokens[field]) for field in fields]
    check_lengths(files, fields, found)
    return found


def _tokenize_texts(
    files: PoolingFiles,
    request: EmbeddingRequest,
    prompt: str,
    texts: Sequence[str],
    keep: int | None,
) -> list[list[int]]:
    tokenizer = files.tokenizer
    frame = tokenizer.frame if request.special_tokens else NO_FRAME
    asked = len(tokenizer.encode(prompt)) if prompt and keep is not None else 0
    if keep is not None and texts and keep <= frame.count + asked:
        complaint = (
            f"leaves no room for a text: the model's prompt and special tokens are "
            f"{frame.count + asked} tokens."
        )
        raise InvalidRequestError.about("truncate_prompt_tokens", complaint)
    prompted = [prompt + text for text in texts]
    if keep is None:
        found = tokenizer.encode_batch(prompted)
    else:
        left, room = _cuts_left(request), keep - frame.count
        found = tokenizer.encode_batch(prompted, most_tokens=room, cut_left=left)
        if left and asked:
            # The prompt stays, whichever end is cut.
            first = tokenizer.encode_batch(prompted, most_tokens=asked)
            found = [
                [*begin, *kept(item, room - asked, cut_left=True)] if len(item) == room else item
                for begin, item in zip(first, found, strict=True)
            ]
    return [[*frame.before, *item, *frame.behind] for item in found]


def _cuts_left(request: EmbeddingRequest) -> bool:
    return request.truncation is not None and request.truncation.side is TruncationSide.LEFT
