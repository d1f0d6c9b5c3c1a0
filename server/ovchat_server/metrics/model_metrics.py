"""What is counted of one model: its requests, and the steps of its engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic

from ovchat_server.domain.completion import FinishReason
from ovchat_server.domain.errors import OverloadedError
from ovchat_server.engine.contract.messages import OutputT
from ovchat_server.engine.contract.observer import EngineUsage
from ovchat_server.metrics import buckets
from ovchat_server.metrics.histogram import Histogram

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ovchat_server.engine.contract.generation_messages import SequenceOutput
    from ovchat_server.engine.contract.messages import Report
    from ovchat_server.engine.contract.pooling_messages import PoolingOutput
    from ovchat_server.serving.record import RequestRecord

# vLLM's, of which none tells that an answer ends in tool calls.
STOP, LENGTH, ABORT, ERROR = "stop", "length", "abort", "error"
FINISHED_REASONS: Final = (STOP, LENGTH, ABORT, ERROR)


class ModelMetrics(Generic[OutputT]):
    """The numbers of a model since the server started; see engine.contract.observer.

    Attributes:
        usage: Tells how full the engine is now.
        finished: How many choices ended, by reason.
        prompt_tokens: Tokens of prompts that were read, of each sequence its own.
        generation_tokens: Tokens that were generated.
        cache_queries: Tokens that were looked up in the prefix cache.
        cache_hits: Those that it had.
        preemptions: How often a sequence gave up its place.
        restarts: How often the engine's process was started again.
        resumed_requests: Requests that went on in another process.
        first_token: Seconds from a request's arrival to its first token.
        gaps: Seconds between tokens, or sets of tokens, of one sequence.
        whole: Seconds from a request's arrival to its last token.
        queue: Seconds that a request waited for its admission.
        prefill: Seconds from its admission to its first token.
        decode: Seconds from its first token to its last.
        prompt_length: Tokens of a request's prompts.
        generation_length: Tokens of its choices.
        steps: Seconds that each step took.
        batch: How many sequences, or texts, a step had output of.
    """

    def __init__(self) -> None:
        """Begin with zeros."""
        self.usage: Callable[[], EngineUsage] = EngineUsage
        self.finished = dict.fromkeys(FINISHED_REASONS, 0)
        self.prompt_tokens = self.generation_tokens = 0
        self.cache_queries = self.cache_hits = 0
        self.preemptions = self.restarts = self.resumed_requests = 0
        self.first_token = Histogram(buckets.FIRST_TOKEN)
        self.gaps = Histogram(buckets.BETWEEN_TOKENS)
        self.whole, self.queue = Histogram(buckets.REQUEST), Histogram(buckets.REQUEST)
        self.prefill, self.decode = Histogram(buckets.REQUEST), Histogram(buckets.REQUEST)
        self.prompt_length = Histogram(buckets.TOKENS)
        self.generation_length = Histogram(buckets.TOKENS)
        self.steps = Histogram(buckets.BETWEEN_TOKENS)
        self.batch = Histogram(buckets.BATCH)

    def watch(self, usage: Callable[[], EngineUsage]) -> None:
        """See EngineObserver; so the next."""
        self.usage = usage

    def stepped(self, report: Report[OutputT], gaps: Mapping[float, int]) -> None:
        """Count a step; one without output had to read prompts."""
        if report.began:
            self.steps.observe(report.ended - report.began)
        for seconds, count in gaps.items():
            self.gaps.observe(seconds, count)
        self.preemptions += len(report.preempted)

    def prompt_read(self, tokens: int, cached: int | None) -> None:
        """See EngineObserver."""
        self.prompt_tokens += tokens
        if cached is not None:
            self.cache_queries += tokens
            self.cache_hits += cached

    def restarted(self) -> None:
        """See EngineObserver."""
        self.restarts += 1

    def resumed(self, requests: int) -> None:
        """See EngineObserver."""
        self.resumed_requests += requests

    def ended(self, record: RequestRecord) -> None:
        """Count a request for this model that is over, if its engine took it.

        Times and lengths are counted of answers that are whole: of others they would tell when
        clients leave.
        """
        times = record.times
        turned_away = isinstance(record.error, OverloadedError) and times.admitted is None
        if times.queued is None or turned_away:
            return
        self.queue.observe(times.queue_seconds)
        self.first_token.observe(record.first_token_seconds)
        reasons = self.reasons(record)
        for reason in reasons:
            self.finished[LENGTH if reason is FinishReason.LENGTH else STOP] += 1
        missing = max(record.choices, 1) - len(reasons)
        if missing:
            self.finished[ERROR if record.error else ABORT] += missing
            return
        self.whole.observe((times.last_output or record.ended) - record.began)
        self.prefill.observe(times.prefill_seconds)
        self.decode.observe(times.decode_seconds)
        self.prompt_length.observe(record.prompt_tokens)
        self.generation_length.observe(record.completion_tokens)

    def reasons(self, record: RequestRecord) -> Sequence[FinishReason]:
        """Return why the choices ended that did."""
        return record.finish_reasons


class GenerationMetrics(ModelMetrics["SequenceOutput"]):
    """The numbers of a model that generates."""

    def stepped(self, report: Report[SequenceOutput], gaps: Mapping[float, int]) -> None:
        """Count a step, and its tokens."""
        super().stepped(report, gaps)
        if report.outputs:
            # The beams of a search are one.
            self.batch.observe(len({output.id for output in report.outputs}))
            self.generation_tokens += sum(len(output.tokens) for output in report.outputs)


class PoolingMetrics(ModelMetrics["PoolingOutput"]):
    """The numbers of a model that makes vectors, or scores."""

    def stepped(self, report: Report[PoolingOutput], gaps: Mapping[float, int]) -> None:  # noqa: ARG002
        """Count a step, and its texts: between those of a request there is nothing to wait for."""
        if texts := sum(len(output.vectors) for output in report.outputs):
            # Others only tell which requests begin.
            super().stepped(report, {})
            self.batch.observe(texts)

    def reasons(self, record: RequestRecord) -> Sequence[FinishReason]:
        """Return that of all texts together, which vLLM calls so, too."""
        return [FinishReason.STOP] if record.status == "OK" else []
