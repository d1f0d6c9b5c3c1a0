"""Which public APIs there are: each RPC with its codec and the call that serves it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat.v1 import rest_service_pb2
from ovchat_server.domain.tokenization_request import read_detokenize_request, read_tokenize_request
from ovchat_server.rest.apis import CallApi, GenerationApi, GetApi
from ovchat_server.rest.model_server import ModelServerInfo
from ovchat_server.rest.openai.codec import (
    chat_encoder,
    encode_error,
    read_chat,
    read_text,
    text_encoder,
)
from ovchat_server.rest.server_info import ServerInfo
from ovchat_server.rest.tokenization import detokenized, tokenized

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ovchat_server.rest.apis import Api
    from ovchat_server.serving.services import Services

SERVICE = "ovchat.v1.RestService"


def public_apis(services: Services) -> Mapping[str, Api]:
    """Return the APIs by the full names of their RPCs."""
    chat, texts, tokenization = services.chat, services.texts, services.tokenization
    info = ServerInfo(services.models, services.versions)
    model_server = ModelServerInfo(services.models, services.versions)
    pb, errors = rest_service_pb2, encode_error
    apis: dict[str, Api] = {
        "CreateChatCompletion": GenerationApi(read_chat, chat.answer, chat_encoder, errors),
        "CreateCompletion": GenerationApi(read_text, texts.answer, text_encoder, errors),
        "Tokenize": CallApi(read_tokenize_request, tokenization.tokenize, tokenized, errors),
        "Detokenize": CallApi(
            read_detokenize_request, tokenization.detokenize, detokenized, errors
        ),
        "GetTokenizerInfo": GetApi(pb.RestServiceGetTokenizerInfoRequest, info.tokenizer, errors),
        "ListModels": GetApi(pb.RestServiceListModelsRequest, info.models, errors),
        "GetModel": GetApi(pb.RestServiceGetModelRequest, info.model, errors),
        "GetLiveness": GetApi(pb.RestServiceGetLivenessRequest, info.liveness, errors),
        "GetReadiness": GetApi(pb.RestServiceGetReadinessRequest, info.readiness, errors),
        "GetVersion": GetApi(pb.RestServiceGetVersionRequest, info.version, errors),
        "GetServerMetadata": GetApi(
            pb.RestServiceGetServerMetadataRequest, model_server.server, errors
        ),
        "GetModelMetadata": GetApi(
            pb.RestServiceGetModelMetadataRequest, model_server.model, errors
        ),
        "GetModelReadiness": GetApi(
            pb.RestServiceGetModelReadinessRequest, model_server.ready, errors
        ),
        "GetConfig": GetApi(pb.RestServiceGetConfigRequest, model_server.config, errors),
    }
    return {f"/{SERVICE}/{name}": api for name, api in apis.items()}
