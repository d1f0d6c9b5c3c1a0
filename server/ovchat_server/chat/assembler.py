"""Assembly of one choice: from tokens to deltas."""

from __future__ import annotations

import dataclasses
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from ovchat_server.api.completion import (
    ChunkChoice,
    Delta,
    FinishReason,
    ToolCallDelta,
)
from ovchat_server.chat.detokenizer import Detokenizer
from ovchat_server.chat.dialects.base import Output
from ovchat_server.chat.dialects.chain import Chain
from ovchat_server.chat.dialects.json_text import is_whole
from ovchat_server.chat.logprobs import LogprobQueue, token_logprob
from ovchat_server.chat.stop import StopMatcher

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ovchat_server.api.chat import CallTags
    from ovchat_server.chat.detokenizer import TokenDecoder
    from ovchat_server.chat.dialects.base import CallPiece, OutputParser


# The likeliest tokens in the place of one, and their log probabilities.
Alternatives: TypeAlias = "Sequence[tuple[int, float]]"


def plain_text() -> OutputParser:
    """The parser of an answer in which there is nothing to find."""
    return Chain(None, None)


@dataclass(frozen=True, slots=True)
class AssemblyOptions:
    """What an answer may hold, and what ends it besides the engine.

    Attributes:
        stop: Texts that end the answer.
        stop_tokens: Tokens that end the answer and are told as the reason.
        include_stop: What ended the answer is part of it.
        min_tokens: Nothing ends the answer before so many.
        special_tokens: Control tokens are part of the text.
        dropped_tokens: Those that are not, nevertheless.
        parser: Makes what finds reasoning and calls in one answer.
        reasons: The model marks its reasoning.
        include_reasoning: Hand it out.
        single_call: The answer ends with its first call.
        call_tags: Write calls into the text as well, for agents that look for them there.
        logprobs: Report the log probability of every token.
        own_alternative: A token is among its alternatives even where it is none of the
            likeliest (OpenAI's text completions).
        token_ids: Report the tokens.
        begins: Characters of the text before the answer: of a prompt that it repeats.
    """

    stop: tuple[str, ...] = ()
    stop_tokens: frozenset[int] = frozenset()
    include_stop: bool = False
    min_tokens: int = 0
    special_tokens: bool = False
    dropped_tokens: frozenset[int] = frozenset()
    parser: Callable[[], OutputParser] = plain_text
    reasons: bool = False
    include_reasoning: bool = True
    single_call: bool = False
    call_tags: CallTags | None = None
    logprobs: bool = False
    own_alternative: bool = False
    token_ids: bool = False
    begins: int = 0


