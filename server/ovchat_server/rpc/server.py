"""The gRPC server with everything on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import grpc
import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from ovchat.v1 import (
    chat_service_pb2,
    completion_service_pb2,
    model_service_pb2,
    rest_service_pb2,
    server_service_pb2,
    tokenizer_service_pb2,
)
from ovchat.v1.chat_service_pb2_grpc import add_ChatServiceServicer_to_server
from ovchat.v1.completion_service_pb2_grpc import add_CompletionServiceServicer_to_server
from ovchat.v1.model_service_pb2_grpc import add_ModelServiceServicer_to_server
from ovchat.v1.server_service_pb2_grpc import add_ServerServiceServicer_to_server
from ovchat.v1.tokenizer_service_pb2_grpc import add_TokenizerServiceServicer_to_server
from ovchat_server.domain.models import Capability, ModelState
from ovchat_server.rpc.access import log_access, set_request_id, silence_lost_clients
from ovchat_server.rpc.authentication import authentication
from ovchat_server.rpc.caller import set_client
from ovchat_server.rpc.errors import error_translation
from ovchat_server.rpc.idle import IdleInterceptor
from ovchat_server.rpc.middleware import MiddlewareInterceptor
from ovchat_server.rpc.reflection import add_reflection
from ovchat_server.rpc.servicers import (
    ChatServicer,
    CompletionServicer,
    ModelServicer,
    ServerServicer,
    TokenizerServicer,
)
from ovchat_server.rpc.stream_limit import StreamLimit

if TYPE_CHECKING:
    from collections.abc import Collection

    from ovchat_server.domain.limits import Limits
    from ovchat_server.rpc.calls import Calls
    from ovchat_server.rpc.errors import RestErrorEncoder
    from ovchat_server.rpc.health import HealthServicer
    from ovchat_server.serving.models import ModelRegistry
    from ovchat_server.serving.services import Services

# Read from the descriptors, which reflection finds only if they are imported.
CHAT_SERVICE = chat_service_pb2.DESCRIPTOR.services_by_name["ChatService"].full_name
COMPLETION_SERVICE = completion_service_pb2.DESCRIPTOR.services_by_name[
    "CompletionService"
].full_name
MODEL_SERVICE = model_service_pb2.DESCRIPTOR.services_by_name["ModelService"].full_name
REST_SERVICE = rest_service_pb2.DESCRIPTOR.services_by_name["RestService"].full_name
SERVER_SERVICE = server_service_pb2.DESCRIPTOR.services_by_name["ServerService"].full_name
TOKENIZER_SERVICE = tokenizer_service_pb2.DESCRIPTOR.services_by_name["TokenizerService"].full_name
# Healthy while all models are ready.
ENGINE_SERVICES = (CHAT_SERVICE, COMPLETION_SERVICE, REST_SERVICE)
# Healthy whether or not an engine runs.
ENGINELESS_SERVICES = (MODEL_SERVICE, SERVER_SERVICE, TOKENIZER_SERVICE)

# Seconds after which a connection takes no new calls: clients open another one by themselves. It is
# closed when none of its calls can still be of use, which is the only way to make gRPC drop a
# message that its reader does not take.
CONNECTION_AGE = 3600.0
# Calls that may wait for the event loop: as many as Envoy lets through. gRPC silently cancels calls
# beyond that, by default from 1,000 on.
MAX_PENDING_CALLS = 10_000
# gRPC's options are C ints.
MAX_INT = 2**31 - 1

# How much larger than its body a REST request may become in Envoy, which limits the body alone.
ENVELOPE_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class RestRpcs:
    """What the REST door adds to the server.

    Attributes:
        handlers: Its RPCs.
        encode_error: Encodes errors of any RPC for REST callers.
    """

    handlers: grpc.GenericRpcHandler
    encode_error: RestErrorEncoder


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How to serve.

    Attributes:
        max_request_bytes: The maximum size of a request.
        request_timeout: The time limit of a call in seconds; None for none.
        idle_timeout: Seconds after which a stream whose client reads nothing is ended; None for
            never.
        max_concurrent_streams: Concurrent calls per connection; further calls wait.
        limits: How much a request may contain.
        api_keys: The valid API keys; if empty, none is needed.
    """

    max_request_bytes: int
    max_concurrent_streams: int
    request_timeout: float | None
    idle_timeout: float | None
    limits: Limits
    api_keys: Collection[str] = ()


