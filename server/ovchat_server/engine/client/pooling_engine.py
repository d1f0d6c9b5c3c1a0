"""An engine that makes vectors of texts: its process, and its requests."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import msgspec

from ovchat_server.domain.errors import InternalError
from ovchat_server.engine.client.supervisor import EngineSupervisor
from ovchat_server.engine.contract.engine import ANONYMOUS
from ovchat_server.engine.contract.messages import BROKEN, REFUSED
from ovchat_server.engine.contract.observer import Unobserved
from ovchat_server.engine.contract.pooling_messages import (
    PoolingInput,
    PoolingLimits,
    PoolingOutput,
    PoolingRequest,
    pooling_decoder,
)
from ovchat_server.engine.contract.times import RequestTimes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ovchat_server.backoff import Backoff
    from ovchat_server.domain.errors import ApiError
    from ovchat_server.engine.contract.engine import Caller, EngineStatus
    from ovchat_server.engine.contract.observer import EngineObserver
    from ovchat_server.engine.contract.pooling_engine import TokenizedText
    from ovchat_server.engine.contract.pooling_messages import PoolingSpec

_FAILURES: Mapping[str, str] = {
    REFUSED: "The model's engine refused the request",
    BROKEN: "The model's engine failed because of the request",
}

logger = logging.getLogger(__name__)


class SupervisedPoolingEngine:
    """See contract.pooling_engine.PoolingEngine. Starts with `start`, ends with `close`."""

    def __init__(
        self,
        spec: PoolingSpec,
        on_change: Callable[[], None],
        backoff: Backoff | None = None,
        observer: EngineObserver[PoolingOutput] | None = None,
    ) -> None:
        """Run the model of `spec`; see EngineSupervisor."""
        self._observer: EngineObserver[PoolingOutput] = observer or Unobserved()
        self.supervisor: EngineSupervisor[PoolingRequest, PoolingOutput, PoolingLimits] = (
            EngineSupervisor(spec, pooling_decoder(), on_change, backoff, self._observer)
        )

    def start(self) -> None:
        """Begin; returns at once."""
        self.supervisor.start()

    async def close(self) -> None:
        """End the process; what is under way fails."""
        await self.supervisor.close()

    @property
    def status(self) -> EngineStatus:
        """See engine.contract.pooling_engine.PoolingEngine."""
        return self.supervisor.status

    @property
    def size(self) -> int:
        """See engine.contract.pooling_engine.PoolingEngine."""
        return self.supervisor.ready.limits.size if self.supervisor.ready else 0

    def check_queue(self, caller: Caller = ANONYMOUS) -> None:
        """See engine.contract.pooling_engine.PoolingEngine."""
        self.supervisor.check_ready()
        self.supervisor.in_flight.check_queue(caller)

    async def pool(
        self,
        texts: Sequence[TokenizedText],
        caller: Caller = ANONYMOUS,
        *,
        normalize: bool = False,
        dimensions: int = 0,
        times: RequestTimes | None = None,
    ) -> Sequence[bytes]:
        """See engine.contract.pooling_engine.PoolingEngine."""
        self.supervisor.check_ready()
        in_flight = self.supervisor.in_flight
        request = PoolingRequest(
            in_flight.new_id(),
            tuple(
                PoolingInput(index, text.tokens, text.second) for index, text in enumerate(texts)
            ),
            normalize=normalize,
            dimensions=dimensions,
            client=caller.client,
            priority=caller.shared_priority,
            own_priority=caller.priority,
        )
        vectors = _Vectors(request, times or RequestTimes())
        in_flight.start([vectors], vectors, caller)
        try:
            made = await vectors.all()
            self._observer.prompt_read(sum(text.count for text in texts), None)
            return made
        finally:
            if not vectors.ended:
                in_flight.cancel(request.id)
            in_flight.forget(request.id)


class _Vectors:
    """The vectors of a request, as they come.

    See in_flight_requests.ResultStream and ResumableRequest.
    """

    def __init__(self, request: PoolingRequest, times: RequestTimes) -> None:
        self.request = request
        self.times = times
        self._vectors: dict[int, bytes] = {}
        self._last: asyncio.Future[PoolingOutput] = asyncio.get_running_loop().create_future()

    async def all(self) -> Sequence[bytes]:
        """Wait for all of them."""
        last = await self._last
        if failure := _FAILURES.get(last.finish or ""):
            # Here and not where the output arrived: the log has the id of the request that waits.
            extra = {"failure": failure, "reason": last.reason}
            logger.error("%s: %s", failure, last.reason, extra=extra)
            raise InternalError(f"{failure}. See the server's log for this request id.")
        return [self._vectors[index] for index in range(len(self.request.inputs))]

    @property
    def ended(self) -> bool:
        """Return whether nothing more comes."""
        return self._last.done() and not self._last.cancelled()

    def admit(self) -> None:
        """Do nothing: nobody waits for it."""

    def put(self, output: PoolingOutput) -> None:
        """End, if this is the last output."""
        if output.finish and not self._last.done():
            self._last.set_result(output)

    def fail(self, error: ApiError) -> None:
        """End with an error."""
        if not self._last.done():
            self._last.set_exception(error)

    def note(self, output: PoolingOutput) -> None:
        """Keep vectors: another process need not compute them again."""
        self._vectors.update(output.vectors)

    def remaining(self, steps: int, *, suspect: bool) -> PoolingRequest:  # noqa: ARG002  a protocol's
        """Return the request with the texts that have no vectors."""
        missing = tuple(text for text in self.request.inputs if text.index not in self._vectors)
        return msgspec.structs.replace(self.request, inputs=missing, suspect=suspect)
