"""Everything that is served: each endpoint with its API, its typed service and its health.

Paths stand in protos/ alone: Envoy's routes are made of them by `make gen`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ovchat.v1 import (
    chat_service_pb2,
    completion_service_pb2,
    model_service_pb2,
    provider_service_pb2,
    response_service_pb2,
    rest_service_pb2,
    server_service_pb2,
    tokenizer_service_pb2,
)
from ovchat.v1.chat_service_pb2_grpc import add_ChatServiceServicer_to_server
from ovchat.v1.completion_service_pb2_grpc import add_CompletionServiceServicer_to_server
from ovchat.v1.model_service_pb2_grpc import add_ModelServiceServicer_to_server
from ovchat.v1.provider_service_pb2_grpc import add_ProviderServiceServicer_to_server
from ovchat.v1.response_service_pb2_grpc import add_ResponseServiceServicer_to_server
from ovchat.v1.server_service_pb2_grpc import add_ServerServiceServicer_to_server
from ovchat.v1.tokenizer_service_pb2_grpc import add_TokenizerServiceServicer_to_server
from ovchat_server.domain.anthropic.reading import read_count_request, read_messages_request
from ovchat_server.domain.models import MODEL_TYPE
from ovchat_server.domain.responses.reading import read_responses_request
from ovchat_server.domain.tokenization_request import read_detokenize_request, read_tokenize_request
from ovchat_server.endpoint import Endpoint
from ovchat_server.pooling_endpoints import embeddings, reranking
from ovchat_server.responses.objects import input_tokens
from ovchat_server.rest.anthropic.codec import MessagesEncoder
from ovchat_server.rest.anthropic.codec import encode_error as encode_message_error
from ovchat_server.rest.anthropic.objects import input_tokens as message_tokens
from ovchat_server.rest.apis import CallApi, GenerationApi, GetApi, LargeGetApi
from ovchat_server.rest.model_server import ModelServerInfo
from ovchat_server.rest.openai.codec import (
    chat_encoder,
    encode_error,
    read_chat,
    read_text,
    text_encoder,
)
from ovchat_server.rest.provider_paths import ProviderApi
from ovchat_server.rest.responses.codec import ResponsesEncoder
from ovchat_server.rest.responses.codec import encode_error as encode_response_error
from ovchat_server.rest.responses.stored import StoredResponsesInfo
from ovchat_server.rest.server_info import ServerInfo
from ovchat_server.rest.tokenization import detokenized, tokenized
from ovchat_server.rpc.response_servicer import ResponseServicer
from ovchat_server.rpc.servicers import (
    ChatServicer,
    CompletionServicer,
    ModelServicer,
    ProviderServicer,
    ServerServicer,
    TokenizerServicer,
)
from ovchat_server.rpc.typed_service import TypedService
from ovchat_server.serving.messages import Messages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.domain.limits import Limits
    from ovchat_server.rest.apis import Api
    from ovchat_server.serving.services import Services

REST_SERVICE = rest_service_pb2.DESCRIPTOR.services_by_name["RestService"].full_name


def endpoints(
    services: Services, limits: Limits, *, keep_billing_header: bool = False
) -> Sequence[Endpoint]:
    """Return everything that is served.

    Args:
        services: What answers.
        limits: What typed requests may hold.
        keep_billing_header: See read_messages_request.
    """
    return (
        _chats(services, limits),
        _texts(services, limits),
        _responses(services, limits),
        _messages(services, keep_billing_header=keep_billing_header),
        embeddings(services, limits),
        reranking(services, limits),
        _tokens(services, limits),
        _models(services),
        _providers(services),
        _server(services),
    )


def rest_apis(served: Sequence[Endpoint]) -> dict[str, Api]:
    """Return the APIs of endpoints by the full names of their RPCs."""
    return {
        f"/{REST_SERVICE}/{name}": api for endpoint in served for name, api in endpoint.apis.items()
    }


def typed_services(served: Sequence[Endpoint]) -> Sequence[TypedService]:
    """Return the typed services of endpoints."""
    return [endpoint.service for endpoint in served if endpoint.service]


def _chats(services: Services, limits: Limits) -> Endpoint:
    chats = GenerationApi(read_chat, services.completions.answer, chat_encoder, encode_error)
    return Endpoint(
        {
            "CreateChatCompletion": chats,
            "CreateProviderChatCompletion": ProviderApi(chats, services.models),
        },
        TypedService(
            chat_service_pb2.DESCRIPTOR.services_by_name["ChatService"],
            partial(add_ChatServiceServicer_to_server, ChatServicer(services, limits)),
            model_type=MODEL_TYPE,
        ),
    )


def _texts(services: Services, limits: Limits) -> Endpoint:
    texts = GenerationApi(read_text, services.completions.answer, text_encoder, encode_error)
    return Endpoint(
        {
            "CreateCompletion": texts,
            "CreateProviderCompletion": ProviderApi(texts, services.models),
        },
        TypedService(
            completion_service_pb2.DESCRIPTOR.services_by_name["CompletionService"],
            partial(add_CompletionServiceServicer_to_server, CompletionServicer(services, limits)),
            model_type=MODEL_TYPE,
        ),
    )


def _responses(services: Services, limits: Limits) -> Endpoint:
    pb, responses = rest_service_pb2, services.responses
    stored = StoredResponsesInfo(responses)
    created = GenerationApi(
        read_responses_request, responses.answer, ResponsesEncoder, encode_response_error
    )
    return Endpoint(
        {
            "CreateResponse": created,
            "CreateProviderResponse": ProviderApi(created, services.models),
            "CountResponseInputTokens": CallApi(
                read_responses_request, responses.count_input, input_tokens, encode_response_error
            ),
            "GetResponse": LargeGetApi(
                pb.RestServiceGetResponseRequest, stored.get, encode_response_error
            ),
            "DeleteResponse": GetApi(
                pb.RestServiceDeleteResponseRequest, stored.delete, encode_response_error
            ),
            "ListResponseInputItems": LargeGetApi(
                pb.RestServiceListResponseInputItemsRequest,
                stored.input_items,
                encode_response_error,
            ),
        },
        TypedService(
            response_service_pb2.DESCRIPTOR.services_by_name["ResponseService"],
            partial(add_ResponseServiceServicer_to_server, ResponseServicer(services, limits)),
            model_type=MODEL_TYPE,
        ),
    )


def _messages(services: Services, *, keep_billing_header: bool) -> Endpoint:
    messages = Messages(services.completions, services.tokenization)
    read = partial(read_messages_request, keep_billing_header=keep_billing_header)
    read_counted = partial(read_count_request, keep_billing_header=keep_billing_header)
    created = GenerationApi(read, messages.answer, MessagesEncoder, encode_message_error)
    return Endpoint(
        {
            "CreateMessage": created,
            "CreateProviderMessage": ProviderApi(created, services.models),
            "CountMessageTokens": CallApi(
                read_counted, messages.count, message_tokens, encode_message_error
            ),
        }
    )


def _tokens(services: Services, limits: Limits) -> Endpoint:
    tokens, info = services.tokenization, ServerInfo(services.models, services.versions)
    return Endpoint(
        {
            "Tokenize": CallApi(read_tokenize_request, tokens.tokenize, tokenized, encode_error),
            "Detokenize": CallApi(
                read_detokenize_request, tokens.detokenize, detokenized, encode_error
            ),
            "GetTokenizerInfo": GetApi(
                rest_service_pb2.RestServiceGetTokenizerInfoRequest, info.tokenizer, encode_error
            ),
        },
        TypedService(
            tokenizer_service_pb2.DESCRIPTOR.services_by_name["TokenizerService"],
            partial(add_TokenizerServiceServicer_to_server, TokenizerServicer(services, limits)),
        ),
    )


def _models(services: Services) -> Endpoint:
    pb, info = rest_service_pb2, ServerInfo(services.models, services.versions)
    kserve = ModelServerInfo(services.models, services.versions)
    return Endpoint(
        {
            "ListModels": GetApi(pb.RestServiceListModelsRequest, info.models, encode_error),
            "GetModel": GetApi(pb.RestServiceGetModelRequest, info.model, encode_error),
            "GetModelMetadata": GetApi(
                pb.RestServiceGetModelMetadataRequest, kserve.model, encode_error
            ),
            "GetModelReadiness": GetApi(
                pb.RestServiceGetModelReadinessRequest, kserve.ready, encode_error
            ),
            "GetConfig": GetApi(pb.RestServiceGetConfigRequest, kserve.config, encode_error),
        },
        TypedService(
            model_service_pb2.DESCRIPTOR.services_by_name["ModelService"],
            partial(add_ModelServiceServicer_to_server, ModelServicer(services.models)),
        ),
    )


def _providers(services: Services) -> Endpoint:
    pb, info = rest_service_pb2, ServerInfo(services.models, services.versions)
    return Endpoint(
        {
            "ListProviders": GetApi(
                pb.RestServiceListProvidersRequest, info.providers, encode_error
            ),
            "ListProviderModels": GetApi(
                pb.RestServiceListProviderModelsRequest, info.provider_models, encode_error
            ),
            "GetProviderModel": GetApi(
                pb.RestServiceGetProviderModelRequest, info.provider_model, encode_error
            ),
        },
        TypedService(
            provider_service_pb2.DESCRIPTOR.services_by_name["ProviderService"],
            partial(add_ProviderServiceServicer_to_server, ProviderServicer(services.models)),
        ),
    )


def _server(services: Services) -> Endpoint:
    pb, info = rest_service_pb2, ServerInfo(services.models, services.versions)
    kserve = ModelServerInfo(services.models, services.versions)
    return Endpoint(
        {
            "GetLiveness": GetApi(pb.RestServiceGetLivenessRequest, info.liveness, encode_error),
            "GetReadiness": GetApi(pb.RestServiceGetReadinessRequest, info.readiness, encode_error),
            "GetVersion": GetApi(pb.RestServiceGetVersionRequest, info.version, encode_error),
            "GetServerMetadata": GetApi(
                pb.RestServiceGetServerMetadataRequest, kserve.server, encode_error
            ),
        },
        TypedService(
            server_service_pb2.DESCRIPTOR.services_by_name["ServerService"],
            partial(
                add_ServerServiceServicer_to_server,
                ServerServicer(services.versions, services.replica),
            ),
        ),
    )
