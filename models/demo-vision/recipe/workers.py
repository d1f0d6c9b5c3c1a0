"""One process for each processor, each with a thread: threads would wait for each other.

Each works on a batch of its own, and all learn from the average.
"""

import tempfile
import time
from collections.abc import Callable, Sequence

import torch
from torch import distributed, multiprocessing, nn

_WARM_UP = 0.05
"""The share of the time in which the learning rate rises."""

_TELL = 100
"""Seconds between two lines."""
_DECAY, _MOMENTUM = 0.02, 0.95


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
        """Whether this worker is to tell how it goes: the first one, now and then."""
        if distributed.get_rank() or time.monotonic() - self._told < _TELL:
            return False
        self._told = time.monotonic()
        return True


class Optimiser:
    """Muon for matrices inside the layers, which learn sooner by it; AdamW for the rest.

    PyTorch's own Muon works in bfloat16, which processors without it take ten times as long for.
    """

    def __init__(self, module: nn.Module, rate: float) -> None:
        """Take the parameters of the module that are to learn."""
        named = [(name, x) for name, x in module.named_parameters() if x.requires_grad]
        self._all = [x for _, x in named]
        self._inside = [x for name, x in named if ".layers." in name and x.dim() == 2]
        self._momenta = [torch.zeros_like(x) for x in self._inside]
        inside = {id(x) for x in self._inside}
        rest = [x for x in self._all if id(x) not in inside]
        self._rest = torch.optim.AdamW(rest, lr=rate, weight_decay=_DECAY, betas=(0.9, 0.98))
        self._rate = rate

    def step(self, loss: torch.Tensor, clock: Clock) -> None:
        """Learn from the loss, together with the other workers."""
        rate = self._rate * rate_at(clock.share)
        self._rest.param_groups[0]["lr"] = rate
        for parameter in self._all:
            parameter.grad = None
        loss.backward()
        clock.average(self._all)
        nn.utils.clip_grad_norm_(self._all, 1.0)
        self._rest.step()
        with torch.no_grad():
            for parameter, momentum in zip(self._inside, self._momenta, strict=True):
                momentum.lerp_(parameter.grad, 1 - _MOMENTUM)
                change = _orthogonal(parameter.grad.lerp(momentum, _MOMENTUM))
                # As large as AdamW's changes are.
                size = 0.2 * max(parameter.shape) ** 0.5
                parameter.mul_(1 - rate * _DECAY).sub_(change, alpha=rate * size)


def _orthogonal(matrix: torch.Tensor) -> torch.Tensor:
    """Nearly the closest matrix that stretches nothing: Newton and Schulz, five times."""
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if tall else matrix
    x = x / (x.norm() + 1e-7)
    for _ in range(5):
        square = x @ x.T
        x = 3.4445 * x + (-4.775 * square + 2.0315 * square @ square) @ x
    return x.T if tall else x


def rate_at(share: float) -> float:
    """The learning rate by the share of the time, of the highest: up, then down to nothing."""
    return min(share / _WARM_UP + 0.02, 1, max(0.01, 1.2 * (1 - share)))
