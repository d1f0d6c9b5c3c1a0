"""One model: what is measured of the service, of the bare loop and of others, in rounds."""

from __future__ import annotations

import gc
import os
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import grpc.aio

from benchmarks.bare_process import BareLoop
from benchmarks.figures import Figures, ratios
from benchmarks.load_client import GrpcClient, RestClient
from benchmarks.measured import measured
from benchmarks.prompts import Prompts, Tokenizer
from benchmarks.references.running import running
from benchmarks.references.servers import REFERENCES
from benchmarks.report import BASE, LOOKUP, Result
from benchmarks.scenarios import START, START_GUESS, Scenarios, measure_start
from benchmarks.schedule import Progress, Schedule, Step, duration, guess
from benchmarks.service import MODEL, serving
from benchmarks.workloads import (
    COMPARED,
    CROWDS,
    OF_TEXTS,
    WORKLOADS,
    plain_warm_up,
    vision_warm_up,
    warm_up,
)
from ovchat_server.kinds.text_generation import generation_spec
from ovchat_server.processors import available
from ovchat_server.processors import serving as off_the_first
from ovchat_server.serving.model_files import read_model_files
from ovchat_server.settings import ModelSettings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from benchmarks.load_client import Contender
    from benchmarks.scales import Scale

# How far off a prompt's tokens may be as servers of others count them: their templates and
# tokenizers are not ours.
REFERENCE_SLACK = 0.02
# A ratio of two requests of one contender: its name, and the figures that it is made of.
DERIVED = {
    "prefix": ("TTFT warm / cold", "warm: TTFT ms", "cold: TTFT ms"),
    "behind": ("TTFT behind / alone", "behind: TTFT ms", "alone: TTFT ms"),
    "image": ("TTFT known / new", "known: TTFT ms", "new: TTFT ms"),
    "images": (
        "worst gap by images / texts",
        "images, running: worst gap ms",
        "texts, running: worst gap ms",
    ),
}
# Of the time there is, for starting alone.
START_SHARE = 0.1


