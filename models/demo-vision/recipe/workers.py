"""One process for each processor, each with a thread: threads would wait for each other.

Each works on a batch of its own, and all learn from the average.
"""

import tempfile
import time
from collections.abc import Callable, Sequence

import torch
from torch import distributed, multiprocessing, nn


def run(work: Callable[..., None], processes: int, *arguments: object) -> None:
    """Call `work(rank, ...)` in that many processes, and wait for them.

    They are forked, so what they are given takes memory once.
    """
    with tempfile.TemporaryDirectory() as folder:
        given = (work, processes, f"file://{folder}/meeting", arguments)
        multiprocessing.start_processes(_start, given, processes, start_method="fork")


def _start(
    rank: int,
    work: Callable[..., None],
    processes: int,
    meeting: str,
    arguments: tuple[object, ...],
) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    distributed.init_process_group("gloo", init_method=meeting, rank=rank, world_size=processes)
    work(rank, *arguments)
    distributed.destroy_process_group()


class Clock:
    """How much of a phase is over, the same for all workers."""

    def __init__(self, minutes: float) -> None:
        """Start a phase of so many minutes."""
        self._start, self._seconds = time.monotonic(), 60 * minutes
        self._told = self._start
        self.share = 0.0
        self.steps = 0

    def average(self, parameters: Sequence[nn.Parameter]) -> None:
        """Average all workers' gradients, and their clocks."""
        gradients = [x.grad for x in parameters if x.grad is not None]
        own = (time.monotonic() - self._start) / self._seconds
        together = torch.cat([*(x.flatten() for x in gradients), torch.tensor([own])])
        distributed.all_reduce(together)
        together /= distributed.get_world_size()
        self.share = together[-1].item()
        parts = together[:-1].split([x.numel() for x in gradients])
        for gradient, part in zip(gradients, parts, strict=True):
            gradient.copy_(part.view_as(gradient))
        self.steps += 1

    def is_time_to_tell(self) -> bool:
        """Whether this worker is to tell how it goes: the first one, each minute."""
        if distributed.get_rank() or time.monotonic() - self._told < 60:
            return False
        self._told = time.monotonic()
        return True