def create_server(
    services: Services,
    rest: RestRpcs,
    health_servicer: health.aio.HealthServicer,
    calls: Calls,
    options: ServerOptions,
) -> grpc.aio.Server:
    """Create the server; it is not started and listens nowhere yet.

    Args:
        services: What it serves.
        rest: The RPCs behind Envoy's REST paths.
        health_servicer: Answers grpc.health.v1.
        calls: Knows the calls under way.
        options: How to serve.
    """
    silence_lost_clients()
    server = grpc.aio.server(
        # The first is the outermost: the log sees what became of the error.
        interceptors=[
            *([IdleInterceptor(options.idle_timeout)] if options.idle_timeout else []),
            MiddlewareInterceptor(
                set_request_id,
                log_access,
                StreamLimit(options.max_concurrent_streams).count,
                error_translation(rest.encode_error),
                calls.admit,
                authentication(options.api_keys),
                set_client(by_key=bool(options.api_keys)),
            ),
        ],
        options=[
            ("grpc.max_receive_message_length", options.max_request_bytes + ENVELOPE_BYTES),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_concurrent_streams", options.max_concurrent_streams),
            ("grpc.server.max_pending_requests", MAX_PENDING_CALLS),
            ("grpc.server.max_pending_requests_hard_limit", MAX_PENDING_CALLS),
            # Envoy lets 60 KiB of headers pass; gRPC's default refuses some of them from 8 KiB on.
            ("grpc.max_metadata_size", 128 << 10),
            # Two servers on one port would share its callers without anybody noticing.
            ("grpc.so_reuseport", 0),
            # Callers may ping as often as they like, with and without calls: gRPC's default cuts
            # them off at the third ping within five minutes of silence, such as a long prefill.
            ("grpc.http2.max_ping_strikes", 0),
            *_connection_age(options.request_timeout),
        ],
    )
    add_ChatServiceServicer_to_server(ChatServicer(services, options.limits), server)
    add_CompletionServiceServicer_to_server(CompletionServicer(services, options.limits), server)
    add_ModelServiceServicer_to_server(ModelServicer(services.models), server)
    add_TokenizerServiceServicer_to_server(TokenizerServicer(services, options.limits), server)
    add_ServerServiceServicer_to_server(ServerServicer(services.versions), server)
    server.add_generic_rpc_handlers((rest.handlers,))
    health_pb2_grpc.add_HealthServicer_to_server(health_servicer, server)
    add_reflection((*ENGINE_SERVICES, *ENGINELESS_SERVICES, health.SERVICE_NAME), server)
    return server


def _connection_age(request_timeout: float | None) -> tuple[tuple[str, int], ...]:
    if request_timeout is None:
        return ()
    # Of calls that began just before; then a second to say how they ended.
    grace = int(min(request_timeout * 1000 + 1000, MAX_INT))
    return (
        ("grpc.max_connection_age_ms", int(CONNECTION_AGE * 1000)),
        ("grpc.max_connection_age_grace_ms", grace),
    )


async def publish_health(health_servicer: HealthServicer, models: ModelRegistry) -> None:
    """Set the health of services: SERVING without an engine, or while every model answers.

    Each model that chats has a health of its own, as "ovchat.v1.ChatService/<id>".
    """
    serving = health_pb2.HealthCheckResponse.SERVING
    not_serving = health_pb2.HealthCheckResponse.NOT_SERVING
    statuses: dict[str, int] = dict.fromkeys(ENGINELESS_SERVICES, serving)
    for model in models.statuses():
        if Capability.CHAT in model.capabilities:
            health_of_model = serving if model.state is ModelState.READY else not_serving
            for service in (CHAT_SERVICE, COMPLETION_SERVICE):
                statuses[f"{service}/{model.id}"] = health_of_model
    overall = not_serving if models.unready() else serving
    for name in (*ENGINE_SERVICES, ""):
        statuses[name] = overall
    await health_servicer.publish(statuses)
