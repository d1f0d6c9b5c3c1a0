"""Assembling a choice: from its tokens to its deltas."""

from __future__ import annotations

import dataclasses
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from ovchat_server.chat.detokenizer import Detokenizer
from ovchat_server.chat.dialects.base import Output
from ovchat_server.chat.dialects.chain import Chain
from ovchat_server.chat.dialects.json_text import is_whole
from ovchat_server.chat.logprobs import LogprobQueue, token_logprob
from ovchat_server.chat.stop import StopMatcher
from ovchat_server.domain.completion import ChunkChoice, Delta, FinishReason, ToolCallDelta

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ovchat_server.chat.detokenizer import TokenDecoder
    from ovchat_server.chat.dialects.base import CallPiece, OutputParser
    from ovchat_server.domain.chat import CallTags


# The most likely tokens at the position of one, and their log probabilities.
Alternatives: TypeAlias = "Sequence[tuple[int, float]]"


def plain_text() -> OutputParser:
    """Return the parser of an answer in which there is no reasoning and no call to find."""
    return Chain(None, None)


@dataclass(frozen=True, slots=True)
class AssemblyOptions:
    """How the choices of an answer are assembled, and what ends them besides the engine.

    Attributes:
        stop: Texts that end the choice where they appear in its content.
        stop_tokens: Tokens that end the choice and are reported as its `stop_reason`.
        include_stop: The text or token that ends the choice is part of it.
        min_tokens: Neither ends the choice before it has more tokens than these.
        special_tokens: Control tokens are part of the text.
        end_token: So is the model's own that ends the choice.
        dropped_tokens: Control tokens that are left out of the text nevertheless.
        parser: Makes the parser of one choice, which finds reasoning and calls in its text.
        marks_reasoning: The parser tells reasoning from the answer, so its tokens are counted.
        include_reasoning: The reasoning is part of the deltas.
        single_call: The choice ends with its first call.
        call_tags: Write calls into the text as well, for agents that look for them there.
        logprobs: Report the log probability of every token.
        own_alternative: A token is among its alternatives even where it is not one of the most
            likely (OpenAI's text completions).
        token_ids: Report the tokens.
        text_offset: Characters of the choice before the first token: of the prompt it echoes.
    """

    stop: tuple[str, ...] = ()
    stop_tokens: frozenset[int] = frozenset()
    include_stop: bool = False
    min_tokens: int = 0
    special_tokens: bool = False
    end_token: bool = False
    dropped_tokens: frozenset[int] = frozenset()
    parser: Callable[[], OutputParser] = plain_text
    marks_reasoning: bool = False
    include_reasoning: bool = True
    single_call: bool = False
    call_tags: CallTags | None = None
    logprobs: bool = False
    own_alternative: bool = False
    token_ids: bool = False
    text_offset: int = 0


