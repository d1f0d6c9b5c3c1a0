"""What an engine process is sent first."""

from __future__ import annotations

import msgspec


class EngineOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How any engine is kept running, and how many requests may wait for it.

    Attributes:
        load_timeout: Seconds that loading the model may take.
        step_timeout: Seconds after which an engine that says nothing hangs, and is restarted:
            more than a step ever takes.
        max_queue: Most requests that may wait for a place in the engine, each choice being one.
            More are refused: those of the client that has most there.
        max_queue_wait: Seconds that each of them may wait.
    """

    load_timeout: float = 600.0
    step_timeout: float = 120.0
    max_queue: int = 256
    max_queue_wait: float = 60.0

    def __post_init__(self) -> None:
        """Check what types cannot say.

        Raises:
            ValueError: A value makes no sense; msgspec names the table it stands in.
        """
        for name in self.__struct_fields__:
            # Not "<= 0", which a NaN is not.
            if name.endswith(("_timeout", "_wait")) and not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)}")
        if self.max_queue < 1:
            raise ValueError(f"max_queue must be at least 1, got {self.max_queue}")


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
