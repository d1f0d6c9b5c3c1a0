"""grpc.health.v1, whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grpc_health.v1 import health, health_pb2

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ovchat_server.rpc.middleware import Context


class HealthServicer(health.aio.HealthServicer):
    """Health with what the package leaves out: a list, and services that are there no more."""

    async def publish(self, statuses: Mapping[str, Any]) -> None:
        """Set the health of all services; those that had one before are unknown from now on."""
        for name, status in statuses.items():
            await self.set(name, status)
        known: dict[str, Any] = self._server_status  # type: ignore[attr-defined]
        for name in known.keys() - statuses.keys():
            # For those that watch it.
            await self.set(name, health_pb2.HealthCheckResponse.SERVICE_UNKNOWN)
            # Shutting down goes through them, and lets none go.
            if not self._gracefully_shutting_down:  # type: ignore[attr-defined]
                known.pop(name, None)

    # The package's types do not know of it yet.
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