class ChoiceAssembler:
    """Turns the tokens of one choice into chunks.

    The way of the text: detokenise, cut at a stop string, tell reasoning from answer, find
    tool calls. Each stage holds back only what it cannot decide yet. Joining all chunks
    gives the same answer however the tokens were grouped.
    """

    def __init__(self, index: int, decoder: TokenDecoder, options: AssemblyOptions) -> None:
        """Start the choice `index`."""
        self._index = index
        self._decoder = decoder
        self._options = options
        self._detokenizer = Detokenizer(
            decoder, special_tokens=options.special_tokens, dropped=options.dropped_tokens
        )
        self._stop = StopMatcher(options.stop, include=options.include_stop)
        self._parser = options.parser()
        self._calls = 0
        # Of the last call; and whether those before it are whole.
        self._arguments: list[str] = []
        self._whole_calls = True
        self._logprobs = LogprobQueue()
        # Where the answer's text ends, with what the stop strings hold back and without.
        self._detokenized = options.begins
        self._passed = options.begins
        self._token_ids: list[int] = []
        self._stopped_by: str | int | None = None
        self.ended = False
        self.completion_tokens = 0
        self.reasoning_tokens = 0

    @property
    def reasons(self) -> bool:
        """Whether `reasoning_tokens` means something."""
        return self._options.reasons

    def feed(
        self,
        tokens: Sequence[int],
        logprobs: Sequence[float] = (),
        finish: FinishReason | None = None,
        alternatives: Sequence[Alternatives] = (),
    ) -> list[ChunkChoice]:
        """What is new; nothing where everything is held back.

        Where the choice has ended, the last chunk says why, and `ended` is set: nothing more
        may be fed, and the engine may stop.

        Args:
            tokens: What came since the last time.
            logprobs: One for each token, where they were asked for.
            finish: Why the engine ended, where it did: of a stop, the last token is the cause.
            alternatives: For each token the likeliest in its place, where they were asked for.
        """
        called = False
        pieces: list[Output] = []
        for position, token in enumerate(tokens):
            last = finish is FinishReason.STOP and position == len(tokens) - 1
            before = self._parser.reasoning
            pieces.append(
                self._token(
                    token,
                    logprobs[position] if logprobs else 0.0,
                    alternatives[position] if alternatives else (),
                    last=last,
                )
            )
            if before or self._parser.reasoning:
                self.reasoning_tokens += 1
            if self._options.single_call and pieces[-1].calls:
                # A call comes whole here; what comes with it is none of the answer any more.
                pieces[-1] = dataclasses.replace(pieces[-1], calls=pieces[-1].calls[:1])
                self.ended = called = True
            if self.ended:
                finish = FinishReason.STOP
                break
        self.ended = finish is not None
        if finish and not called:
            pieces += self._flush()
        delta = self._delta(_joined(pieces))
        chunks = [self._chunk(delta)] if delta else []
        if finish:
            if self._calls and finish is FinishReason.STOP:
                # A stop string, or a token that ends answers, may cut a call that is streamed.
                whole = self._whole_calls and is_whole("".join(self._arguments))
                finish = FinishReason.TOOL_CALLS if whole else FinishReason.LENGTH
            chunks.append(self._chunk(Delta(), finish))
        return chunks

    def _token(
        self, token: int, logprob: float, alternatives: Alternatives, *, last: bool
    ) -> Output:
        """What one token brings; sets `ended` where it is the last."""
        options = self._options
        self.completion_tokens += 1
        if options.token_ids:
            self._token_ids.append(token)
        may_end = self.completion_tokens > options.min_tokens
        if may_end and token in options.stop_tokens:
            self._stopped_by = token
            last = True
        if last:
            self.ended = True
            if not options.include_stop:
                return Output()
        if options.logprobs and (options.include_reasoning or not self._parser.reasoning):
            self._logprobs.put(
                token_logprob(
                    self._decoder,
                    (token, logprob),
                    alternatives,
                    self._detokenized + self._detokenizer.held,
                    with_itself=options.own_alternative,
                )
            )
        text = self._detokenizer.feed(token)
        self._detokenized += len(text)
        # The token that ends the answer is the reason, whatever its text.
        text = self._stop.flush() + text if last else self._stop.feed(text, armed=may_end)
        if self._stop.matched is not None:
            self._stopped_by = self._stop.matched
            self.ended = True
        return self._parse(text)

    def _flush(self) -> list[Output]:
        """What was held back, at the end."""
        pieces: list[Output] = []
        if self._stop.matched is None:
            # A character that was cut completes nothing: it is no stop string.
            pieces.append(self._parse(self._stop.flush() + self._detokenizer.flush()))
        return [*pieces, self._parser.flush()]

    def _parse(self, text: str) -> Output:
        self._passed += len(text)
        return self._parser.feed(text) if text else Output()

    def _delta(self, output: Output) -> Delta | None:
        reasoning = output.reasoning if self._options.include_reasoning else ""
        calls = self._call_deltas(output.calls) if output.calls else ()
        if not (reasoning or output.content or calls):
            return None
        return Delta(
            content=output.content or None,
            reasoning_content=reasoning or None,
            tool_calls=calls,
        )

    def _call_deltas(self, pieces: Sequence[CallPiece]) -> tuple[ToolCallDelta, ...]:
        """One for each call that there is something new of."""
        deltas: list[ToolCallDelta] = []
        for piece in pieces:
            if piece.name is not None:
                if self._calls:
                    self._whole_calls &= is_whole("".join(self._arguments))
                self._arguments.clear()
            self._arguments.append(piece.arguments)
            if piece.name is not None:
                identifier = f"call_{uuid.uuid4().hex[:24]}"
                deltas.append(ToolCallDelta(self._calls, identifier, piece.name, piece.arguments))
                self._calls += 1
            elif deltas:
                arguments = (deltas[-1].arguments or "") + piece.arguments
                deltas[-1] = dataclasses.replace(deltas[-1], arguments=arguments)
            else:
                deltas.append(ToolCallDelta(self._calls - 1, arguments=piece.arguments))
        return tuple(deltas)

    def _chunk(self, delta: Delta, finish: FinishReason | None = None) -> ChunkChoice:
        options = self._options
        if not (finish or options.logprobs or options.token_ids):
            return ChunkChoice(self._index, delta)
        token_ids, self._token_ids = self._token_ids, []
        cut = isinstance(self._stopped_by, str)
        return ChunkChoice(
            index=self._index,
            delta=delta,
            finish_reason=finish,
            stop_reason=self._stopped_by if finish else None,
            logprobs=self._logprobs.take(self._passed, rest=self.ended and not cut)
            if options.logprobs
            else None,
            token_ids=tuple(token_ids) if options.token_ids else None,
        )


def _joined(pieces: Sequence[Output]) -> Output:
    """All pieces as one; mostly there is one."""
    if len(pieces) == 1:
        return pieces[0]
    return Output(
        "".join([piece.reasoning for piece in pieces]),
        "".join([piece.content for piece in pieces]),
        tuple(call for piece in pieces for call in piece.calls),
    )
