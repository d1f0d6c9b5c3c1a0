"""grpc.health.v1, with bounds on its watchers."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from ovchat_server.domain.errors import OverloadedError
from ovchat_server.rpc.caller import peer_address
from ovchat_server.rpc.counted import counted
from ovchat_server.telemetry.paced_log import PacedLog

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from ovchat_server.rpc.middleware import Context

# A client of gRPC has one for each connection that it balances over. They need no key and last as
# long as their caller likes, so they take all streams most easily.
WATCHES_PER_CALLER: Final = 100
WATCHES: Final = 1000

logger = logging.getLogger(__name__)


class HealthServicer(health_pb2_grpc.HealthServicer):
    """Health of services, as it was published last.

    Not the package's servicer, which writes to a watcher while it holds the lock that a change of
    the health needs: one that did not read would keep the old health for everybody.
    """

    def __init__(self, per_caller: int = WATCHES_PER_CALLER, most: int = WATCHES) -> None:
        """Know no service yet.

        Args:
            per_caller: Watches at once that an address may have.
            most: Watches at once of all callers.
        """
        self._statuses: Mapping[str, int] = {}
        self._changed = asyncio.Event()
        self._stopping = False
        self._per_caller = per_caller
        self._most = most
        self._watches: Counter[str] = Counter()
        self._log = PacedLog(logger, "{} calls of Health/Watch were refused".format)

    def publish(self, statuses: Mapping[str, int]) -> None:
        """Set the health of all services; those that had one before are unknown from now on."""
        if not self._stopping:
            self._set(statuses)

    def stop(self) -> None:
        """Make all services NOT_SERVING for good."""
        self._stopping = True
        self._set(dict.fromkeys(self._statuses, health_pb2.HealthCheckResponse.NOT_SERVING))

    def _set(self, statuses: Mapping[str, int]) -> None:
        self._statuses = statuses
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def Check(  # noqa: N802  gRPC's name
        self,
        request: Any,  # noqa: ANN401
        context: Context,
    ) -> Any:  # noqa: ANN401
        """Return the health of a service."""
        if (status := self._statuses.get(request.service)) is None:
            await context.abort(grpc.StatusCode.NOT_FOUND)
        return health_pb2.HealthCheckResponse(status=status)

    async def Watch(  # noqa: N802  gRPC's name
        self,
        request: Any,  # noqa: ANN401
        context: Context,
    ) -> AsyncIterator[Any]:
        """Yield the health of a service, and again whenever it has changed.

        Raises:
            OverloadedError: The caller, or all of them, have as many watches as may be.
        """
        metadata = dict(context.invocation_metadata() or ())
        caller = peer_address(str(metadata.get("x-forwarded-for", "")), context.peer() or "")
        unknown = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
        told = None
        self._check_room(caller)
        with counted(self._watches, caller):
            while True:
                changed = self._changed
                if (status := self._statuses.get(request.service, unknown)) != told:
                    yield health_pb2.HealthCheckResponse(status=status)
                    told = status
                await changed.wait()

    async def List(  # noqa: N802  gRPC's name
        self,
        request: Any,  # noqa: ANN401, ARG002  it has nothing to say
        context: Context,  # noqa: ARG002
    ) -> Any:  # noqa: ANN401
        """Return the health of every service."""
        # The package's types do not have it yet.
        return health_pb2.HealthListResponse(  # type: ignore[attr-defined]
            statuses={
                name: health_pb2.HealthCheckResponse(status=status)
                for name, status in self._statuses.items()
            }
        )

    def _check_room(self, caller: str) -> None:
        if self._watches[caller] >= self._per_caller:
            self._refuse(f"your address has {self._per_caller}")
        if self._watches.total() >= self._most:
            self._refuse(f"all callers together have {self._most}")

    def _refuse(self, who: str) -> None:
        self._log.add()
        raise OverloadedError(
            f"No more calls of Health/Watch: {who}, as many as may be. Call Health/Check instead."
        )
