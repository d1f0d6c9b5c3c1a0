"""The plan of an answer: what the engine is asked for, and how its tokens become chunks."""

from __future__ import annotations

import dataclasses
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat_server.chat.assembler import AssemblyOptions
from ovchat_server.domain.completion import CompletionInfo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.domain.completion import ChunkChoice
    from ovchat_server.domain.field_path import SchemaPath
    from ovchat_server.domain.generation import GenerationParams
    from ovchat_server.engine.contract.engine import Caller
    from ovchat_server.engine.contract.generation import GenerationRequest
    from ovchat_server.serving.models import TextModel
    from ovchat_server.serving.render import RenderedPrompt


@dataclass(frozen=True, slots=True)
class GenerationPlan:
    """All that it takes to answer one request, checked.

    Attributes:
        model: Whose engine generates.
        caller: Who waits for it.
        info: What stands on every chunk.
        params: What the request asks to be generated.
        prompts: From what.
        requests: What to ask the engine for, prompt by prompt. Empty: the first chunks are the
            whole answer.
        assembly: How to assemble each choice, prompt by prompt.
        first_chunks: One or more for each choice, in the same order.
        unenforced: What of schemas the answer need not follow.
    """

    model: TextModel
    caller: Caller
    info: CompletionInfo
    params: GenerationParams
    prompts: Sequence[RenderedPrompt]
    requests: Sequence[GenerationRequest]
    assembly: Sequence[AssemblyOptions]
    first_chunks: Sequence[ChunkChoice]
    unenforced: Sequence[SchemaPath] = ()


def engine_params(params: GenerationParams) -> GenerationParams:
    """Return what the engine has to generate for what a request asks for.

    With `max_tokens` of 0 the choices are their prompts, and nothing is generated. Only where
    log probabilities of the prompts are asked for, the engine reports them with a first token:
    of one sequence for each prompt, and the token is dropped.
    """
    if generates(params) or not params.prompt_alternatives():
        return params
    return dataclasses.replace(params, n=1, ending=dataclasses.replace(params.ending, max_tokens=1))


def generates(params: GenerationParams) -> bool:
    """Return whether the engine has anything to generate."""
    return params.ending.max_tokens != 0


def completion_info(model: TextModel, id_prefix: str) -> CompletionInfo:
    """Return what stands on every chunk of a new answer; `id_prefix` is OpenAI's."""
    return CompletionInfo(
        id=f"{id_prefix}-{uuid.uuid4().hex}",
        created=int(time.time()),
        model=model.id,
        system_fingerprint=model.fingerprint,
    )


def assembly_options(
    model: TextModel, params: GenerationParams, *, constrained: bool
) -> AssemblyOptions:
    """Return how to assemble choices, as far as chats and texts have it in common.

    Args:
        model: Who answers.
        params: What is asked for.
        constrained: The whole answer follows a grammar.
    """
    ending = params.ending
    stop_tokens = frozenset(ending.stop_token_ids)
    return AssemblyOptions(
        stop=ending.stop,
        # As vLLM: the model's own end is not reported as a reason, unless it was to be ignored.
        stop_tokens=stop_tokens if ending.ignore_eos else stop_tokens - set(model.files.end_tokens),
        include_stop=ending.include_stop,
        min_tokens=ending.min_tokens,
        # To a grammar a control token is its text: left out, the answer would not follow it.
        special_tokens=not params.skip_special_tokens or constrained,
        # As OVMS shows it.
        end_token=not params.skip_special_tokens,
        logprobs=params.logprobs,
    )
