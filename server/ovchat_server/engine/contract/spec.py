"""What an engine process is sent first."""

from __future__ import annotations

from typing import Annotated

import msgspec

Count = Annotated[int, msgspec.Meta(ge=1)]
Duration = Annotated[float, msgspec.Meta(gt=0)]


class EngineOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How any engine is kept running, and how many requests may wait for it.

    docs/configuration.md has these descriptions, and those of subclasses.

    Attributes:
        load_timeout: Seconds that loading the model may take.
        step_timeout: Seconds of silence after which an engine counts as hung and is restarted;
            choose more than any step takes.
        max_queue: Choices (`n` of a request) that may wait for a place in the engine. More get
            429: first those of the client with the most choices waiting.
        max_queue_wait: Seconds that a choice may wait; then its request gets 429.
    """

    load_timeout: Duration = 600.0
    step_timeout: Duration = 120.0
    max_queue: Count = 256
    max_queue_wait: Duration = 60.0


class EngineSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What any engine process is told; a kind of work adds its own in a subclass.

    Attributes:
        name: The model's id, shown by `ps`.
        path: The model's folder, absolute; "": it has none.
        worker: Import path of what the process runs: "module:function", see
            engine.contract.worker.LoadWorker.
        processors: Those that it may run on; none: as the server.
        replicas: Servers that run one of these, this one among them.
    """

    name: str
    worker: str
    path: str = ""
    options: EngineOptions = EngineOptions()
    processors: tuple[int, ...] = ()
    replicas: int = 1