class ChoiceAssembler:
    """Turns the tokens of one choice into chunks.

    The text passes four stages: detokenize, separate reasoning from the answer, find tool calls,
    cut at a stop string what is left, the content. Each holds back only what it cannot decide yet.
    The chunks, joined, are the same however the tokens were grouped.

    Attributes:
        ended: The choice has its finish reason; no more tokens may be fed.
        completion_tokens: Tokens until now, those that ended the choice included.
        reasoning_tokens: Of these, inside the reasoning.
    """

    def __init__(self, index: int, decoder: TokenDecoder, options: AssemblyOptions) -> None:
        """Begin the choice `index`, whose tokens `decoder` decodes."""
        self._index = index
        self._decoder = decoder
        self._options = options
        self._detokenizer = Detokenizer(
            decoder, special_tokens=options.special_tokens, dropped=options.dropped_tokens
        )
        self._stop = StopMatcher(options.stop, include=options.include_stop)
        self._parser = options.parser()
        self._calls = 0
        # The arguments of the last call; and whether those of all before it are whole JSON.
        self._arguments: list[str] = []
        self._earlier_calls_whole = True
        self._logprobs = LogprobQueue()
        # Where the text ends, with what the parser and the stop strings hold back and without it.
        self._detokenized = options.text_offset
        self._passed = options.text_offset
        self._token_ids: list[int] = []
        self._stopped_by: str | int | None = None
        self.ended = False
        self.completion_tokens = 0
        self.reasoning_tokens = 0

    @property
    def marks_reasoning(self) -> bool:
        """Whether `reasoning_tokens` are counted."""
        return self._options.marks_reasoning

    def feed(
        self,
        tokens: Sequence[int],
        logprobs: Sequence[float] = (),
        finish: FinishReason | None = None,
        alternatives: Sequence[Alternatives] = (),
    ) -> list[ChunkChoice]:
        """Take tokens and return the chunks that they complete: none while all is held back.

        Where a stop string, a stop token or a call ends the choice, `ended` is set although the
        engine goes on: it should be told to give up the sequence. The last chunk of a choice has
        its finish reason.

        Args:
            tokens: Those generated since the last time.
            logprobs: One for each token, where they were asked for.
            finish: Why the engine ended the sequence, with its last tokens. Of STOP the last
                token is the cause.
            alternatives: For each token the most likely ones at its position, where they were
                asked for.
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
                # The call is whole here, and what comes with it is not part of the choice.
                pieces[-1] = dataclasses.replace(pieces[-1], calls=pieces[-1].calls[:1])
                self.ended = called = True
            if self.ended:
                finish = FinishReason.STOP
                break
        self.ended = finish is not None
        if finish and not called:
            cut = finish is FinishReason.LENGTH or isinstance(self._stopped_by, int)
            pieces += self._flush(cut=cut)
            if self._stop.matched is not None:
                finish = FinishReason.STOP
        delta = self._delta(_joined(pieces))
        chunks = [self._chunk(delta)] if delta else []
        if finish:
            if self._calls and finish is FinishReason.STOP:
                # A token that ends answers may cut a call that is streamed.
                whole = self._earlier_calls_whole and is_whole("".join(self._arguments))
                finish = FinishReason.TOOL_CALLS if whole else FinishReason.LENGTH
            chunks.append(self._chunk(Delta(), finish))
        return chunks

    def _token(
        self, token: int, logprob: float, alternatives: Alternatives, *, last: bool
    ) -> Output:
        """Take one token; set `ended` where it ends the choice."""
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
            own_end = token not in options.stop_tokens
            if not (options.include_stop or (options.end_token and own_end)):
                return Output()
        if options.logprobs and (options.include_reasoning or not self._parser.reasoning):
            self._logprobs.put(
                token_logprob(
                    self._decoder,
                    (token, logprob),
                    alternatives,
                    self._detokenized + self._detokenizer.start(token),
                    with_itself=options.own_alternative,
                )
            )
        # The token that ends the answer is the reason, whatever its text.
        return self._parse(self._detokenizer.feed(token), armed=may_end and not last)

    def _flush(self, *, cut: bool) -> list[Output]:
        """Return what the stages hold back, at the end, which may be that of the most tokens."""
        armed = self.completion_tokens > self._options.min_tokens
        pieces: list[Output] = []
        if self._stop.matched is None:
            pieces.append(self._parse(self._detokenizer.end(), armed=armed))
        if self._stop.matched is None:
            pieces.append(self._cut(self._parser.flush(cut=cut), "", armed=armed))
        return [*pieces, Output(content=self._stop.flush())]

    def _parse(self, text: str, *, armed: bool) -> Output:
        """Parse new text, and cut its content."""
        if not text:
            return Output()
        self._detokenized += len(text)
        return self._cut(self._parser.feed(text), text, armed=armed)

    def _cut(self, output: Output, text: str, *, armed: bool) -> Output:
        """End the choice at a stop string in the content of new text and of older, if `armed`."""
        if self._options.logprobs:
            self._logprobs.parsed(text, self._detokenized, output)
        if not self._options.stop:
            self._passed = self._detokenized
            return output
        content = self._stop.feed(output.content, armed=armed)
        if self._stop.matched is not None:
            self._stopped_by = self._stop.matched
            self.ended = True
        if output.reasoning or output.content or output.calls:
            self._passed = self._detokenized - self._stop.behind
            if output.content and not content:
                self._passed = min(self._passed, self._detokenized - len(text))
        return Output(output.reasoning, content, output.calls)

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
        """Make a delta of each call that there is something new of."""
        deltas: list[ToolCallDelta] = []
        for piece in pieces:
            if piece.name is not None:
                if self._calls:
                    self._earlier_calls_whole &= is_whole("".join(self._arguments))
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
        rest = self.ended and not isinstance(self._stopped_by, str)
        return ChunkChoice(
            index=self._index,
            delta=delta,
            finish_reason=finish,
            stop_reason=self._stopped_by if finish else None,
            logprobs=self._logprobs.take(self._passed, rest=rest) or None,
            content_logprobs=self._logprobs.take_content(self._passed, rest=rest),
            token_ids=tuple(token_ids) if options.token_ids else None,
        )


def _joined(pieces: Sequence[Output]) -> Output:
    """Join pieces; mostly there is one."""
    if len(pieces) == 1:
        return pieces[0]
    return Output(
        "".join([piece.reasoning for piece in pieces]),
        "".join([piece.content for piece in pieces]),
        tuple(call for piece in pieces for call in piece.calls),
    )
