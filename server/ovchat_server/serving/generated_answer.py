"""Answers of our own models: run the engine and assemble its tokens into chunks."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from ovchat_server.chat.assembler import ChoiceAssembler
from ovchat_server.domain.completion import FinishReason, Usage
from ovchat_server.domain.errors import InvalidRequestError, UnavailableError
from ovchat_server.engine.contract.generation import TokenFinish
from ovchat_server.engine.contract.generation_engine import SlowGrammarError
from ovchat_server.serving.answer import ChunkedAnswer
from ovchat_server.serving.first_chunks import first_chunks
from ovchat_server.serving.plan import engine_params
from ovchat_server.serving.record import current_record

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence

    from ovchat_server.domain.completion import ChunkChoice
    from ovchat_server.domain.field_path import SchemaPath
    from ovchat_server.engine.contract.generation import GeneratedTokens
    from ovchat_server.engine.contract.generation_engine import GenerationStream
    from ovchat_server.serving.deadline import Deadline
    from ovchat_server.serving.plan import GenerationPlan
    from ovchat_server.serving.worker_pool import WorkerPool

# The engine's finish reasons, which do not include tool calls, as the domain's.
FINISH_REASONS = {
    None: None,
    TokenFinish.STOP: FinishReason.STOP,
    TokenFinish.LENGTH: FinishReason.LENGTH,
}


class GeneratedAnswer(ChunkedAnswer):
    """The answer of a model whose engine is ours."""

    def __init__(self, plan: GenerationPlan, workers: WorkerPool, deadline: Deadline) -> None:
        """Answer as planned. The engine starts when the answer is read.

        Args:
            plan: What to ask the engine for, and how to assemble its tokens.
            workers: Threads for work that would block the event loop.
            deadline: When the answer has to be complete.
        """
        super().__init__(plan.info, len(plan.assembly), plan.assembly[0].call_tags)
        self.plan = plan
        self._deadline = deadline
        self._record = current_record()
        self._record.response_id = plan.info.id
        self._record.choices = len(plan.assembly)
        decoder = plan.model.files.tokenizer
        self._assemblers = [
            ChoiceAssembler(index, decoder, options) for index, options in enumerate(plan.assembly)
        ]
        self._first_chunks = first_chunks(plan, workers)
        # How many choices the engine generates for each prompt; cached tokens by prompt.
        self._choices = engine_params(plan.params).n
        self._cached: dict[int, int] = {}
        # Of all choices, the tokens that were proposed: those that came, and the others.
        self._accepted = self._rejected = 0
        # Whether the engine was asked, so that the other one is that of its stream.
        self._asked = asyncio.Event()
        self._admission = asyncio.Event()

    @property
    def ignored(self) -> Sequence[str]:
        """The names of parameters that have no effect on the model; known from the start."""
        return self.plan.ignored

    @property
    def unenforced(self) -> Sequence[SchemaPath]:
        """The parts of the request's schemas that are not enforced; known from the start."""
        return self.plan.unenforced

    async def admission(self) -> None:
        """Wait until the engine works on it, so that it no longer waits in the queue."""
        await self._asked.wait()
        await self._admission.wait()

    def usage(self) -> Usage:
        """Count the tokens so far."""
        speculates = self.plan.model.speculation.proposes
        marks_reasoning = any(assembler.marks_reasoning for assembler in self._assemblers)
        return Usage(
            prompt_tokens=sum(len(prompt.tokens) for prompt in self.plan.prompts),
            completion_tokens=sum(item.completion_tokens for item in self._assemblers),
            reasoning_tokens=sum(item.reasoning_tokens for item in self._assemblers)
            if marks_reasoning
            else None,
            cached_tokens=sum(self._cached.values()) if self._cached else None,
            image_tokens=sum(item.prompt.image_tokens for item in self.plan.prompts),
            accepted_tokens=self._accepted if speculates else None,
            rejected_tokens=self._rejected if speculates else None,
        )

    def _note(self, tokens: GeneratedTokens) -> None:
        """Note what tokens tell of the usage, besides their number.

        Of cached tokens the minimum of a prompt's choices counts: the first one to run fills the
        cache for the others.
        """
        self._accepted += tokens.accepted
        self._rejected += tokens.rejected
        if tokens.cached is not None:
            prompt = tokens.index // self._choices
            self._cached[prompt] = min(tokens.cached, self._cached.get(prompt, tokens.cached))

    def _note_end(self, first: ChunkChoice) -> None:
        """Note that a choice ends with its first chunk: only its prompt was asked for."""
        if first.finish_reason is not None:
            self._record.finish_reasons.append(first.finish_reason)

    async def chunks(self) -> AsyncGenerator[ChunkChoice, None]:
        """See ChunkedAnswer."""
        plan, first = self.plan, self._first_chunks
        if not plan.requests:
            for chunk in plan.first_chunks:
                self._note_end(chunk)
                yield chunk
            return
        with (
            plan.model.engine.generate(plan.requests, plan.caller, self._record.times) as stream,
            self._deadline.ends(stream),
            self._recorded(),
            self._names_grammar(),
        ):
            self._admission = stream.admission
            self._asked.set()
            async for generated in stream:
                self._note(generated)
                released: Sequence[GeneratedTokens] = (generated,)
                if not first.sent:
                    chunks, released = await first.release(generated)
                    for chunk in chunks:
                        self._note_end(chunk)
                        yield chunk
                for tokens in released:
                    for chunk in self._assemble(tokens, stream):
                        yield chunk

    def _assemble(self, tokens: GeneratedTokens, stream: GenerationStream) -> Sequence[ChunkChoice]:
        """Turn tokens into chunks; if a choice ends before its sequence, cancel the sequence."""
        assembler = self._assemblers[tokens.index]
        # It may have ended with tokens that were held back and released together with these.
        if assembler.ended:
            return ()
        finish = FINISH_REASONS[tokens.finish]
        chunks = assembler.feed(tokens.tokens, tokens.logprobs, finish, tokens.alternatives)
        if assembler.ended:
            self._record.finish_reasons += [chunks[-1].finish_reason or FinishReason.STOP]
            if not finish:
                stream.end(tokens.index)
        return chunks

    @contextlib.contextmanager
    def _names_grammar(self) -> Iterator[None]:
        """Say what asks for a grammar which is too slow."""
        try:
            yield
        except SlowGrammarError as error:
            grammar = self.plan.grammar
            if grammar.required:
                complaint = f"cannot be enforced: {error.reason}."
                raise InvalidRequestError.about(grammar.field, complaint) from error
            # As where they take too long to compile.
            message = (
                "The schemas of the request's tools take too long to enforce. Send it again: it is "
                "then answered without."
            )
            raise UnavailableError(message, retry_after=1) from error

    @contextlib.contextmanager
    def _recorded(self) -> Iterator[None]:
        """Record the number of tokens, however the answer ends."""
        try:
            yield
        finally:
            self._record.usage = usage = self.usage()
            self._record.completion_tokens = usage.completion_tokens
