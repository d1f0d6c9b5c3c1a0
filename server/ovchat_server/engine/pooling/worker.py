"""What processes run that make vectors of texts: a batch in each step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from ovchat_server.domain.models import EngineLoad
from ovchat_server.engine.contract.messages import (
    BROKEN,
    REFUSED,
    Capabilities,
    EngineMemory,
    Ready,
    Report,
)
from ovchat_server.engine.contract.pooling_engine import TOKEN_BYTES
from ovchat_server.engine.contract.pooling_messages import (
    POOLED,
    PoolingLimits,
    PoolingOutput,
    PoolingRequest,
    PoolingSpec,
    pooling_decoder,
)
from ovchat_server.engine.pooling.batches import Batches
from ovchat_server.engine.pooling.model import PoolingModel
from ovchat_server.engine.pooling.poolings import finished
from ovchat_server.engine.process.error_text import error_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.engine.contract.worker import Worker, WorkerContext
    from ovchat_server.engine.pooling.batches import BatchText, WaitingRequest
    from ovchat_server.engine.pooling.poolings import Floats


class PoolingWorker:
    """See engine.contract.worker.Worker."""

    def __init__(self, model: PoolingModel, max_batch_tokens: int, context: WorkerContext) -> None:
        """Run a model that was loaded, on batches of so many tokens."""
        self.decoder = pooling_decoder()
        self._model = model
        self._context = context
        self._batches = Batches(max_batch_tokens)
        # The batch that was chosen and has not run; the requests that have begun, and all.
        self._batch: list[BatchText] = []
        self._running: set[int] = set()
        self._requests: set[int] = set()
        self._refused: list[PoolingOutput] = []
        self.ready = Ready(
            PoolingLimits(model.size),
            self.load(),
            Capabilities(),
            EngineMemory(model.weight_bytes),
        )

    def add(self, request: PoolingRequest) -> None:
        """Take a request."""
        lengths = [len(text.tokens) for text in request.inputs]
        if not lengths or any(not length or length % TOKEN_BYTES for length in lengths):
            self._refused.append(PoolingOutput(request.id, [], REFUSED, "a text has no tokens"))
            return
        self._requests.add(request.id)
        self._batches.add(request)

    def cancel(self, identifier: int) -> None:
        """Give a request up."""
        self._batches.remove(identifier)
        self._batch = [item for item in self._batch if item.owner.request.id != identifier]
        self._ended(identifier)

    def poll(self) -> None:
        """Do nothing: nothing is done beside the steps."""

    @property
    def busy(self) -> bool:
        """Return whether texts wait."""
        return bool(self._batch or self._batches or self._refused)

    def step(self) -> Report[PoolingOutput]:
        """Run a batch. If requests begin in it, only say so; it runs in the next step.

        Otherwise nobody would know whose texts a process has died of.

        Raises:
            RuntimeError: Nothing can be computed any more.
        """
        refused, self._refused = self._refused, []
        if not self._batch and self._batches:
            self._batch = self._batches.next()
        admitted = {item.owner.request.id for item in self._batch} - self._running
        if admitted or refused:
            self._running |= admitted
            return Report(refused, self.load(), sorted(admitted))
        batch, self._batch = self._batch, []
        outputs = self._run(batch)
        for output in outputs:
            if output.finish:
                self._ended(output.id)
        return Report(outputs, self.load())

    def load(self) -> EngineLoad:
        """Return how many requests have begun, and how many have not."""
        running = len(self._running)
        return EngineLoad(running_requests=running, waiting_requests=len(self._requests) - running)

    def _ended(self, identifier: int) -> None:
        self._requests.discard(identifier)
        self._running.discard(identifier)

    def _run(self, batch: Sequence[BatchText]) -> list[PoolingOutput]:
        suspect = next((item.owner.request for item in batch if item.owner.request.suspect), None)
        if suspect:
            self._context.isolate(suspect.id)
        try:
            outputs = self._together(batch)
        except Exception:  # noqa: BLE001  whatever it is, it may be one request's fault
            outputs = self._separately(batch)
        if suspect:
            self._context.isolate(None)
        return outputs

    def _together(self, batch: Sequence[BatchText]) -> list[PoolingOutput]:
        vectors: dict[int, list[tuple[int, bytes]]] = {}
        owners: dict[int, WaitingRequest] = {}
        for item, vector in zip(batch, self._model.run([item.text for item in batch]), strict=True):
            request = item.owner.request
            owners[request.id] = item.owner
            packed = _packed(vector, request)
            vectors.setdefault(request.id, []).append((item.text.index, packed))
        return [
            PoolingOutput(identifier, vectors[identifier], None if owner.left else POOLED)
            for identifier, owner in owners.items()
        ]

    def _separately(self, batch: Sequence[BatchText]) -> list[PoolingOutput]:
        """Run a batch that failed request by request: those that fail alone are to blame."""
        parts: dict[int, list[BatchText]] = {}
        for item in batch:
            parts.setdefault(item.owner.request.id, []).append(item)
        outputs = []
        for identifier, part in parts.items():
            try:
                outputs += self._together(part)
            except Exception as error:  # noqa: BLE001  as above
                outputs.append(PoolingOutput(identifier, [], BROKEN, error_text(error)))
                self._batches.remove(identifier)
        if all(output.finish == BROKEN for output in outputs):
            # Perhaps it is not their fault: then this raises, too.
            self._model.try_out()
        return outputs


def _packed(vector: Floats, request: PoolingRequest) -> bytes:
    """Return the vector of a text as the request asks for it.

    Raises:
        ValueError: It is none that anybody could use.
    """
    if not np.isfinite(vector).all():
        raise ValueError("the model's vector holds numbers that are not finite")
    asked = finished(vector, request.dimensions, normalize=request.normalize)
    return asked.astype("<f4").tobytes()


def load(
    spec: bytes, context: WorkerContext
) -> Worker[PoolingRequest, PoolingOutput, PoolingLimits]:
    """Load the model of a PoolingSpec; see engine.contract.worker.LoadWorker."""
    decoded = msgspec.msgpack.decode(spec, type=PoolingSpec)
    return PoolingWorker(PoolingModel(decoded), decoded.max_batch_tokens, context)
