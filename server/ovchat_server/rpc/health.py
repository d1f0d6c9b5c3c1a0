"""grpc.health.v1, complete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grpc_health.v1 import health, health_pb2

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ovchat_server.rpc.middleware import Context


class HealthServicer(health.aio.HealthServicer):
    """The package's servicer with what it lacks: List, and services that are gone."""

    async def publish(self, statuses: Mapping[str, Any]) -> None:
        """Set the health of all services; those that had one before are unknown from now on."""
        for name, status in statuses.items():
            await self.set(name, status)
        known: dict[str, Any] = self._server_status  # type: ignore[attr-defined]
        for name in known.keys() - statuses.keys():
            # For its watchers.
            await self.set(name, health_pb2.HealthCheckResponse.SERVICE_UNKNOWN)
            # Shutting down iterates over the services: none may be removed then.
            if not self._gracefully_shutting_down:  # type: ignore[attr-defined]
                known.pop(name, None)

    # The package's types do not have it yet.
    async def List(  # noqa: N802  gRPC's name
        self,
        request: Any,  # noqa: ANN401, ARG002  it has nothing to say
        context: Context,  # noqa: ARG002
    ) -> Any:  # noqa: ANN401
        """Return the health of every service."""
        statuses: dict[str, Any] = self._server_status  # type: ignore[attr-defined]
        return health_pb2.HealthListResponse(  # type: ignore[attr-defined]
            statuses={
                name: health_pb2.HealthCheckResponse(status=status)
                for name, status in statuses.items()
            }
        )
