"""An engine's pool of KV blocks, exactly, and a scheduler over it."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ovchat_server.engine.contract.generation import BeamSearch, PromptScore
from ovchat_server.engine.contract.messages import MISATTRIBUTED
from ovchat_server.engine.scheduling.kv_pool import KvPool
from ovchat_server.engine.scheduling.prompt_logprobs import PromptScores
from ovchat_server.engine.scheduling.scheduler import Scheduler
from ovchat_server.engine.scheduling.step_budget import StepBudget
from ovchat_server.engine.scheduling.steps import Output
from tests.sequence_requests import sequence_request

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from ovchat_server.domain.models import EngineLoad
    from ovchat_server.engine.contract.generation_messages import SequenceRequest
    from ovchat_server.engine.contract.prompt import Prompt

BLOCK = 4
END = 7
# The id of all pieces of prompts.
PIECE = -1
VOCABULARY = 50


def next_token(tokens: Sequence[int], beam: int = 0, *, may_end: bool = True) -> int:
    """What the model says next: depends on all that came before, as a real one's does."""
    token = hash((*tokens, *((-beam,) if beam else ()))) % VOCABULARY
    return END + 1 if token == END and not may_end else token


def text_of(tokens: Sequence[int]) -> str:
    return "".join(f"<{token}>" for token in tokens)


def logprob(tokens: Sequence[int]) -> float:
    """Of the last of `tokens`: depends on all of them, too."""
    return -(hash(tuple(tokens)) % 1000) / 1000


def alone(request: SequenceRequest, beam: int = 0) -> tuple[list[int], str]:
    """What a sequence gives when it is never disturbed."""
    tokens = list(request.generation.prompt.tokens)
    for count in range(request.generation.max_tokens):
        may_end = count >= request.generation.min_tokens
        tokens.append(next_token(tokens, beam, may_end=may_end))
        if tokens[-1] == END and not request.generation.ignore_eos:
            return tokens[len(request.generation.prompt) :], "stop"
    return tokens[len(request.generation.prompt) :], "length"


def found_alone(request: SequenceRequest) -> list[tuple[list[int], str]]:
    """What a search gives when it is never disturbed."""
    return [alone(request, beam) for beam in range(request.generation.sequences)]


def logprobs_of(request: SequenceRequest, tokens: Sequence[int]) -> list[float]:
    """Those of an answer's tokens."""
    whole = [*request.generation.prompt.tokens, *tokens]
    start = len(request.generation.prompt) + 1
    return [logprob(whole[:end]) for end in range(start, len(whole) + 1)]


def row_of(tokens: Sequence[int]) -> NDArray[np.float32]:
    """The logits behind `tokens`: depend on all of them, too."""
    values = random.Random(repr([*tokens])).choices(range(100), k=VOCABULARY)
    return np.array(values, np.float32) / 10


class Beam:
    """One sequence inside the fake."""

    def __init__(self, request: SequenceRequest, number: int) -> None:
        self.request = request
        self.number = number
        self.tokens = list(request.generation.prompt.tokens)
        self.unread: list[int] = []
        self.unread_logprobs: list[float] = []
        self.finish: str | None = None

    def grow(self) -> None:
        count = len(self.tokens) - len(self.request.generation.prompt)
        may_end = count >= self.request.generation.min_tokens
        self.tokens.append(next_token(self.tokens, self.number, may_end=may_end))
        self.unread.append(self.tokens[-1])
        self.unread_logprobs.append(logprob(self.tokens))
        if self.tokens[-1] == END and not self.request.generation.ignore_eos:
            self.finish = "stop"
        elif count + 1 == self.request.generation.max_tokens:
            self.finish = "length"

    def take(self) -> Output:
        output = Output(self.unread, self.unread_logprobs, self.finish)
        self.unread, self.unread_logprobs = [], []
        return output


