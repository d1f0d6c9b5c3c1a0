"""What processes that run pooling models are sent, and what they send."""

from __future__ import annotations

from typing import Literal

import msgspec

from ovchat_server.engine.contract.messages import MessageDecoder, Ready, Report, Start
from ovchat_server.engine.contract.spec import EngineSpec

# Larger batches lose more by padding than they win.
DEFAULT_BATCH_TOKENS = 256
# Why a request ended: all of its inputs have their vectors.
POOLED = "pooled"

# How the vectors of a text's tokens become one (sentence-transformers' words).
Pooling = Literal["cls", "lasttoken", "max", "mean", "mean_sqrt_len_tokens", "weightedmean"]
# Where a model's graph has a vector for each text already: it is that.
PooledByGraph = Literal["graph"]


class PoolingSpec(EngineSpec, frozen=True, kw_only=True):
    """A model that makes a vector, or a score, of each text.

    Attributes:
        pooling: How the vectors of tokens become one.
        answer_tokens: Of a reranker that is a language model, the tokens of "no" and "yes": the
            vector of a text is the two logits behind its last token. Empty: it is none.
        pad_token: What shorter texts of a batch are filled up with, on the right.
        max_batch_tokens: Most tokens of a batch, with padding, unless a single text has more.
        device: OpenVINO's name of a device.
        properties: OpenVINO's own.
    """

    worker: str = "ovchat_server.engine.pooling.worker:load"
    pooling: Pooling | PooledByGraph
    answer_tokens: tuple[int, ...] = ()
    pad_token: int = 0
    max_batch_tokens: int = DEFAULT_BATCH_TOKENS
    device: str = "CPU"
    properties: dict[str, str | int | float | bool] = msgspec.field(default_factory=dict)


class PoolingInput(msgspec.Struct, frozen=True, array_like=True):
    """A text, or a pair of texts.

    Attributes:
        index: Its place in the request as it was made.
        tokens: Its tokens, at least one, each as 4 bytes, little-endian.
        second: Where in the tokens the second text begins, for models with token types; 0: there
            is none.
    """

    index: int
    tokens: bytes
    second: int = 0


class PoolingRequest(msgspec.Struct, frozen=True):
    """A request for the vectors of some texts.

    Attributes:
        inputs: At least one.
        normalize: Whether vectors have length 1.
        dimensions: How many numbers of a vector are kept, before that; 0: all.
        suspect: It ran when a process died, which may be its fault.
        client: Who asks; clients take turns.
        priority: Lower goes first, among clients.
        own_priority: Lower goes first, among those of its client.
    """

    id: int
    inputs: tuple[PoolingInput, ...]
    normalize: bool = False
    dimensions: int = 0
    suspect: bool = False
    client: str = ""
    priority: int = 0
    own_priority: int = 0


class PoolingOutput(msgspec.Struct, frozen=True, array_like=True):
    """Vectors of a request.

    Attributes:
        vectors: Indices of inputs with their vectors, each number as a float32, little-endian.
        finish: With the last of them: POOLED, or a failure (engine.contract.messages).
        reason: Of a failure, for the server's log.
    """

    id: int
    vectors: list[tuple[int, bytes]]
    finish: str | None
    reason: str = ""


class PoolingLimits(msgspec.Struct, frozen=True):
    """What a loaded model says of itself.

    Attributes:
        size: How many numbers a vector has.
    """

    size: int


def pooling_decoder() -> MessageDecoder[PoolingRequest, PoolingOutput, PoolingLimits]:
    """Return the decoders of these messages."""
    return MessageDecoder(Start[PoolingRequest], Report[PoolingOutput], Ready[PoolingLimits])
