"""The gRPC server with everything on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import grpc
import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from ovchat_server.domain.identity import KeyRing
from ovchat_server.domain.models import ModelState
from ovchat_server.rpc.access import access, set_request_id
from ovchat_server.rpc.caller import identify, lacks_key
from ovchat_server.rpc.errors import error_translation
from ovchat_server.rpc.external_authorization import authorization
from ovchat_server.rpc.grpc_log import bound_grpc_log
from ovchat_server.rpc.header_values import check_headers
from ovchat_server.rpc.idle import IdleInterceptor
from ovchat_server.rpc.middleware import MiddlewareInterceptor
from ovchat_server.rpc.rate_limits import rate_limits
from ovchat_server.rpc.reflection import add_reflection
from ovchat_server.rpc.stream_limit import StreamLimit
from ovchat_server.serving.rate_limits import RateLimits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.domain.limits import Limits
    from ovchat_server.rpc.calls import Calls
    from ovchat_server.rpc.errors import RestErrorEncoder
    from ovchat_server.rpc.health import HealthServicer
    from ovchat_server.rpc.typed_service import TypedService
    from ovchat_server.serving.model_registry import ModelRegistry
    from ovchat_server.serving.record import RequestObserver

# Seconds after which a connection takes no new calls: clients open another one by themselves. It is
# closed when none of its calls can still be of use, which is the only way to make gRPC drop a
# message that its reader does not take.
CONNECTION_AGE = 3600.0
# Seconds without a call after which a connection is closed, as Envoy does it.
IDLE_CONNECTION = 900.0
# Calls that may wait for the event loop: as many as Envoy lets through. gRPC silently cancels calls
# beyond that, by default from 1,000 on.
MAX_PENDING_CALLS = 10_000
# gRPC's options are C ints.
MAX_INT = 2**31 - 1

# How much larger than its body a REST request may become in Envoy, which limits the body alone.
ENVELOPE_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Served:
    """What a server serves.

    Attributes:
        typed: The services of the contract.
        rest_service: The full name of the service behind Envoy's REST paths.
        rest_handlers: Its RPCs.
        encode_rest_error: Encodes errors of any RPC for REST callers.
    """

    typed: Sequence[TypedService]
    rest_service: str
    rest_handlers: grpc.GenericRpcHandler
    encode_rest_error: RestErrorEncoder


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
        keys: Those of the callers.
        rate_limits: Counts what they use.
        client_certificates: Whether callers must show certificates.
        max_connections: Connections at once; further ones are closed.
        observers: Are told of requests.
    """

    max_request_bytes: int
    max_concurrent_streams: int
    request_timeout: float | None
    idle_timeout: float | None
    limits: Limits
    keys: KeyRing = field(default_factory=KeyRing)
    rate_limits: RateLimits = field(default_factory=RateLimits)
    client_certificates: bool = False
    max_connections: int = 10_000
    observers: Sequence[RequestObserver] = ()


def create_server(
    served: Served,
    health_servicer: health_pb2_grpc.HealthServicer,
    calls: Calls,
    options: ServerOptions,
) -> grpc.aio.Server:
    """Create the server; it is not started and listens nowhere yet.

    Args:
        served: What it serves.
        health_servicer: Answers grpc.health.v1.
        calls: Knows the calls under way.
        options: How to serve.
    """
    bound_grpc_log()
    server = grpc.aio.server(
        # The first is the outermost: the log sees what became of the error.
        interceptors=[
            *([IdleInterceptor(options.idle_timeout)] if options.idle_timeout else []),
            MiddlewareInterceptor(
                set_request_id,
                access(options.observers),
                StreamLimit(options.max_concurrent_streams).count,
                error_translation(served.encode_rest_error),
                check_headers,
                calls.admit,
                identify(options.keys, by_certificate=options.client_certificates),
                rate_limits(options.rate_limits),
                refuses=partial(lacks_key, options.keys),
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
            ("grpc.max_connection_idle_ms", int(IDLE_CONNECTION * 1000)),
            ("grpc.max_allowed_incoming_connections", options.max_connections),
            *_connection_age(options.request_timeout),
        ],
    )
    for service in served.typed:
        service.add(server)
    server.add_generic_rpc_handlers((served.rest_handlers, authorization(options.keys)))
    health_pb2_grpc.add_HealthServicer_to_server(health_servicer, server)
    names = [service.name for service in served.typed]
    add_reflection((*names, served.rest_service, health.SERVICE_NAME), server)
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


def publish_health(health_servicer: HealthServicer, models: ModelRegistry, served: Served) -> None:
    """Set the health of services: SERVING while every model answers that they are for."""
    serving = health_pb2.HealthCheckResponse.SERVING
    not_serving = health_pb2.HealthCheckResponse.NOT_SERVING
    overall = not_serving if models.unready() else serving
    statuses: dict[str, int] = {"": overall, served.rest_service: overall}
    for service in served.typed:
        statuses[service.name] = serving
        for model in models.named():
            if model.type == service.model_type:
                health = serving if model.state is ModelState.READY else not_serving
                statuses[f"{service.name}/{model.id}"] = health
                if health == not_serving:
                    statuses[service.name] = not_serving
    health_servicer.publish(statuses)
