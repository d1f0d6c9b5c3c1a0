"""The way of every request for a completion, chat or text, stage by stage.

    resolve   find the model that the request names
    render    make the tokens of its prompts
    plan      check the limits, compile the grammar, say what the engine is asked for
    run       let the engine generate while the answer is read
    assemble  make chunks of its tokens

Here are the first three; an Answer does the others. What chats and texts do differently is in
their endpoints. A new stage is a line of `Completions.answer` or of `Completions._plan`.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from ovchat_server.serving.answer import Answer
from ovchat_server.serving.bad_words import banned_sequences
from ovchat_server.serving.caller import current_caller
from ovchat_server.serving.deadline import Deadline
from ovchat_server.serving.generation import generation_requests, resolve_sampling
from ovchat_server.serving.limits import check_limits, check_prompt_logprobs
from ovchat_server.serving.models import TextModel
from ovchat_server.serving.plan import Plan, completion_info, engine_params, generates
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


class Endpoint(Protocol[RequestT_contra]):
    """What the requests of one endpoint have of their own at each stage.

    Attributes:
        id_prefix: OpenAI's prefix of an answer's id.
        repeats_prompts: Each choice holds what is reported of its prompt; otherwise the answer
            holds it once.
    """

    id_prefix: str
    repeats_prompts: bool

    def render(self, model: TextModel, request: RequestT_contra) -> Sequence[RenderedPrompt]:
        """Render the prompts. Called in a worker thread."""
        ...

    async def constrain(
        self, model: TextModel, request: RequestT_contra, prompts: Sequence[RenderedPrompt]
    ) -> AnswerFormat:
        """Compile the grammar that the answer has to follow.

        Raises:
            InvalidRequestError: What is asked for cannot be enforced.
            UnavailableError: Nobody can tell now.
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
        """Return what each choice begins with, prompt by prompt."""
        ...


class Completions(Generic[RequestT]):
    """Answers the requests of one endpoint."""

    def __init__(
        self,
        endpoint: Endpoint[RequestT],
        models: ModelRegistry,
        workers: WorkerPool,
        rules: RequestRules,
    ) -> None:
        """Answer with `models`.

        Args:
            endpoint: What its requests have of their own.
            models: Those that there are.
            workers: For rendering, and what else would hold up the event loop.
            rules: What is allowed to every request.
        """
        self._endpoint = endpoint
        self._models = models
        self._workers = workers
        self._rules = rules

    async def answer(self, request: RequestT) -> Answer:
        """Plan the answer to a request. The engine generates when the answer is read.

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
                # Before anything expensive: nobody's prompt is rendered in vain.
                model.engine.check_queue(current_caller(params.priority))
            prompts = await self._workers.run(partial(self._endpoint.render, model, request))
            record.prompt_tokens = sum(len(prompt.tokens) for prompt in prompts)
            plan = await self._plan(model, request, params, prompts)
        return Answer(plan, self._workers, deadline)

    async def _plan(
        self,
        model: TextModel,
        request: RequestT,
        params: GenerationParams,
        prompts: Sequence[RenderedPrompt],
    ) -> Plan:
        endpoint = self._endpoint
        # What does not fit is refused before a grammar is compiled for it.
        max_tokens = check_limits(model, params, prompts, strict=self._rules.strict)
        copies = request.generation.n if endpoint.repeats_prompts else 1
        check_prompt_logprobs(params, prompts, self._rules.limits.max_prompt_logprobs, copies)
        banned = await banned_sequences(model, params.sampling.bad_words, self._workers)
        answer_format = await endpoint.constrain(model, request, prompts)
        sampling = dataclasses.replace(
            resolve_sampling(params.sampling, model.files.defaults, banned),
            reasoning=reasoning_budget(model, answer_format.reasoning, max(max_tokens)),
        )
        requests = (
            generation_requests(params, prompts, max_tokens, sampling, answer_format.grammar)
            if generates(params)
            else []
        )
        return Plan(
            model=model,
            caller=current_caller(params.priority),
            info=completion_info(model, endpoint.id_prefix),
            params=request.generation,
            prompts=prompts,
            requests=requests,
            assembly=tuple(endpoint.assembly(model, request, prompts, answer_format)),
            first_chunks=tuple(endpoint.first_chunks(request, prompts)),
            unenforced=answer_format.unenforced,
        )
