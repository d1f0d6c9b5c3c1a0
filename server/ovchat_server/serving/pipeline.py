"""The path of every completion request, chat or text, stage by stage.

    resolve   find the model that the request names
    render    turn the request into prompts, as tokens
    plan      check the limits, compile the grammar, make the requests to the engine
    run       generate while the answer is read
    assemble  turn tokens into chunks

The first three are here; an Answer does the others. What chats and texts do differently is in
their CompletionStages. A new stage is a line of `Completions.answer` or of `Completions._plan`.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from ovchat_server.serving.answer import Answer
from ovchat_server.serving.bad_words import banned_sequences
from ovchat_server.serving.caller import current_caller
from ovchat_server.serving.deadline import Deadline
from ovchat_server.serving.generation import (
    generation_requests,
    resolve_sampling,
    resolve_speculation,
    without_effect,
)
from ovchat_server.serving.limits import check_limits, check_prompt_logprobs
from ovchat_server.serving.models import TextModel
from ovchat_server.serving.plan import GenerationPlan, completion_info, engine_params, generates
from ovchat_server.serving.prediction import with_prediction
from ovchat_server.serving.reasoning import reasoning_budget
from ovchat_server.serving.record import current_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ovchat_server.chat.assembler import AssemblyOptions
    from ovchat_server.domain.chat import ChatRequest
    from ovchat_server.domain.completion import ChunkChoice
    from ovchat_server.domain.generation import GenerationParams
    from ovchat_server.domain.text import TextRequest
    from ovchat_server.serving.answer_format import AnswerFormat
    from ovchat_server.serving.limits import RequestRules
    from ovchat_server.serving.models import ModelRegistry
    from ovchat_server.serving.render import RenderedPrompt
    from ovchat_server.serving.worker_pool import WorkerPool

RequestT = TypeVar("RequestT", bound="ChatRequest | TextRequest")
RequestT_contra = TypeVar("RequestT_contra", bound="ChatRequest | TextRequest", contravariant=True)


class CompletionStages(Protocol[RequestT_contra]):
    """What chats and texts do differently at each stage.

    Attributes:
        id_prefix: OpenAI's prefix of an answer's id.
        repeats_prompts: Whether each choice repeats what is reported of its prompt; otherwise
            the answer holds it once.
    """

    id_prefix: str
    repeats_prompts: bool

    async def render(
        self, model: TextModel, request: RequestT_contra, workers: WorkerPool
    ) -> Sequence[RenderedPrompt]:
        """Render the prompts; what takes time runs in a thread of `workers`."""
        ...

    async def constrain(
        self, model: TextModel, request: RequestT_contra, prompts: Sequence[RenderedPrompt]
    ) -> AnswerFormat:
        """Write and check the grammar that the answer has to follow.

        Raises:
            InvalidRequestError: The grammar cannot be enforced.
            UnavailableError: The grammar cannot be checked now.
        """
        ...

    def assembly(
        self,
        model: TextModel,
        request: RequestT_contra,
        prompts: Sequence[RenderedPrompt],
        answer_format: AnswerFormat,
    ) -> Iterable[AssemblyOptions]:
        """Return how to assemble each choice, prompt by prompt."""
        ...

    def first_chunks(
        self, request: RequestT_contra, prompts: Sequence[RenderedPrompt]
    ) -> Iterable[ChunkChoice]:
        """Return the first chunk of each choice, prompt by prompt."""
        ...


class Completions(Generic[RequestT]):
    """Answers the requests of one endpoint."""

    def __init__(
        self,
        stages: CompletionStages[RequestT],
        models: ModelRegistry,
        workers: WorkerPool,
        rules: RequestRules,
    ) -> None:
        """Answer with `models`.

        Args:
            stages: What is specific to the endpoint.
            models: The models to choose from.
            workers: Threads for rendering and other work that would block the event loop.
            rules: The limits of every request.
        """
        self._stages = stages
        self._models = models
        self._workers = workers
        self._rules = rules

    async def answer(self, request: RequestT) -> Answer:
        """GenerationPlan the answer to a request. The engine generates when the answer is read.

        Raises:
            ApiError: It cannot be answered; see the subclasses.
        """
        deadline = Deadline(self._rules.timeout)
        async with deadline.limit():
            model = self._models.get_as(TextModel, request.model)
            record = current_record()
            record.model = model.id
            params = engine_params(request.generation)
            if generates(params):
                # Before anything expensive: a request that will be refused is not rendered.
                model.engine.check_queue(current_caller(params.priority))
            prompts = await self._stages.render(model, request, self._workers)
            record.prompt_tokens = sum(len(prompt.tokens) for prompt in prompts)
            plan = await self._plan(model, request, params, prompts)
        return Answer(plan, self._workers, deadline)

    async def _plan(
        self,
        model: TextModel,
        request: RequestT,
        params: GenerationParams,
        prompts: Sequence[RenderedPrompt],
    ) -> GenerationPlan:
        stages = self._stages
        # Check the limits first: compiling a grammar is expensive.
        max_tokens = check_limits(model, params, prompts, strict=self._rules.strict)
        copies = request.generation.n if stages.repeats_prompts else 1
        check_prompt_logprobs(params, prompts, self._rules.limits.max_prompt_logprobs, copies)
        banned = await banned_sequences(model, params.sampling.bad_words, self._workers)
        answer_format = await stages.constrain(model, request, prompts)
        sampling = dataclasses.replace(
            resolve_sampling(params.sampling, model.files.defaults, banned),
            reasoning=reasoning_budget(model, answer_format.reasoning, max(max_tokens)),
        )
        speculation = resolve_speculation(
            params.speculation, model.files.defaults, model.speculation
        )
        requests = (
            generation_requests(
                params,
                prompts,
                max_tokens,
                sampling,
                answer_format.grammar,
                speculation=speculation,
            )
            if generates(params)
            else []
        )
        return GenerationPlan(
            model=model,
            caller=current_caller(params.priority),
            info=completion_info(model, stages.id_prefix, sampling),
            params=request.generation,
            prompts=prompts,
            requests=await with_prediction(
                requests, model, params.speculation.prediction, self._workers
            ),
            assembly=tuple(stages.assembly(model, request, prompts, answer_format)),
            first_chunks=tuple(stages.first_chunks(request, prompts)),
            ignored=without_effect(params.speculation, model.speculation),
            unenforced=answer_format.unenforced,
        )
