"""Assembly of one choice: from tokens to deltas."""

from __future__ import annotations

import dataclasses
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat_server.api.completion import (
    ChunkChoice,
    Delta,
    FinishReason,
    TokenLogprob,
    ToolCallDelta,
)
from ovchat_server.chat.detokenizer import Detokenizer
from ovchat_server.chat.logprobs import LEAST_LOGPROB, LogprobQueue
from ovchat_server.chat.reasoning import Split, ThinkParser
from ovchat_server.chat.stop import StopMatcher
from ovchat_server.chat.tool_calls import HermesParser, Parsed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.chat.detokenizer import TokenDecoder


@dataclass(frozen=True, slots=True)
class AssemblyOptions:
    """What an answer may hold, and what ends it besides the engine.

    Attributes:
        stop: Texts that end the answer.
        stop_tokens: Tokens that end the answer and are told as the reason.
        include_stop: What ended the answer is part of it.
        min_tokens: Nothing ends the answer before so many.
        special_tokens: Control tokens are part of the text.
        reasoning: The model marks its reasoning.
        reasoning_opened: The prompt ends inside the reasoning.
        tool_calls: The model was offered tools.
        logprobs: Report the log probability of every token.
        alternatives: Name the token itself among the alternatives, too.
        token_ids: Report the tokens.
    """

    stop: tuple[str, ...] = ()
    stop_tokens: frozenset[int] = frozenset()
    include_stop: bool = False
    min_tokens: int = 0
    special_tokens: bool = False
    reasoning: bool = False
    reasoning_opened: bool = False
    tool_calls: bool = False
    logprobs: bool = False
    alternatives: bool = False
    token_ids: bool = False


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
        self._detokenizer = Detokenizer(decoder, special_tokens=options.special_tokens)
        self._stop = StopMatcher(options.stop, include=options.include_stop)
        self._think = (
            ThinkParser(opened_by_prompt=options.reasoning_opened) if options.reasoning else None
        )
        self._tools = HermesParser() if options.tool_calls else None
        self._calls = 0
        self._logprobs = LogprobQueue()
        # Characters of the answer's text, with what the stop strings hold back and without.
        self._detokenized = 0
        self._passed = 0
        self._token_ids: list[int] = []
        self._stopped_by: str | int | None = None
        self.ended = False
        self.completion_tokens = 0
        self.reasoning_tokens = 0

    @property
    def reasons(self) -> bool:
        """Whether `reasoning_tokens` means something."""
        return self._think is not None

    @property
    def _inside_reasoning(self) -> bool:
        return self._think is not None and self._think.reasoning

    def feed(
        self,
        tokens: Sequence[int],
        logprobs: Sequence[float] = (),
        finish: FinishReason | None = None,
    ) -> list[ChunkChoice]:
        """What is new; nothing where everything is held back.

        Where the choice has ended, the last chunk says why, and `ended` is set: nothing more
        may be fed, and the engine may stop.

        Args:
            tokens: What came since the last time.
            logprobs: One for each token, where they were asked for.
            finish: Why the engine ended, where it did: of a stop, the last token is the cause.
        """
        pieces: list[Split] = []
        for position, token in enumerate(tokens):
            last = finish is FinishReason.STOP and position == len(tokens) - 1
            before = self._inside_reasoning
            pieces.append(self._token(token, logprobs[position] if logprobs else 0.0, last=last))
            if before or self._inside_reasoning:
                self.reasoning_tokens += 1
            if self.ended:
                finish = FinishReason.STOP
                break
        self.ended = finish is not None
        if finish:
            pieces.append(self._flush())
        parsed = self._parse("".join(piece.content for piece in pieces), ended=self.ended)
        delta = self._delta("".join(piece.reasoning for piece in pieces), parsed)
        chunks = [self._chunk(delta)] if delta else []
        if finish:
            if self._calls and finish is FinishReason.STOP:
                finish = FinishReason.TOOL_CALLS
            chunks.append(self._chunk(Delta(), finish))
        return chunks

    def _token(self, token: int, logprob: float, *, last: bool) -> Split:
        """The text that one token brings; sets `ended` where it is the last."""
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
                return Split()
        if options.logprobs:
            self._logprobs.put(self._logprob(token, logprob))
        text = self._detokenizer.feed(token)
        self._detokenized += len(text)
        # The token that ends the answer is the reason, whatever its text.
        text = self._stop.flush() + text if last else self._stop.feed(text, armed=may_end)
        if self._stop.matched is not None:
            self._stopped_by = self._stop.matched
            self.ended = True
        return self._split(text)

    def _flush(self) -> Split:
        """What was held back, at the end."""
        reasoning, content = "", ""
        if self._stop.matched is None:
            # A character that was cut completes nothing: it is no stop string.
            rest = self._stop.flush() + self._detokenizer.flush()
            split = self._split(rest)
            reasoning, content = split.reasoning, split.content
        if self._think:
            last = self._think.flush()
            reasoning, content = reasoning + last.reasoning, content + last.content
        return Split(reasoning, content)

    def _split(self, text: str) -> Split:
        self._passed += len(text)
        if self._think is None or not text:
            return Split(content=text)
        return self._think.feed(text)

    def _parse(self, content: str, *, ended: bool) -> Parsed:
        if self._tools is None:
            return Parsed(content=content)
        parsed = self._tools.feed(content) if content else Parsed()
        if not ended:
            return parsed
        rest = self._tools.flush()
        return Parsed(parsed.content + rest.content, parsed.calls + rest.calls)

    def _delta(self, reasoning: str, parsed: Parsed) -> Delta | None:
        if not (reasoning or parsed.content or parsed.calls):
            return None
        calls = []
        for call in parsed.calls:
            identifier = f"call_{uuid.uuid4().hex[:24]}"
            calls.append(ToolCallDelta(self._calls, identifier, call.name, call.arguments))
            self._calls += 1
        return Delta(
            content=parsed.content or None,
            reasoning_content=reasoning or None,
            tool_calls=tuple(calls),
        )

    def _chunk(self, delta: Delta, finish: FinishReason | None = None) -> ChunkChoice:
        options = self._options
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

    def _logprob(self, token: int, logprob: float) -> TokenLogprob:
        data = self._decoder.token_bytes(token)
        reported = TokenLogprob(
            text=data.decode(errors="replace"),
            # Rounding in the engine may lift a certainty above itself.
            logprob=max(min(logprob, 0.0), LEAST_LOGPROB) + 0.0,
            bytes=data,
            offset=self._detokenized + self._detokenizer.held,
        )
        if self._options.alternatives:
            return dataclasses.replace(reported, alternatives=(reported,))
        return reported
