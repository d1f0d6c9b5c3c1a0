"""The typed tokenizer service."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from ovchat.v1 import tokenizer_service_pb2, tokenizer_service_pb2_grpc
from ovchat_server.api.tokenization_request import read_detokenize_request
from ovchat_server.rpc.request import tokenize_request

if TYPE_CHECKING:
    import grpc.aio

    from ovchat_server.api.limits import Limits
    from ovchat_server.api.tokenization import DetokenizeRequest
    from ovchat_server.serving.services import Services

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


class TokenizerServicer(tokenizer_service_pb2_grpc.TokenizerServiceServicer):
    """ovchat.v1.TokenizerService."""

    def __init__(self, services: Services, limits: Limits) -> None:
        """Answer requests that keep to `limits`."""
        self._workers = services.workers
        self._tokenization = services.tokenization
        self._limits = limits

    async def Tokenize(
        self, request: tokenizer_service_pb2.TokenizeRequest, context: Context
    ) -> tokenizer_service_pb2.TokenizeResponse:
        """Send the tokens of texts or of a conversation."""
        read = await self._workers.read(
            partial(tokenize_request, request, self._limits), request.ByteSize()
        )
        tokenized = await self._tokenization.tokenize(read)
        return tokenizer_service_pb2.TokenizeResponse(
            sequences=[
                tokenizer_service_pb2.TokenSequence(
                    tokens=sequence.tokens, token_strs=sequence.strings
                )
                for sequence in tokenized.sequences
            ],
            count=tokenized.count,
            context_length=tokenized.context_length,
        )

    async def Detokenize(
        self, request: tokenizer_service_pb2.DetokenizeRequest, context: Context
    ) -> tokenizer_service_pb2.DetokenizeResponse:
        """Send the text of tokens."""
        read = await self._workers.read(partial(_detokenize_request, request), request.ByteSize())
        text = await self._tokenization.detokenize(read)
        return tokenizer_service_pb2.DetokenizeResponse(prompt=text)


def _detokenize_request(request: tokenizer_service_pb2.DetokenizeRequest) -> DetokenizeRequest:
    # No tokens are no field that is not set: their text is "".
    return read_detokenize_request({"model": request.model or None, "tokens": list(request.tokens)})
