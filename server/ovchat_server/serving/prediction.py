"""A predicted answer as tokens, for the engine to propose."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING

from ovchat_server.tokenizer.long_texts import MAX_UNCUT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.engine.contract.generation import GenerationRequest
    from ovchat_server.serving.model_files import ModelFiles
    from ovchat_server.serving.models import TextModel
    from ovchat_server.serving.worker_pool import WorkerPool

# An answer may leave out half of what was expected.
LEFT_OUT = 2


async def with_prediction(
    requests: Sequence[GenerationRequest],
    model: TextModel,
    prediction: str | None,
    workers: WorkerPool,
) -> Sequence[GenerationRequest]:
    """Return requests with the tokens of a prediction, if any are proposed to them.

    Args:
        requests: What the engine is to be asked.
        model: Whose tokens they are.
        prediction: What the answers are expected to say; None if nothing is known.
        workers: Threads; a prediction may be as long as a prompt.
    """
    looked_up = any(item.speculates and not item.speculation.drafts for item in requests)
    if not (prediction and looked_up):
        return requests
    most = LEFT_OUT * max(request.max_tokens for request in requests)
    tokens = await workers.run(partial(_tokenize, model.files, prediction, most))
    return [dataclasses.replace(request, prediction=tokens) for request in requests]


def _tokenize(files: ModelFiles, prediction: str, most: int) -> tuple[int, ...]:
    # What is beyond a MiB is far from the answer's beginning.
    text = prediction[:MAX_UNCUT]
    tokens = files.tokenizer.encode(text, most_tokens=min(most, files.context_length))
    # Others are never generated, and reading them the engine would leave its tables.
    return tuple(token for token in tokens if token < files.vocabulary_size)
