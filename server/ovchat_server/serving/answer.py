"""The choices of one request, as they are generated."""

from __future__ import annotations

import contextlib
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat_server.api.completion import Chunk, Completion, CompletionInfo, FinishReason, Usage
from ovchat_server.chat.agent_format import TagWriter, with_tags
from ovchat_server.chat.assembler import AssemblyOptions
from ovchat_server.chat.collector import ChoiceCollector
from ovchat_server.serving.caller import current_caller
from ovchat_server.serving.deadline import Deadline

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from ovchat_server.api.chat import CallTags
    from ovchat_server.api.completion import ChunkChoice
    from ovchat_server.api.generation import GenerationParams, StreamOptions
    from ovchat_server.chat.assembler import ChoiceAssembler
    from ovchat_server.engine.contract.generation import GeneratedTokens, GenerationRequest
    from ovchat_server.serving.models import ServedModel
    from ovchat_server.serving.opening import Opening

NO_DEADLINE = Deadline(None)


@dataclass(frozen=True, slots=True)
class Answer:
    """One request being answered.

    Attributes:
        info: What stands on every chunk.
        requests: What to ask the engine. Empty: the opening is all.
        prompt_tokens: Of all prompts, each counted once.
        assemblers: One for each choice: for each sequence of `requests`, in their order, where
            choices are answered.
        opening: What comes before their tokens.
        call_tags: Write calls into the text as well.
        priority: Of those that wait for the engine, lower goes first.
        deadline: When it has to be complete.
    """

    model: ServedModel
    info: CompletionInfo
    requests: Sequence[GenerationRequest]
    prompt_tokens: int
    assemblers: Sequence[ChoiceAssembler]
    opening: Opening
    call_tags: CallTags | None = None
    priority: int = 0
    deadline: Deadline = NO_DEADLINE

    async def whole(self) -> Completion:
        """The whole answer: what a stream's reader would join.

        Raises:
            ApiError: There is none; see the subclasses.
        """
        collectors = [ChoiceCollector() for _ in self.assemblers]
        async with contextlib.aclosing(self._choices()) as choices:
            async for choice in choices:
                collectors[choice.index].add(choice)
        whole = [collector.choice() for collector in collectors]
        if self.call_tags:
            whole = [with_tags(choice, self.call_tags) for choice in whole]
        return Completion(self.info, tuple(whole), self._usage())

    async def stream(self, options: StreamOptions) -> AsyncGenerator[Chunk, None]:
        """The answer as it is generated. Closing the generator frees the engine.

        Raises:
            ApiError: As `whole`; most before the first chunk, a dying engine after it.
        """
        tags = self.call_tags
        writers = [TagWriter(tags) for _ in self.assemblers] if tags else []
        async with contextlib.aclosing(self._choices()) as choices:
            async for choice in choices:
                if writers:
                    choice = writers[choice.index].rewrite(choice)  # noqa: PLW2901
                usage = self._usage() if options.continuous_usage else None
                yield Chunk(self.info, (choice,), usage)
        if options.include_usage:
            yield Chunk(self.info, (), self._usage())

    async def _choices(self) -> AsyncGenerator[ChunkChoice, None]:
        if not self.requests:
            for chunk in self.opening.chunks:
                yield chunk
            return
        with (
            self.model.engine.generate(self.requests, current_caller(self.priority)) as generation,
            self.deadline.ends(generation),
        ):
            async for news in generation:
                pieces: Sequence[GeneratedTokens] = (news,)
                if not self.opening.done:
                    begun = await self.opening.take(news)
                    pieces = begun.pieces
                    for chunk in begun.chunks:
                        yield chunk
                for piece in pieces:
                    assembler = self.assemblers[piece.index]
                    # It may have ended with a piece that waited together with this one.
                    if assembler.ended:
                        continue
                    finish = FinishReason(piece.finish) if piece.finish else None
                    fed = assembler.feed(piece.tokens, piece.logprobs, finish, piece.alternatives)
                    for chunk in fed:
                        yield chunk
                    if assembler.ended and not finish:
                        generation.end(piece.index)

    def _usage(self) -> Usage:
        reasons = any(assembler.reasons for assembler in self.assemblers)
        return Usage(
            prompt_tokens=self.prompt_tokens,
            completion_tokens=sum(item.completion_tokens for item in self.assemblers),
            reasoning_tokens=sum(item.reasoning_tokens for item in self.assemblers)
            if reasons
            else None,
        )


def completion_info(model: ServedModel, kind: str) -> CompletionInfo:
    """What stands on every chunk of a new answer; `kind` is OpenAI's prefix of its id."""
    return CompletionInfo(
        id=f"{kind}-{uuid.uuid4().hex}",
        created=int(time.time()),
        model=model.id,
        system_fingerprint=model.fingerprint,
    )


def assembly_options(
    model: ServedModel, params: GenerationParams, *, bound: bool
) -> AssemblyOptions:
    """How to assemble choices, as far as chats and texts have it in common.

    Args:
        model: Who answers.
        params: What was asked for.
        bound: The whole answer follows a grammar.
    """
    ending = params.ending
    stop_tokens = frozenset(ending.stop_token_ids)
    return AssemblyOptions(
        stop=ending.stop,
        # As vLLM: the model's own end is no reason to tell, unless it was to be ignored.
        stop_tokens=stop_tokens if ending.ignore_eos else stop_tokens - set(model.files.end_tokens),
        include_stop=ending.include_stop,
        min_tokens=ending.min_tokens,
        # To a grammar a control token is its text: left out, the answer would not follow it.
        special_tokens=not params.skip_special_tokens or bound,
        logprobs=params.logprobs,
    )
