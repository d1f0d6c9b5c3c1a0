"""All that a server counts, as metrics that Prometheus reads."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, generate_latest

from ovchat_server.domain.errors import ApiError
from ovchat_server.engine.contract.observer import Unobserved
from ovchat_server.metrics import buckets
from ovchat_server.metrics.families import families
from ovchat_server.metrics.histogram import Histogram
from ovchat_server.metrics.model_metrics import GenerationMetrics, PoolingMetrics

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from prometheus_client import Metric

    from ovchat_server.engine.contract.image_messages import ImageOutput
    from ovchat_server.engine.contract.observer import EngineObserver
    from ovchat_server.metrics.model_metrics import ModelMetrics
    from ovchat_server.serving.models import Model
    from ovchat_server.serving.record import RequestRecord


class ServerMetrics:
    """Counts what a server does.

    It is a RequestObserver, makes the EngineObservers, and is a collector of prometheus-client.

    Attributes:
        server: The number of the server, of several.
        models: Those whose engines are ours, by name.
        served: All models whose state is told.
        errors: How many requests ended in an error, by its code and the client's key.
        lag: Seconds that the event loop was late.
    """

    def __init__(self, server: int) -> None:
        """Begin with zeros, as the server of this number."""
        self.server = str(server)
        self.models: dict[str, ModelMetrics[Any]] = {}
        self.lag = Histogram(buckets.LAG)
        self._codes = sorted({error.code for error in _kinds(ApiError)})
        self.errors = Counter({(code, ""): 0 for code in self._codes})
        self.served: Sequence[Model] = ()
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def generation(self, model: str) -> GenerationMetrics:
        """Return what counts for a model that generates."""
        metrics = GenerationMetrics()
        self.models[model] = metrics
        return metrics

    def images(self, model: str) -> EngineObserver[ImageOutput]:
        """Return what counts for the process that encodes images for such a model."""
        return _Restarts(self.models[model])

    def pooling(self, model: str) -> PoolingMetrics:
        """Return what counts for a model that makes vectors."""
        metrics = PoolingMetrics()
        self.models[model] = metrics
        return metrics

    def begin(self, record: RequestRecord, metadata: Mapping[str, str | bytes]) -> None:
        """Do nothing; see RequestObserver."""

    def end(self, record: RequestRecord) -> None:
        """Count a request; see RequestObserver."""
        if error := record.error:
            # A provider's code may be any: then that of its kind.
            code = error.code if error.code in self._codes else type(error).code
            self.errors[code, record.caller.name] += 1
        # Others are of providers, or do not exist: what callers make up is no label.
        if model := self.models.get(record.model):
            model.ended(record)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics, as prometheus-client asks for them."""
        return families(self)

    def exposition(self) -> bytes:
        """Return the metrics in Prometheus' text format."""
        return generate_latest(self._registry)


class _Restarts(Unobserved["ImageOutput"]):
    """Counts the restarts of a process that belongs to a model beside its engine."""

    def __init__(self, model: ModelMetrics[Any]) -> None:
        self._model = model

    def restarted(self) -> None:
        self._model.restarted()


def _kinds(kind: type[ApiError]) -> Iterator[type[ApiError]]:
    yield kind
    for narrower in kind.__subclasses__():
        yield from _kinds(narrower)
