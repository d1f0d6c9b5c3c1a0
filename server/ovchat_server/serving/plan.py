"""The plan of an answer: what the engine is asked for, and how its tokens become chunks."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat_server.chat.assembler import AssemblyOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.domain.completion import ChunkChoice, CompletionInfo
    from ovchat_server.domain.field_path import SchemaPath
    from ovchat_server.domain.generation import GenerationParams
    from ovchat_server.engine.contract.engine import Caller
    from ovchat_server.engine.contract.generation import GenerationRequest
    from ovchat_server.serving.answer_format import Grammar
    from ovchat_server.serving.models import TextModel
    from ovchat_server.serving.render import RenderedPrompt


@dataclass(frozen=True, slots=True)
class GenerationPlan:
    """Everything that is needed to answer one request, after all checks.

    Attributes:
        model: The model that answers.
        caller: Who asks, for fair queueing.
        info: The fields that every chunk repeats.
        params: The generation parameters of the request.
        prompts: The rendered prompts.
        grammar: What the answers follow.
        requests: The requests to the engine, prompt by prompt. If empty, the first chunks are the
            whole answer.
        assembly: How to assemble each choice, prompt by prompt.
        first_chunks: One or more for each choice, in the same order.
        ignored: The names of parameters that have no effect on the model.
        unenforced: The parts of schemas that are not enforced.
    """

    model: TextModel
    caller: Caller
    info: CompletionInfo
    params: GenerationParams
    prompts: Sequence[RenderedPrompt]
    grammar: Grammar
    requests: Sequence[GenerationRequest]
    assembly: Sequence[AssemblyOptions]
    first_chunks: Sequence[ChunkChoice]
    ignored: Sequence[str] = ()
    unenforced: Sequence[SchemaPath] = ()


def engine_params(params: GenerationParams) -> GenerationParams:
    """Return the parameters that the engine generates with.

    They differ from the request's only if `max_tokens` is 0, which asks for nothing but the
    prompts. If their log probabilities are asked for, the engine has to generate one token for
    each prompt to report them, and that token is dropped.
    """
    if generates(params) or not params.prompt_alternatives():
        return params
    return dataclasses.replace(params, n=1, ending=dataclasses.replace(params.ending, max_tokens=1))


def generates(params: GenerationParams) -> bool:
    """Return whether the engine has anything to generate."""
    return params.ending.max_tokens != 0


def assembly_options(
    model: TextModel, params: GenerationParams, *, constrained: bool
) -> AssemblyOptions:
    """Return the options that chats and texts have in common.

    Args:
        model: The model that answers.
        params: The generation parameters of the request.
        constrained: Whether a grammar covers the whole answer.
    """
    ending = params.ending
    stop_tokens = frozenset(ending.stop_token_ids)
    return AssemblyOptions(
        stop=ending.stop,
        # As in vLLM, the model's own end tokens are not reported, unless they are ignored.
        stop_tokens=stop_tokens if ending.ignore_eos else stop_tokens - set(model.files.end_tokens),
        include_stop=ending.include_stop,
        min_tokens=ending.min_tokens,
        # Grammars match the text of control tokens: without it the answer would break the grammar.
        special_tokens=not params.skip_special_tokens or constrained,
        # As OVMS shows it.
        end_token=not params.skip_special_tokens,
        logprobs=params.logprobs,
    )