@dataclass
class Handle:
    """What is read of it once is gone, as with genai."""

    request: SequenceRequest
    scores: PromptScores | None = None
    cancelled: bool = False
    gave_up: bool = False
    unread: int = 1
    shared: int | None = None
    own: int | None = None
    beams: list[Beam] = field(init=False)

    def __post_init__(self) -> None:
        self.beams = [Beam(self.request, number) for number in range(self.request.generation.beams)]

    @property
    def answered(self) -> int:
        return max(len(beam.tokens) for beam in self.beams) - len(self.request.generation.prompt)

    @property
    def cached(self) -> int | None:
        return None

    def own_from(self, place: int) -> None:
        self.own = place

    @property
    def blocks(self) -> int:
        """Blocks for all tokens and the one that comes; beams may share nothing."""
        longest = max(len(beam.tokens) for beam in self.beams)
        return -(-(longest + 1) // BLOCK) * len(self.beams)

    @property
    def ended(self) -> bool:
        return all(beam.finish for beam in self.beams)

    def grow(self) -> None:
        for beam in self.beams:
            if beam.finish is None:
                beam.grow()

    def take(self) -> list[Output]:
        assert not self.cancelled, "a cancelled sequence is not read"
        search = len(self.beams) > 1
        if search and not self.ended:
            return []
        outputs = [beam.take() for beam in self.beams[: self.request.generation.sequences]]
        outputs = [output for output in outputs if output.tokens or output.finish]
        length = len(self.request.generation.prompt)
        if outputs and self.scores and (problem := self.scores.problem(length)):
            return [Output([], [], MISATTRIBUTED, reason=problem)]
        return outputs

    def dropped(self) -> bool:
        return self.gave_up

    def cancel(self) -> None:
        self.cancelled = True


class Pipeline:
    """genai's pool, exactly: a step takes blocks, and gives back those of who leaves at its end."""

    def __init__(self, total: int, scored_tokens: int = 10_000) -> None:
        self.total = total
        self.inside: list[Handle] = []
        self.proposed = False
        self.sampling_seconds = 0.0
        # Whether a step that throws had its logits.
        self.computed = True
        self.peak = 0
        self.requests: dict[int, list[SequenceRequest]] = {}
        self.added: list[int] = []
        self.drops: dict[int, int] = {}
        self.grown = 0
        # Requests that make a step throw, and how often.
        self.faults: dict[int, int] = {}
        # The same once there are so many tokens of an answer.
        self.broken_at: dict[int, int] = {}
        # Steps that a request's prompt takes beyond the first.
        self.slow: dict[int, int] = {}
        # Beginnings of prompts that make every step throw.
        self.broken_prompts: set[tuple[int, ...]] = set()
        self._fresh: list[tuple[int, Handle]] = []
        # Tokens of prompts that each step had to read, and what it need not read again.
        self.read_tokens: list[int] = []
        self._cached: set[tuple[int, ...]] = set()
        self.scored_tokens = scored_tokens
        # The same of those whose tokens are told of.
        self.scored: list[int] = []

    def add(self, request: SequenceRequest, answered: int, scores: PromptScores | None) -> Handle:
        assert request.generation.max_tokens >= 1
        handle = Handle(request, scores)
        self._fresh.append((request.id, handle))
        self.added.append(request.id)
        requests = self.requests.setdefault(request.id, [])
        requests.append(request)
        first = requests[0]
        tokens = len(first.generation.prompt) + first.generation.max_tokens
        assert len(request.generation.prompt) + request.generation.max_tokens == tokens
        assert 0 <= answered < len(request.generation.prompt)
        return handle

    def read(self, prompt: Prompt, scores: PromptScores | None) -> Handle:
        piece = sequence_request(PIECE, prompt, 1, ignore_eos=True)
        self.requests[PIECE] = [piece]
        self._fresh.append((PIECE, handle := Handle(piece, scores)))
        return handle

    def step(self, free_blocks: int = 0) -> None:
        self.free_blocks = free_blocks
        self.read_tokens.append(sum(self._unread(handle) for _, handle in self._fresh))
        scored = (handle for _, handle in self._fresh if handle.scores)
        self.scored.append(sum(map(self._unread, scored)))
        leaving = any(handle.cancelled for handle in self.inside)
        for identifier, handle in self._fresh:
            # genai may drop what is added in the step that frees another's blocks.
            handle.gave_up = leaving or self.drops.get(identifier, 0) > 0
            if handle.scores and not handle.gave_up:
                self._score(handle, handle.scores)
            self.drops[identifier] = self.drops.get(identifier, 0) - 1
            if not handle.gave_up:
                self.inside.append(handle)
        self._fresh.clear()
        for handle in self.inside:
            first = self.requests[handle.request.id][0]
            said = len(handle.beams[0].tokens) - len(first.generation.prompt)
            beginning = handle.request.generation.prompt.tokens[:BLOCK]
            if not handle.cancelled and beginning in self.broken_prompts:
                raise RuntimeError("a fault")
            if not handle.cancelled and said == self.broken_at.get(handle.request.id):
                raise RuntimeError("a fault")
            if not handle.cancelled and self.faults.get(handle.request.id, 0) > 0:
                self.faults[handle.request.id] -= 1
                raise RuntimeError("a fault")
        used = sum(handle.blocks for handle in self.inside)
        assert used <= self.total, "the KV cache ran out"
        self.peak = max(self.peak, used)
        for handle in self.inside:
            if not handle.cancelled:
                self._run(handle)
        self.inside = [item for item in self.inside if not item.cancelled and not item.ended]

    def text(self, tokens: Sequence[int]) -> str:
        return text_of(tokens)

    def _run(self, handle: Handle) -> None:
        if self.slow.get(handle.request.id, 0) > 0:
            self.slow[handle.request.id] -= 1
            return
        known = handle.request.generation.prompt.cache_ids()
        said = handle.beams[0].tokens[len(known) :]
        self._cached.update(_beginnings([*known, *said]))
        handle.grow()
        self.grown += 1

    def _score(self, handle: Handle, scores: PromptScores) -> None:
        tokens = handle.request.generation.prompt.tokens
        for end in range(len(tokens) - self._unread(handle), len(tokens)):
            scores.observe(end, row_of(tokens[: end + 1]))

    def _unread(self, handle: Handle) -> int:
        prompt = handle.request.generation.prompt.cache_ids()
        found = itertools.takewhile(self._cached.__contains__, _beginnings(prompt))
        return max(len(prompt) - BLOCK * sum(1 for _ in found), 1)


def _beginnings(tokens: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """What full blocks hold, each with all before it."""
    return (tuple(tokens[:end]) for end in range(BLOCK, len(tokens) + 1, BLOCK))


class FixedBudget(StepBudget):
    """What a step may read of prompts, whatever steps take, and less than genai's own limit."""

    def __init__(self, tokens: int) -> None:
        super().__init__(0, 10_000)
        self._tokens = tokens

    def tokens(self, *, streaming: bool) -> int:
        del streaming
        return self._tokens


class Run:
    """A scheduler over the fake, and what its reports said."""

    def __init__(
        self, total: int, budget: StepBudget | None = None, scored_tokens: int = 10_000
    ) -> None:
        self.pipeline = Pipeline(total, scored_tokens)
        self.trials: list[int] = []
        self.admitted: list[int] = []
        self.patience = 3
        self.scheduler = Scheduler(
            self.pipeline,
            KvPool(total, BLOCK),
            budget or StepBudget(0, 10_000),
            self._try,
            lambda _: True,
        )
        self.total = total
        self.requests: dict[int, SequenceRequest] = {}
        # By the request's id, and for each sequence of a search.
        self.answers: dict[int, list[list[int]]] = {}
        self.logprobs: dict[int, list[list[float]]] = {}
        self.finishes: dict[int, dict[int, str]] = {}
        # Where one failed.
        self.reasons: dict[int, str] = {}
        self.scores: dict[int, list[PromptScore]] = {}

    def _try(self, identifier: int | None) -> None:
        if identifier is not None:
            self.trials.append(identifier)

    @property
    def tokens(self) -> dict[int, list[int]]:
        """Those of the first sequence of each request."""
        return {identifier: answers[0] for identifier, answers in self.answers.items()}

    @property
    def finish(self) -> dict[int, str]:
        """Why the first sequence of each request ended."""
        return {key: reasons[0] for key, reasons in self.finishes.items() if 0 in reasons}

    def max_length(self, beams: int) -> int:
        return KvPool(self.total, BLOCK).max_length(beams)

    def add(self, *requests: SequenceRequest) -> None:
        for request in requests:
            self.requests[request.id] = request
            self.answers[request.id] = [[] for _ in range(request.generation.sequences)]
            self.logprobs[request.id] = [[] for _ in range(request.generation.sequences)]
            self.finishes[request.id] = {}
            self.scheduler.add(request)

    def step(self) -> EngineLoad:
        report = self.scheduler.step()
        self.admitted += report.admitted
        assert len({(item.id, item.index) for item in report.outputs}) == len(report.outputs)
        for item in report.outputs:
            finishes = self.finishes[item.id]
            assert item.index not in finishes, "news of a sequence that ended"
            self.answers[item.id][item.index] += item.tokens
            self.logprobs[item.id][item.index] += item.logprobs
            if item.reason:
                self.reasons[item.id] = item.reason
            if item.prompt:
                assert item.id not in self.scores, "a prompt is told of once"
                assert self.answers[item.id] == [item.tokens], "with the first token"
                self.scores[item.id] = item.prompt
            wanted = len(item.tokens) if self.requests[item.id].generation.logprobs else 0
            assert len(item.logprobs) == wanted
            if item.finish is not None:
                finishes[item.index] = item.finish
        assert report.load.used_kv_blocks <= report.load.total_kv_blocks == self.total
        return report.load

    def finish_all(self) -> EngineLoad:
        silent = 0
        load = self.scheduler.load()
        while self.scheduler.busy:
            before = self.pipeline.grown
            load = self.step()
            silent = 0 if self.pipeline.grown > before else silent + 1
            # One step frees blocks, the next one runs again.
            assert silent < self.patience, "no progress"
        return load

    def right(self, *requests: SequenceRequest) -> None:
        for request in requests:
            answers = self.answers[request.id]
            reasons = self.finishes[request.id]
            got = [(tokens, reasons[index]) for index, tokens in enumerate(answers)]
            assert got == found_alone(request)
            if request.generation.logprobs:
                expected = [logprobs_of(request, tokens) for tokens in answers]
                assert self.logprobs[request.id] == expected
            if request.generation.prompt_logprobs is not None:
                prompt = request.generation.prompt.tokens
                scores = PromptScores(prompt, request.generation.prompt_logprobs)
                for end in range(len(prompt)):
                    scores.observe(end, row_of(prompt[: end + 1]))
                assert self.scores[request.id] == scores.gathered


def sequence(identifier: int, prompt: int, answer: int, **fields: Any) -> SequenceRequest:
    """A sequence, or a search, whose model says `answer` tokens, none of them the end."""
    for start in range(10_000):
        tokens = tuple(random.Random(f"{identifier}:{start}").choices(range(8, 50), k=prompt))
        request = sequence_request(identifier, tokens, answer, **fields)
        ends = [alone(request, beam) for beam in range(request.generation.beams)]
        if all(len(said) == answer and END not in said for said, _ in ends):
            return request
    raise AssertionError("no such sequence")


def search(
    identifier: int, prompt: int, answer: int, width: int, returned: int = 0
) -> SequenceRequest:
    """A search all of whose beams say `answer` tokens."""
    return sequence(identifier, prompt, answer, beam_search=BeamSearch(width, returned or width))
