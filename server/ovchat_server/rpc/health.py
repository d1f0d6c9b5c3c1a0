"""grpc.health.v1, whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grpc_health.v1 import health, health_pb2

if TYPE_CHECKING:
    import grpc.aio


class HealthServicer(health.aio.HealthServicer):
    """Health with the RPC that the package leaves out."""

    # The package's types do not know of it yet.
    async def List(  # noqa: N802  gRPC's name
        self,
        request: Any,  # noqa: ANN401, ARG002  it has nothing to say
        context: grpc.aio.ServicerContext[Any, Any],  # noqa: ARG002
    ) -> Any:  # noqa: ANN401
        """Return the health of every service."""
        statuses: dict[str, Any] = self._server_status  # type: ignore[attr-defined]
        return health_pb2.HealthListResponse(  # type: ignore[attr-defined]
            statuses={
                name: health_pb2.HealthCheckResponse(status=status)
                for name, status in statuses.items()
            }
        )
