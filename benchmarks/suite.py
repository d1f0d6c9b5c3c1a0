"""How fast the service is beside the bare engine loop.

    .venv/bin/python -m benchmarks.suite [--model demo|0.6b] [--only WORKLOAD] [--rounds 5]
                                         [--quick] [--noise] [--name NAME]
                                         [--with llama.cpp] [--with OpenArc]

Starts what it needs: `ovchat up` with the model, the engine's pipeline in a bare loop, and the
servers of others that are asked for. Each workload is asked of all of them in turn, round after
round; figures are compared within a round.
Writes benchmarks/results/<model>.json, .md and .png. Whatever else the machine does meanwhile is
measured, too: let it do nothing else.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import grpc.aio

from benchmarks.bare_process import BareLoop
from benchmarks.client_cost import client_cost
from benchmarks.figures import Figures, ratios
from benchmarks.load_client import GrpcClient, RestClient
from benchmarks.machine import machine
from benchmarks.measured import measured
from benchmarks.plots import write_plots
from benchmarks.probes import probing
from benchmarks.prompts import Prompts, Tokenizer
from benchmarks.references.running import running
from benchmarks.references.servers import REFERENCES
from benchmarks.report import BASE, Result, write
from benchmarks.service import MODEL, Service, serving
from benchmarks.workloads import (
    COMPARED,
    CROWDS,
    QUICK,
    SCALES,
    WORKLOADS,
    Scale,
    decode,
    long_prompt,
    plain_warm_up,
    warm_up,
)
from ovchat_server.app import _engine_spec  # the server's own, so that it cannot differ
from ovchat_server.processors import available
from ovchat_server.processors import serving as off_the_first
from ovchat_server.serving.model_files import read_model_files
from ovchat_server.settings import ModelSettings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.load_client import Contender
    from benchmarks.workloads import Workload

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks/results"
MODELS = {
    "0.6b": ROOT / ".cache/benchmarks/qwen3-0.6b-int4",
    "demo": ROOT / "models/demo",
}
# What is measured of the service alone.
SCENARIOS = ("probes", "memory", "first-text", "start")
MEMORY_INTERVAL = 0.2
# The model that servers of others are measured with, and how far off a prompt's tokens may be as
# they count them: their templates and tokenizers are not ours.
REFERENCE_MODEL = "0.6b"
REFERENCE_SLACK = 0.02
# A ratio of two requests of one contender: its name, and the figures that it is made of.
DERIVED = {
    "prefix": ("TTFT warm / cold", "warm: TTFT ms", "cold: TTFT ms"),
    "behind": ("TTFT behind / alone", "behind: TTFT ms", "alone: TTFT ms"),
}


class Suite:
    """Measures one model."""

    def __init__(  # noqa: PLR0913  what the command line says
        self,
        scale: Scale,
        rounds: int,
        result: Result,
        *,
        noise: bool = False,
        beside: Sequence[str] = (),
        properties: Mapping[str, str | float] | None = None,
    ) -> None:
        """Measure into `result`.

        Args:
            scale: How much is asked.
            rounds: How often.
            result: What figures are added to, of its model.
            noise: Measure also how far the bare loop is from itself.
            beside: Servers of others that are measured in turn with ours.
            properties: OpenVINO's, for ours and for the bare loop.
        """
        self._beside = [REFERENCES[name] for name in beside]
        self._noise = noise
        self._properties = properties or {}
        self._path = MODELS[result.model]
        self._scale = scale
        self._rounds = rounds
        self._result = result

    async def run(self, names: Sequence[str]) -> None:
        """Measure workloads and scenarios of these names."""
        if "start" in names:
            await self._start()
        if not set(names) <= {"start"}:
            await self._service(names)

    async def _service(self, names: Sequence[str]) -> None:
        async with AsyncExitStack() as stack:
            references: list[Contender] = []
            if set(names) & set(COMPARED):
                references += [await stack.enter_async_context(running(r)) for r in self._beside]
            service = await stack.enter_async_context(serving(self._path, self._properties))
            target = f"127.0.0.1:{service.grpc_port}"
            channel = await stack.enter_async_context(grpc.aio.insecure_channel(target))
            tokenizer = Tokenizer(MODEL, channel)
            prompts = await tokenizer.prompts(self._path)
            rest = RestClient(MODEL, service.rest_port)
            stack.push_async_callback(rest.close)
            settings = ModelSettings(name=MODEL, path=self._path, properties=dict(self._properties))
            bare = await BareLoop.start(_engine_spec(settings, read_model_files(self._path), ()))
            stack.push_async_callback(bare.close)
            contenders: list[Contender] = [bare, GrpcClient(MODEL, channel), rest]
            for contender in contenders:
                await contender.run(await tokenizer.complete(warm_up(prompts)))
            for reference in references:
                await reference.run(plain_warm_up(prompts))
            if self._noise:
                contenders.append(bare.again())
            # Callers are elsewhere: what ours computes here is not to stand in an engine's way.
            # Only now, as processes inherit it.
            stack.callback(os.sched_setaffinity, 0, available())
            os.sched_setaffinity(0, off_the_first(available(), 1))
            # A collection of what stays anyway would be charged to who is measured then.
            gc.freeze()
            for name in names:
                if name in WORKLOADS:
                    beside = references if name in COMPARED else []
                    spread = [bare.spread()] if name in CROWDS else []
                    asked = [*contenders, *beside, *spread]
                    await self._workload(WORKLOADS[name], asked, tokenizer, prompts)
            if "probes" in names:
                await self._probes(rest, channel, prompts)
            if "memory" in names:
                await self._memory(rest, service, prompts)
            if "first-text" in names:
                await self._first_text(rest, prompts)

    async def _workload(
        self,
        workload: Workload,
        contenders: Sequence[Contender],
        tokenizer: Tokenizer,
        prompts: Prompts,
    ) -> None:
        self._result.workloads[workload.name] = workload.about
        for number in range(self._rounds):
            found: dict[str, Figures] = {}
            # Who comes first in one round comes last in the next.
            turn = number % len(contenders)
            for contender in (*contenders[turn:], *contenders[:turn]):
                plan = await tokenizer.complete(workload.plan(prompts, self._scale))
                slack = REFERENCE_SLACK if contender.name in REFERENCES else 0
                found[contender.name] = await measured(contender, plan, slack)
                if derived := DERIVED.get(workload.name):
                    name, of, by = derived
                    found[contender.name][name] = (
                        found[contender.name][of] / found[contender.name][by]
                    )
            self._result.rounds.setdefault(workload.name, []).append(found)
        rounds = self._result.rounds[workload.name]
        for contender in contenders:
            speed = ratios(rounds, contender.name, BASE)["tokens/s"]
            print(
                f"{self._result.model:<6}{workload.name:<12}{contender.name:<23}"
                f"tokens/s x {speed.median:.3f} [{speed.least:.3f} to {speed.most:.3f}]",
                flush=True,
            )

    async def _probes(self, rest: RestClient, channel: grpc.aio.Channel, prompts: Prompts) -> None:
        for _ in range(self._rounds):
            async with probing(rest, channel) as idle:
                await asyncio.sleep(1)
            async with probing(rest, channel) as during:
                for _ in range(self._scale.repeats):
                    await rest.run(long_prompt(prompts))
            figures = {f"idle, {name}": value for name, value in idle.items()}
            figures |= {f"a prompt is read, {name}": value for name, value in during.items()}
            self._note("probes", figures)

    async def _memory(self, rest: RestClient, service: Service, prompts: Prompts) -> None:
        for _ in range(self._rounds):
            figures: Figures = {}
            plan = decode(64).plan(prompts, self._scale)
            running = asyncio.create_task(rest.run(plan))
            while not running.done():
                for name, megabytes in service.memory().items():
                    figures[f"{name} MiB"] = max(figures.get(f"{name} MiB", 0), megabytes)
                await asyncio.wait([running], timeout=MEMORY_INTERVAL)
            await running
            self._note("memory", figures)

    async def _first_text(self, rest: RestClient, prompts: Prompts) -> None:
        ask = decode(1).plan(prompts, self._scale).phases[0][0].asks[0]
        tokens = await rest.tokens_before_text(ask)
        self._note("first-text", {"tokens generated when it leaves": float(tokens)})

    async def _start(self) -> None:
        for _ in range(self._rounds):
            async with serving(self._path, self._properties) as service:
                self._note("start", {"first token s": service.first_token})

    def _note(self, scenario: str, figures: Figures) -> None:
        self._result.service.setdefault(scenario, []).append(figures)
        told = ", ".join(f"{name} {value:.3g}" for name, value in figures.items())
        print(f"{self._result.model:<6}{scenario:<12}{told}", flush=True)


async def measure(options: argparse.Namespace) -> None:
    """Measure every model that was asked for, and write what was found."""
    for name in options.beside:
        if not REFERENCES[name].version:
            raise SystemExit(f"{name} is not installed: {REFERENCES[name].recipe}")
    cost = await client_cost()
    for model in options.model or MODELS:
        if not MODELS[model].is_dir():
            recipe = "benchmarks/models/qwen3_random.py"
            raise SystemExit(f"there is no {MODELS[model]}: make it with {recipe}")
        beside = options.beside if model == REFERENCE_MODEL else ()
        told = machine() | {name: REFERENCES[name].version for name in beside}
        result = Result(model=model, machine=told, client=cost)
        scale = (QUICK if options.quick else SCALES)[model]
        rounds = 1 if options.quick and options.rounds is None else options.rounds or 5
        try:
            properties = dict(options.property)
            suite = Suite(
                scale, rounds, result, noise=options.noise, beside=beside, properties=properties
            )
            await suite.run(options.only or (*WORKLOADS, *SCENARIOS))
        finally:
            # What was found until then is not lost.
            name = options.name or model + ("-quick" if options.quick else "")
            print(write(result, RESULTS, name), flush=True)
            write_plots(result, RESULTS, name)


def _property(text: str) -> tuple[str, str | int]:
    """One of OpenVINO's properties, from NAME=VALUE."""
    name, _, value = text.partition("=")
    return name, int(value) if value.isdecimal() else value


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = (*WORKLOADS, *SCENARIOS)
    parser.add_argument("--model", action="append", choices=MODELS, help="repeatable; default: all")
    parser.add_argument("--only", action="append", choices=names, metavar="WORKLOAD",
                        help=f"repeatable; default: all of {', '.join(names)}")  # fmt: skip
    parser.add_argument("--rounds", type=int, help="default 5, with --quick 1")
    parser.add_argument("--quick", action="store_true", help="little of each: does it work?")
    parser.add_argument("--noise", action="store_true", help="run the bare loop twice a round")
    parser.add_argument("--with", dest="beside", action="append", choices=REFERENCES, default=[],
                        help="measure this server of others, too; repeatable")  # fmt: skip
    parser.add_argument("--property", action="append", type=_property, default=[],
                        metavar="NAME=VALUE", help="OpenVINO's, such as "
                        "INFERENCE_PRECISION_HINT=f32; repeatable")  # fmt: skip
    parser.add_argument("--name", help="of the files to write; default: the model's")
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
