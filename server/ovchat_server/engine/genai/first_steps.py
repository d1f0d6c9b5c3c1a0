"""What the first steps of a pipeline take, before any request."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ovchat_server.engine.contract.prompt import Prompt
from ovchat_server.engine.genai.configs import greedy_config

if TYPE_CHECKING:
    from collections.abc import Callable

    import openvino_genai as genai

# Tokens that each step reads besides one. The first time each number prepares.
FURTHER = (0, 0, 0, 0, 2, 0, 16, 0, 2, 0, 16, 0)


def first_steps(
    add: Callable[[Prompt, genai.GenerationConfig], genai.GenerationHandle],
    step: Callable[[], None],
) -> tuple[float, list[tuple[int, float]]]:
    """Return the seconds of a step that reads one token, and those of steps that read more.

    Args:
        add: Adds a sequence to a pipeline in which no other runs.
        step: Runs it once.
    """
    handle = add(Prompt((0,)), greedy_config(max_tokens=2 * len(FURTHER)))
    seconds = []
    for number, further in enumerate(FURTHER):
        # Of other tokens each time: the prefix cache has none of them.
        piece = add(Prompt((number,) * further), greedy_config(max_tokens=1)) if further else None
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
        del piece
    handle.cancel()
    step()
    plain = min(seconds[1:4])
    last = {further: place for place, further in enumerate(FURTHER) if further}
    # The step behind takes longer, too: see StepCost.
    return plain, [(key, sum(seconds[place : place + 2]) - plain) for key, place in last.items()]
