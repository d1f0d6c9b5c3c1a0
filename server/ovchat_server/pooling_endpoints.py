"""The endpoints of models that make vectors and scores."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ovchat.v1 import embedding_service_pb2, rerank_service_pb2
from ovchat.v1.embedding_service_pb2_grpc import add_EmbeddingServiceServicer_to_server
from ovchat.v1.rerank_service_pb2_grpc import add_RerankServiceServicer_to_server
from ovchat_server.domain.embedding_request import read_embedding_request
from ovchat_server.domain.models import EMBEDDING_TYPE, RERANK_TYPE
from ovchat_server.domain.rerank_request import read_rerank_request, read_score_request
from ovchat_server.endpoint import Endpoint
from ovchat_server.rest import rerank
from ovchat_server.rest.apis import CallApi
from ovchat_server.rest.openai import embeddings as openai_embeddings
from ovchat_server.rest.openai.codec import encode_error
from ovchat_server.rest.provider_paths import ProviderApi
from ovchat_server.rpc.pooling_servicers import EmbeddingServicer, RerankServicer
from ovchat_server.rpc.typed_service import TypedService

if TYPE_CHECKING:
    from ovchat_server.domain.limits import Limits
    from ovchat_server.serving.services import Services


def embeddings(services: Services, limits: Limits) -> Endpoint:
    """Return the endpoint of embeddings.

    Args:
        services: What answers.
        limits: What typed requests may hold.
    """
    created = CallApi(
        read_embedding_request,
        services.embeddings.create,
        openai_embeddings.embeddings,
        encode_error,
        openai_embeddings.are_large,
    )
    return Endpoint(
        {
            "CreateEmbeddings": created,
            "CreateProviderEmbeddings": ProviderApi(created, services.models),
        },
        TypedService(
            embedding_service_pb2.DESCRIPTOR.services_by_name["EmbeddingService"],
            partial(add_EmbeddingServiceServicer_to_server, EmbeddingServicer(services, limits)),
            model_type=EMBEDDING_TYPE,
        ),
    )


def reranking(services: Services, limits: Limits) -> Endpoint:
    """Return the endpoint of rankings and scores; see embeddings."""
    ranks = services.reranking
    return Endpoint(
        {
            "Rerank": CallApi(
                read_rerank_request, ranks.rerank, rerank.ranking, encode_error, rerank.is_large
            ),
            "Score": CallApi(read_score_request, ranks.score, rerank.scores, encode_error),
        },
        TypedService(
            rerank_service_pb2.DESCRIPTOR.services_by_name["RerankService"],
            partial(add_RerankServiceServicer_to_server, RerankServicer(services, limits)),
            model_type=RERANK_TYPE,
        ),
    )
