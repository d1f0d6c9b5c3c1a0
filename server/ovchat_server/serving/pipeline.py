"""The path of every completion request to a model whose engine is ours, stage by stage.

    render    turn the request into prompts, as tokens
    plan      check the limits, compile the grammar, make the requests to the engine
    run       generate while the answer is read
    assemble  turn tokens into chunks

The first two are here; a GeneratedAnswer does the others. What chats and texts do differently is
in their CompletionStages. A new stage is a line of `GenerationPipeline._planned` or `_plan`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from ovchat_server.domain.chat import ChatRequest
from ovchat_server.serving.bad_words import banned_sequences
from ovchat_server.serving.cache_salts import CacheSalts
from ovchat_server.serving.caller import current_caller
from ovchat_server.serving.completion_info import completion_info
from ovchat_server.serving.generated_answer import GeneratedAnswer
from ovchat_server.serving.generation import (
    generation_requests,
    resolve_sampling,
    resolve_speculation,
    without_effect,
)
from ovchat_server.serving.limits import check_limits, check_prompt_logprobs
from ovchat_server.serving.plan import GenerationPlan, engine_params, generates
from ovchat_server.serving.prediction import with_prediction
from ovchat_server.serving.record import current_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ovchat_server.chat.assembler import AssemblyOptions
    from ovchat_server.domain.completion import ChunkChoice
    from ovchat_server.domain.generation import GenerationParams
    from ovchat_server.domain.text import TextRequest
    from ovchat_server.serving.answer_format import AnswerFormat
    from ovchat_server.serving.deadline import Deadline
    from ovchat_server.serving.limits import RequestRules
    from ovchat_server.serving.models import TextModel
    from ovchat_server.serving.render import RenderedPrompt
    from ovchat_server.serving.worker_pool import WorkerPool

RequestT = TypeVar("RequestT", bound="ChatRequest | TextRequest")
RequestT_contra = TypeVar("RequestT_contra", bound="ChatRequest | TextRequest", contravariant=True)


class CompletionStages(Protocol[RequestT_contra]):
    """What chats and texts do differently at each stage.

    Attributes:
        repeats_prompts: Whether each choice repeats what is reported of its prompt; otherwise
            the answer holds it once.
    """

    repeats_prompts: bool

    async def render(
        self, model: TextModel, request: RequestT_contra, workers: WorkerPool
    ) -> Sequence[RenderedPrompt]:
        """Render the prompts; what takes time runs in a thread of `workers`."""
        ...

    async def constrain(
        self,
        model: TextModel,
        request: RequestT_contra,
        prompts: Sequence[RenderedPrompt],
        max_tokens: Sequence[int],
    ) -> AnswerFormat:
        """Write and check the grammar that the answer has to follow, and bound its reasoning.

        Args:
            model: The model that answers.
            request: The request.
            prompts: The rendered prompts.
            max_tokens: The maximum number of tokens to generate for each.

        Raises:
            InvalidRequestError: The grammar or the bound cannot be enforced.
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


@dataclass(frozen=True, slots=True)
class GenerationPipeline:
    """How models answer whose engine is ours.

    Attributes:
        chats: What is specific to chats.
        texts: What is specific to text completions.
        workers: Threads for rendering and other work that would block the event loop.
        rules: The limits of every request.
        salts: Keep what one caller's prompts leave in the prefix cache from others.
    """

    chats: CompletionStages[ChatRequest]
    texts: CompletionStages[TextRequest]
    workers: WorkerPool
    rules: RequestRules
    salts: CacheSalts = dataclasses.field(default_factory=CacheSalts)

    async def answer(
        self, model: TextModel, request: ChatRequest | TextRequest, deadline: Deadline
    ) -> GeneratedAnswer:
        """Plan the answer to a request. The engine generates when the answer is read.

        Raises:
            ApiError: It cannot be answered; see the subclasses.
        """
        if isinstance(request, ChatRequest):
            plan = await self._planned(self.chats, model, request)
        else:
            plan = await self._planned(self.texts, model, request)
        return GeneratedAnswer(plan, self.workers, deadline)

    async def _planned(
        self, stages: CompletionStages[RequestT], model: TextModel, request: RequestT
    ) -> GenerationPlan:
        params = engine_params(request.generation)
        if generates(params):
            # Before anything expensive: a request that will be refused is not rendered.
            model.engine.check_queue(current_caller(params.priority))
        record = current_record()
        with record.stage("render"):
            prompts = await stages.render(model, request, self.workers)
        record.prompt_tokens = sum(len(prompt.tokens) for prompt in prompts)
        return await self._plan(stages, model, request, prompts)

    async def _plan(
        self,
        stages: CompletionStages[RequestT],
        model: TextModel,
        request: RequestT,
        prompts: Sequence[RenderedPrompt],
    ) -> GenerationPlan:
        params = engine_params(request.generation)
        # Check the limits first: compiling a grammar is expensive.
        max_tokens = check_limits(model, params, prompts, strict=self.rules.strict)
        copies = request.generation.n if stages.repeats_prompts else 1
        check_prompt_logprobs(params, prompts, self.rules.limits.max_prompt_logprobs, copies)
        banned = await banned_sequences(model, params.sampling.bad_words, self.workers)
        with current_record().stage("constrain"):
            answer_format = await stages.constrain(model, request, prompts, max_tokens)
        sampling = dataclasses.replace(
            resolve_sampling(params.sampling, model.files.defaults, banned),
            reasoning=answer_format.budget,
        )
        speculation = resolve_speculation(
            params.speculation, model.files.defaults, model.speculation
        )
        requests = (
            generation_requests(
                params,
                self._salted(model, params, prompts),
                max_tokens,
                sampling,
                answer_format.grammar,
                speculation=speculation,
            )
            if generates(params)
            else []
        )
        info = completion_info(
            request, model.id, model.fingerprint, sampling.temperature, sampling.top_p
        )
        prompt_tokens = sum(len(prompt.tokens) for prompt in prompts)
        return GenerationPlan(
            model=model,
            caller=current_caller(params.priority),
            info=dataclasses.replace(info, prompt_tokens=prompt_tokens),
            params=request.generation,
            prompts=prompts,
            grammar=answer_format.grammar,
            requests=await with_prediction(
                requests, model, params.speculation.prediction, self.workers
            ),
            assembly=tuple(stages.assembly(model, request, prompts, answer_format)),
            first_chunks=tuple(stages.first_chunks(request, prompts)),
            ignored=without_effect(params.speculation, model.speculation),
            unenforced=answer_format.unenforced,
        )

    def _salted(
        self, model: TextModel, params: GenerationParams, prompts: Sequence[RenderedPrompt]
    ) -> Sequence[RenderedPrompt]:
        """Return the prompts as the engine is to know them."""
        salt = self.salts.salt(current_record().caller.name, params.cache_salt)
        capabilities = model.engine.status.capabilities
        # Other devices than the CPU might take a salted token for another one.
        if not salt or not (capabilities and capabilities.sees_logits):
            return prompts
        return [
            dataclasses.replace(item, prompt=dataclasses.replace(item.prompt, cache_salt=salt))
            for item in prompts
        ]
