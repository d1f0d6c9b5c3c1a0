"""Sequences wait for their grammar, and never give up their place once they run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from ovchat_server.engine.contract.generation import Resumption
from ovchat_server.engine.contract.messages import REFUSED
from ovchat_server.engine.scheduling.grammar_gate import GrammarGate, Grammars
from ovchat_server.engine.scheduling.grammar_thread import Compiled
from ovchat_server.engine.scheduling.kv_pool import KvPool
from ovchat_server.engine.scheduling.scheduler import Scheduler
from ovchat_server.engine.scheduling.step_budget import StepBudget
from ovchat_server.engine.scheduling.steps import Output
from tests.sequence_requests import changed, sequence_request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.engine.contract.generation_messages import SequenceRequest
    from ovchat_server.engine.scheduling.prompt_logprobs import PromptScores

BLOCK = 4


@dataclass
class FakeCompiler:
    started: list[str] = field(default_factory=list)
    done: list[Compiled] = field(default_factory=list)
    full: bool = False
    cleared: int = 0

    def start(self, grammar: str) -> None:
        self.started.append(grammar)

    def take(self) -> list[Compiled]:
        done, self.done = self.done, []
        return done

    def clear(self) -> None:
        self.cleared += 1
        self.full = False


@dataclass
class SmallCompiler(FakeCompiler):
    """Keeps few grammars; `run` does what the thread does beside a step.

    Attributes:
        late: It also compiles right after `take`, before anybody asks whether it is full.
        news: What the thread has called `wake` for.
    """

    room: int = 1
    kept: set[str] = field(default_factory=set)
    late: bool = False
    news: bool = False

    def run(self) -> None:
        while self.started and not self.full:
            self.news = True
            if len(self.kept) >= self.room:
                self.full = True
                return
            self.kept.add(grammar := self.started.pop(0))
            self.done.append(Compiled(grammar))

    def take(self) -> list[Compiled]:
        done = super().take()
        if self.late:
            self.run()
        return done

    def clear(self) -> None:
        super().clear()
        self.kept.clear()


@dataclass
class FakeHandle:
    left: int
    length: int
    # Tokens that nobody took yet.
    new: list[int] = field(default_factory=list)
    cancelled: bool = False
    answered: int = 0
    grammar: str = ""
    # Steps before its first token.
    wait: int = 0
    cached: int | None = None
    unread: int = 1
    shared: int | None = None

    def own_from(self, place: int) -> None:
        del place

    def take(self) -> list[Output]:
        tokens, self.new = self.new, []
        return [Output(tokens, [], None if self.left else "length")] if tokens else []

    def dropped(self) -> bool:
        return False

    def cancel(self) -> None:
        self.cancelled = True


class FakePipeline:
    """A token a step for everybody; asserts that the pool never runs out."""

    scored_tokens = 1000
    computed = True
    proposed = False
    sampling_seconds = 0.0

    def __init__(self, total: int, compiler: FakeCompiler, wait: int) -> None:
        self.total = total
        self.compiler = compiler
        self.wait = wait
        self.inside: list[FakeHandle] = []
        self.added: list[SequenceRequest] = []

    def add(
        self, request: SequenceRequest, answered: int, scores: PromptScores | None
    ) -> FakeHandle:
        assert scores is None
        assert 0 <= answered < len(request.generation.prompt)
        self.added.append(request)
        self.inside.append(
            FakeHandle(
                request.generation.max_tokens,
                len(request.generation.prompt),
                grammar=request.generation.grammar,
                wait=self.wait,
            )
        )
        return self.inside[-1]

    def text(self, tokens: Sequence[int]) -> str:
        return "".join(map(str, tokens))

    def step(self, free_blocks: int = 0) -> None:
        del free_blocks
        assert sum(-(-(item.length + 1) // BLOCK) for item in self.inside) <= self.total
        for handle in self.inside:
            if handle.wait:
                handle.wait -= 1
            elif not handle.cancelled:
                self.look_up(handle)
                handle.length += 1
                handle.answered += 1
                handle.left -= 1
                handle.new.append(handle.length)
        self.inside = [item for item in self.inside if item.left and not item.cancelled]

    def look_up(self, handle: FakeHandle) -> None:
        """The step of the first token must not compile."""
        if isinstance(self.compiler, SmallCompiler) and handle.grammar and not handle.answered:
            assert handle.grammar in self.compiler.kept


class Engine:
    """Gate and scheduler over fakes."""

    def __init__(
        self, total: int = 64, compiler: FakeCompiler | None = None, wait: int = 0
    ) -> None:
        self.compiler = compiler or FakeCompiler()
        self.pipeline = FakePipeline(total, self.compiler, wait)
        grammars = Grammars(self.compiler)
        self.scheduler = Scheduler(
            self.pipeline, KvPool(total, BLOCK), StepBudget(0, 1000), print, grammars.compiled
        )
        self.grammars = grammars
        self.gate = GrammarGate(grammars, self.scheduler, self.wake)
        self.woken = False
        self.tokens: dict[int, int] = {}
        self.finish: dict[int, str] = {}

    def wake(self) -> None:
        self.woken = True

    def step(self) -> None:
        for news in self.scheduler.step().outputs:
            self.tokens[news.id] = self.tokens.get(news.id, 0) + len(news.tokens)
            if news.finish:
                self.finish[news.id] = news.finish

    def run(self) -> None:
        while self.scheduler.busy:
            self.step()


def add(identifier: int, grammar: str = "", prompt: int = 4, answer: int = 6) -> SequenceRequest:
    return sequence_request(identifier, tuple(range(prompt)), answer, grammar=grammar)


def test_others_step_on_while_a_grammar_is_compiled() -> None:
    engine = Engine()
    engine.gate.add(add(1, "g"))
    engine.gate.add(add(2))
    engine.gate.open()
    engine.step()
    assert [request.id for request in engine.pipeline.added] == [2]

    engine.compiler.done.append(Compiled("g"))
    engine.gate.open()
    engine.run()

    assert engine.finish == {1: "length", 2: "length"}


def test_a_grammar_is_compiled_once() -> None:
    engine = Engine()
    engine.gate.add(add(1, "g"))
    engine.gate.add(add(2, "g"))
    engine.compiler.done.append(Compiled("g"))
    engine.gate.open()
    engine.gate.add(add(3, "g"))
    engine.run()

    assert engine.compiler.started == ["g"]
    assert engine.finish.keys() == {1, 2, 3}


def test_nothing_is_left_of_what_was_cancelled_while_its_grammar_was_compiled() -> None:
    engine = Engine()
    engine.gate.add(add(1, "g"))
    engine.gate.add(add(2, "g"))
    engine.gate.cancel(1)
    engine.compiler.done.append(Compiled("g"))
    engine.gate.open()
    engine.run()

    assert engine.finish.keys() == {2}


def test_a_grammar_that_does_not_compile_after_all_fails_its_own_sequences_only() -> None:
    engine = Engine()
    engine.gate.add(add(1, "g"))
    engine.gate.open()
    assert not engine.scheduler.busy
    engine.compiler.done.append(Compiled("g", "no"))
    engine.gate.open()
    assert engine.scheduler.busy
    engine.gate.add(add(2))
    engine.run()

    assert engine.finish == {1: REFUSED, 2: "length"}


def knowing_g(total: int) -> Engine:
    engine = Engine(total)
    engine.grammars.compiled("g")
    compile_now(engine, "g")
    return engine


def test_sequences_with_grammars_run_together_while_their_whole_lengths_fit() -> None:
    engine = knowing_g(total=16)
    for identifier in (1, 2, 3):
        engine.scheduler.add(add(identifier, "g", answer=20))
    engine.step()

    # 26 tokens, two of them in reserve, take 7 blocks of 4.
    assert engine.scheduler.load().running_requests == 2
    engine.run()
    assert engine.scheduler.load().preemptions == 0
    assert engine.finish.keys() == {1, 2, 3}


def test_what_a_grammar_may_need_later_is_free_to_others_now() -> None:
    engine = knowing_g(total=16)
    engine.scheduler.add(add(1, "g", answer=50))
    engine.scheduler.add(add(2, "g", answer=50))
    engine.scheduler.add(add(3, answer=30))
    engine.step()
    # All have the same prompt, which is read once.
    engine.step()

    assert [request.id for request in engine.pipeline.added] == [1, 3]
    engine.run()
    assert engine.scheduler.load().preemptions > 0
    assert engine.finish.keys() == {1, 2, 3}


@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(1, 20), st.integers(1, 40)), min_size=1, max_size=12
    ),
    st.integers(18, 40),
)
def test_a_sequence_with_a_grammar_is_never_started_twice(
    wanted: list[tuple[bool, int, int]], total: int
) -> None:
    engine = knowing_g(total)
    for identifier, (constrained, prompt, answer) in enumerate(wanted):
        engine.scheduler.add(add(identifier, "g" if constrained else "", prompt, answer))

    engine.run()

    for identifier, (constrained, _, answer) in enumerate(wanted):
        starts = [request for request in engine.pipeline.added if request.id == identifier]
        assert engine.tokens[identifier] == answer
        assert not constrained or len(starts) == 1


MARKS = (Resumption("", "later"),)
# Such a sequence repeats what it said.
NOWHERE = (Resumption("", ""),)


def returning(identifier: int, *, suspect: bool = False) -> SequenceRequest:
    """A sequence that said something in another process."""
    return sequence_request(
        identifier,
        (0, 1, 2, 3),
        6,
        grammar="now",
        resumptions=MARKS,
        generated=(1,),
        suspect=suspect,
    )


def compile_now(engine: Engine, grammar: str, error: str = "") -> None:
    engine.compiler.done.append(Compiled(grammar, error))
    engine.gate.open()


def test_a_grammar_for_later_is_compiled_only_when_a_sequence_needs_it() -> None:
    engine = Engine(total=9)
    engine.scheduler.add(add(1, answer=20))
    request = add(2, "now", answer=16)
    engine.gate.add(changed(request, resumptions=MARKS))
    compile_now(engine, "now")
    engine.step()
    assert engine.scheduler.load().running_requests == 2
    for _ in range(20):
        if engine.scheduler.load().preemptions:
            break
        assert engine.compiler.started == ["now"]
        engine.step()
    assert engine.compiler.started == ["now", "later"]
    engine.run()
    assert engine.finish == {1: "length"}
    compile_now(engine, "later")
    engine.run()

    assert engine.compiler.started == ["now", "later"]
    assert engine.finish == {1: "length", 2: "length"}


def test_others_step_on_while_the_grammar_of_one_that_comes_back_is_compiled() -> None:
    engine = Engine()
    engine.gate.add(returning(1))
    compile_now(engine, "now")
    engine.gate.add(add(2))
    engine.run()
    assert engine.compiler.started == ["now", "later"]
    assert engine.finish == {2: "length"}

    compile_now(engine, "later")
    assert engine.scheduler.busy
    engine.run()

    assert engine.finish == {1: "length", 2: "length"}
    assert [request.generation.grammar for request in engine.pipeline.added] == ["", "later"]


def test_nothing_steps_while_all_wait_for_a_grammar() -> None:
    engine = Engine()
    engine.gate.add(returning(1, suspect=True))
    compile_now(engine, "now")
    engine.gate.add(add(2))
    engine.step()
    assert not engine.scheduler.busy
    assert engine.pipeline.added == []

    engine.gate.cancel(1)
    assert engine.scheduler.busy
    engine.run()

    assert engine.finish == {2: "length"}


def test_who_comes_back_repeats_where_its_grammar_does_not_compile_after_all() -> None:
    engine = Engine()
    # What the fake says first.
    engine.gate.add(changed(returning(1), generated=(5,)))
    compile_now(engine, "now")
    engine.step()
    compile_now(engine, "later", "no")
    engine.run()

    assert engine.finish == {1: "length"}
    assert [request.generation.grammar for request in engine.pipeline.added] == ["now"]


def test_full_and_idle_it_is_cleared_at_once() -> None:
    engine = Engine()
    engine.gate.add(add(1, "g"))
    compile_now(engine, "g")
    engine.run()
    engine.gate.add(add(2, "h"))
    engine.compiler.full = True
    engine.gate.open()
    assert engine.compiler.cleared == 1
    compile_now(engine, "h")
    engine.gate.add(add(3, "g"))
    compile_now(engine, "g")
    engine.run()

    assert engine.compiler.started == ["g", "h", "g"]
    assert engine.finish == {1: "length", 2: "length", 3: "length"}


def test_what_is_compiled_when_it_is_full_is_used_before_it_is_cleared() -> None:
    engine = Engine()
    engine.gate.add(add(1, "g"))
    engine.gate.add(add(2, "h"))
    engine.compiler.full = True
    compile_now(engine, "g")
    assert engine.compiler.cleared == 0
    engine.step()
    engine.gate.open()
    assert [request.generation.grammar for request in engine.pipeline.added] == ["g"]
    assert engine.compiler.cleared == 1


def test_idle_after_the_step_that_the_clearing_waited_for_it_looks_again() -> None:
    engine = Engine()
    engine.gate.add(add(1, "g", answer=1))
    engine.gate.add(add(2, "h"))
    engine.compiler.full = True
    compile_now(engine, "g")
    engine.step()
    assert engine.finish == {1: "length"}
    # Nothing steps, so nobody would look before the next command.
    assert not engine.scheduler.busy
    assert engine.woken
    engine.woken = False
    engine.gate.open()

    assert engine.compiler.cleared == 1
    assert not engine.woken


def test_what_is_compiled_just_before_it_is_full_counts_before_it_is_cleared() -> None:
    compiler = SmallCompiler(late=True)
    engine = Engine(compiler=compiler)
    engine.gate.add(add(1, "g"))
    engine.gate.add(add(2, "h"))
    engine.gate.open()
    assert compiler.full
    engine.gate.open()
    engine.step()
    engine.gate.open()
    assert engine.compiler.cleared == 1
    compiler.run()
    engine.gate.open()
    engine.run()

    assert engine.finish == {1: "length", 2: "length"}


def test_a_cancelled_sequence_looks_its_grammar_up_before_that_is_cleared() -> None:
    engine = Engine(wait=2)
    engine.gate.add(add(1, "g"))
    compile_now(engine, "g")
    engine.step()
    engine.gate.cancel(1)
    engine.compiler.full = True
    for _ in range(2):
        engine.gate.open()
        assert engine.compiler.cleared == 0
        engine.step()
    engine.gate.open()

    assert engine.compiler.cleared == 1


def test_none_begins_while_it_is_full_and_those_that_began_look_their_grammars_up() -> None:
    engine = Engine(wait=2)
    engine.gate.add(add(1, "g"))
    compile_now(engine, "g")
    engine.step()
    engine.compiler.full = True
    engine.gate.open()
    engine.gate.add(add(2, "g"))
    for _ in range(2):
        assert engine.compiler.cleared == 0
        engine.step()
        engine.gate.open()
    assert engine.compiler.cleared == 1
    assert [request.id for request in engine.pipeline.added] == [1]
    engine.run()
    compile_now(engine, "g")
    engine.run()

    assert engine.compiler.started == ["g", "g"]
    assert engine.finish == {1: "length", 2: "length"}


def test_who_repeats_what_it_said_waits_for_its_grammar_if_that_was_cleared_meanwhile() -> None:
    engine = Engine(total=9)
    engine.gate.add(add(1, prompt=30, answer=4))
    engine.step()
    # What the fake says first.
    request = msgspec.structs.replace(returning(2), generated=(5,))
    engine.gate.add(changed(request, resumptions=NOWHERE))
    compile_now(engine, "now")
    engine.step()
    engine.compiler.full = True
    engine.gate.open()
    assert engine.compiler.cleared == 1
    engine.run()
    assert engine.finish == {1: "length"}
    assert engine.compiler.started == ["now", "now"]
    compile_now(engine, "now")
    engine.run()

    assert engine.finish == {1: "length", 2: "length"}


@given(
    st.lists(
        st.tuples(
            st.integers(0, 9),
            st.sampled_from(["", *"abcd"]),
            st.sampled_from([(), MARKS, NOWHERE]),
            st.integers(1, 20),
            st.none() | st.integers(0, 12),
        ),
        min_size=1,
        max_size=16,
    ),
    st.integers(9, 40),
    st.integers(1, 3),
    st.integers(0, 2),
    st.booleans(),
)
def test_no_step_compiles_and_all_end_however_few_grammars_are_kept(
    wanted: list[tuple[int, str, tuple[Resumption, ...], int, int | None]],
    total: int,
    room: int,
    wait: int,
    late: bool,  # noqa: FBT001
) -> None:
    compiler = SmallCompiler(room=room, late=late)
    engine = Engine(total, compiler, wait)
    cancelled = {number: item[-1] for number, item in enumerate(wanted) if item[-1] is not None}
    last = max(at for at, *_ in wanted) + max(cancelled.values(), default=0)
    for turn in range(10_000):
        commands = False
        compiler.run()
        for identifier, (at, grammar, marks, answer, _) in enumerate(wanted):
            if at == turn:
                resumptions = marks if grammar else ()
                engine.gate.add(
                    changed(add(identifier, grammar, answer=answer), resumptions=resumptions)
                )
                commands = True
            if cancelled.get(identifier, -1) + at == turn:
                engine.gate.cancel(identifier)
                commands = True
        # As the process does: it waits for commands and wake-ups while there is nothing to step.
        if not (commands or engine.scheduler.busy or compiler.news or engine.woken):
            if turn > last:
                break
            continue
        if not (commands or engine.scheduler.busy):
            compiler.news = engine.woken = False
        engine.gate.open()
        if engine.scheduler.busy:
            engine.step()

    ended = {number for number in range(len(wanted)) if number not in cancelled}
    assert ended <= engine.finish.keys()
    assert {*engine.finish.values()} <= {"length"}