class ModelSuite:
    """Measures one model."""

    def __init__(  # noqa: PLR0913  what the command line says
        self,
        path: Path,
        scale: Scale,
        rounds: int,
        result: Result,
        progress: Progress,
        *,
        deadline: float | None = None,
        noise: bool = False,
        beside: Mapping[str, Path] | None = None,
        lookup: bool = False,
        properties: Mapping[str, str | float] | None = None,
    ) -> None:
        """Measure into `result`.

        Args:
            path: The model's folder.
            scale: How much is asked.
            rounds: How often.
            result: What figures are added to, of its model.
            progress: Is told what is being measured.
            deadline: When to be done, by the monotonic clock; None: after all rounds.
            noise: Measure also how far the bare loop is from itself.
            beside: Servers of others that are measured in turn with ours, and what each loads.
            lookup: Measure also a service of ours that has prompt lookup.
            properties: OpenVINO's, for ours and for the bare loop.
        """
        self._beside = beside or {}
        self._deadline = deadline
        self._lookup = lookup
        self._noise = noise
        self._path = path
        self._progress = progress
        self._properties = properties or {}
        self._scale = scale
        self._rounds = rounds
        self._result = result

    async def run(self, names: Sequence[str]) -> None:
        """Measure workloads and scenarios of these names."""
        if START in names:
            await self._start()
        if not set(names) <= {START}:
            await self._service(names)

    async def _start(self) -> None:
        now = time.monotonic()
        share = None if self._deadline is None else now + START_SHARE * (self._deadline - now)
        schedule = Schedule({START: START_GUESS}, self._rounds, share)
        for step in schedule.steps():
            self._announce(schedule, step)
            self._note(START, await measure_start(self._path, self._properties))
        self._result.left_out |= schedule.left_out()

    async def _service(self, names: Sequence[str]) -> None:
        async with AsyncExitStack() as stack:
            references: list[Contender] = []
            if set(names) & set(COMPARED):
                for name, model in self._beside.items():
                    self._say(f"starting {name}")
                    reference = running(REFERENCES[name], model)
                    references.append(await stack.enter_async_context(reference))
            self._say("starting ovchat up")
            service = await stack.enter_async_context(serving(self._path, self._properties))
            target = f"127.0.0.1:{service.grpc_port}"
            channel = await stack.enter_async_context(grpc.aio.insecure_channel(target))
            tokenizer = Tokenizer(MODEL, channel)
            prompts = await tokenizer.prompts(self._path)
            rest = RestClient(MODEL, service.rest_port)
            stack.push_async_callback(rest.close)
            speculating: list[Contender] = []
            if self._lookup:
                self._say("starting ovchat up with lookup")
                speculating.append(await self._speculating(stack))
            self._say("starting the bare loop")
            settings = ModelSettings(name=MODEL, path=self._path, properties=dict(self._properties))
            bare = await BareLoop.start(generation_spec(settings, read_model_files(self._path)))
            stack.push_async_callback(bare.close)
            contenders: list[Contender] = [bare, GrpcClient(MODEL, channel), rest, *speculating]
            first = vision_warm_up if prompts.image else warm_up
            for contender in contenders:
                self._say(f"warming up: {contender.name}")
                await contender.run(await tokenizer.complete(first(prompts)))
            for contender in references:
                self._say(f"warming up: {contender.name}")
                await contender.run(plain_warm_up(prompts))
            if self._noise:
                contenders.append(bare.again())
            # Callers are elsewhere: what ours computes here is not to stand in an engine's way.
            # Only now, as processes inherit it.
            stack.callback(os.sched_setaffinity, 0, available())
            os.sched_setaffinity(0, off_the_first(available(), 1))
            # A collection of what stays anyway would be charged to who is measured then.
            gc.freeze()
            asked = {
                # Their prompts stay the same: after gRPC's, REST's would be in the cache.
                name: [bare, rest, *speculating]
                if name in OF_TEXTS
                else [
                    *contenders,
                    *(references if name in COMPARED else []),
                    *([bare.spread()] if name in CROWDS else []),
                ]
                for name in names
                if name in WORKLOADS
            }
            scenarios = Scenarios(service, rest, channel, prompts, self._scale)
            guesses = scenarios.guesses() | {
                name: guess(WORKLOADS[name].plan(prompts, self._scale)) * len(asked[name])
                for name in asked
            }
            schedule = Schedule(
                {name: guesses[name] for name in names if name != START},
                self._rounds,
                self._deadline,
            )
            try:
                for step in schedule.steps():
                    if step.name in asked:
                        await self._round(schedule, step, asked[step.name], tokenizer, prompts)
                    else:
                        self._announce(schedule, step)
                        self._note(step.name, await scenarios.measure(step.name))
            finally:
                self._result.left_out |= schedule.left_out()
                self._print_ratios()

    async def _speculating(self, stack: AsyncExitStack) -> RestClient:
        """Start a service of ours that has prompt lookup, until the stack is left."""
        service = await stack.enter_async_context(
            serving(self._path, self._properties, {"speculation": "lookup"})
        )
        client = RestClient(MODEL, service.rest_port, LOOKUP)
        stack.push_async_callback(client.close)
        return client

    async def _round(
        self,
        schedule: Schedule,
        step: Step,
        contenders: Sequence[Contender],
        tokenizer: Tokenizer,
        prompts: Prompts,
    ) -> None:
        """Ask all contenders what the workload asks, one after the other."""
        workload = WORKLOADS[step.name]
        self._result.workloads[workload.name] = workload.about
        found: dict[str, Figures] = {}
        # Who comes first in one round comes last in the next.
        turn = step.round % len(contenders)
        for number, contender in enumerate((*contenders[turn:], *contenders[:turn]), 1):
            self._announce(schedule, step, f": {contender.name} ({number} of {len(contenders)})")
            plan = await tokenizer.complete(workload.plan(prompts, self._scale))
            slack = REFERENCE_SLACK if contender.name in REFERENCES else 0
            found[contender.name] = await measured(contender, plan, slack)
            if derived := DERIVED.get(workload.name):
                name, of, by = derived
                found[contender.name][name] = found[contender.name][of] / found[contender.name][by]
        self._result.rounds.setdefault(workload.name, []).append(found)

    def _announce(self, schedule: Schedule, step: Step, contender: str = "") -> None:
        """Say what is measured next, and how long all that is planned will take."""
        left = duration(schedule.remaining())
        round_ = f"round {step.round + 1} of {schedule.rounds}"
        self._say(f"{round_}, {step.name}{contender}, about {left} left")

    def _say(self, text: str) -> None:
        self._progress.say(f"{self._result.model}: {text}")

    def _print_ratios(self) -> None:
        for name, rounds in self._result.rounds.items():
            for contender in rounds[0]:
                speed = ratios(rounds, contender, BASE)["tokens/s"]
                print(
                    f"{self._result.model:<13}{name:<12}{contender:<23}"
                    f"tokens/s x {speed.median:.3f} [{speed.least:.3f} to {speed.most:.3f}]",
                    flush=True,
                )

    def _note(self, scenario: str, figures: Figures) -> None:
        self._result.service.setdefault(scenario, []).append(figures)
        listed = ", ".join(f"{name} {value:.3g}" for name, value in figures.items())
        print(f"{self._result.model:<13}{scenario:<12}{listed}", flush=True)
