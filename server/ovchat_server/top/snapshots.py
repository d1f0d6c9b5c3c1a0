"""The numbers of each server, now and when it was last asked."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Self, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from ovchat.v1 import server_service_pb2

# Labels that tell numbers of one name apart; over all others they are summed.
_SUBJECTS: Final = ("model_name", "code")


class Key(NamedTuple):
    """What a number is of.

    Attributes:
        family: The metric's name.
        subject: The name of the model, or the code of the error; "" for the server.
        bound: The upper bound of a histogram's bucket; None if it is none.
    """

    family: str
    subject: str = ""
    bound: float | None = None


Numbers: TypeAlias = "Mapping[Key, float]"


def total(parts: Iterable[Numbers]) -> dict[Key, float]:
    """Return the sums of numbers."""
    sums: defaultdict[Key, float] = defaultdict(float)
    for part in parts:
        for key, value in part.items():
            sums[key] += value
    return dict(sums)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The numbers of a server at one time; see GetMetricsResponse."""

    server: int
    replicas: int
    version: str
    start_time: float
    uptime: float
    numbers: Numbers

    @classmethod
    def of(cls, response: server_service_pb2.GetMetricsResponse) -> Self:
        """Return what a server answered."""
        return cls(
            response.server,
            response.replicas,
            response.version,
            response.start_time,
            response.uptime,
            total(_numbers(response)),
        )


def _numbers(response: server_service_pb2.GetMetricsResponse) -> Iterable[Numbers]:
    for family in response.families:
        for metric in family.metrics:
            labels = metric.labels
            subject = next((labels[name] for name in _SUBJECTS if name in labels), "")
            if metric.WhichOneof("measured") == "value":
                yield {Key(family.name, subject): metric.value}
            for bucket in metric.histogram.buckets:
                key = Key(family.name, subject, bucket.upper_bound)
                yield {key: float(bucket.cumulative_count)}


@dataclass(frozen=True, slots=True)
class Window:
    """What is known of a server.

    Attributes:
        now: What it answered last.
        before: What it answered the time before; None if it was asked once.
        missed: How often it was not heard since.
    """

    now: Snapshot
    before: Snapshot | None = None
    missed: int = 0

    def rates(self) -> Numbers:
        """Return what each number grew by, by the second; nothing if that is not known yet.

        A server that was started again has counted from zero.
        """
        now, before = self.now, self.before
        if before is None:
            return {}
        again = now.start_time != before.start_time
        seconds = now.uptime if again else now.uptime - before.uptime
        if seconds <= 0:
            return {}
        old = {} if again else before.numbers
        return {key: (value - old.get(key, 0.0)) / seconds for key, value in now.numbers.items()}


def heard(windows: Mapping[int, Window], snapshots: Collection[Snapshot]) -> dict[int, Window]:
    """Return what is known of each server, by its number, once some have answered.

    Args:
        windows: What was known.
        snapshots: What those that were heard have answered, at least one of them.
    """
    replicas = max(snapshot.replicas for snapshot in snapshots)
    known = {
        number: dataclasses.replace(window, missed=window.missed + 1)
        for number, window in windows.items()
        # They may have become fewer.
        if number <= replicas
    }
    for snapshot in snapshots:
        old = windows.get(snapshot.server)
        known[snapshot.server] = Window(snapshot, old.now if old else None)
    return dict(sorted(known.items()))
