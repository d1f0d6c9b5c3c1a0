"""How fast the service is beside the bare engine loop.

    .venv/bin/python -m benchmarks.suite [--model smollm2|0.6b|demo|qwen2-vl] [--weights int8|file]
                                         [--only WORKLOAD] [--rounds 5] [--minutes 10]
                                         [--quick] [--noise] [--name NAME]
                                         [--with llama.cpp] [--with OpenArc] [--with lookup]

smollm2 is a real model, 0.6b one of Qwen3-0.6B's shape with random weights, demo a tiny one, and
qwen2-vl a vision model with random weights, which is asked about images.

Starts what it needs: `ovchat up` with the model, the engine's pipeline in a bare loop, the servers
of others that are asked for, and for `lookup` a second `ovchat up`, which has prompt lookup. Each
workload is asked of all of them in turn; figures are compared within such a round. All workloads
have their first round before any has its second, so that with `--minutes` later rounds are left out
first. What is measured and how much is left is written to stderr, figures to stdout.
Writes benchmarks/results/<model>.json, .md and .png. Whatever else the machine does meanwhile is
measured, too: let it do nothing else.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.client_cost import client_cost
from benchmarks.machine import machine
from benchmarks.model_suite import ModelSuite
from benchmarks.models import smollm2
from benchmarks.plots import write_plots
from benchmarks.references.servers import REFERENCES
from benchmarks.report import LOOKUP, Result, write
from benchmarks.scales import QUICK, SCALES
from benchmarks.scenarios import SCENARIOS
from benchmarks.schedule import Progress
from benchmarks.workloads import OF_IMAGES, OF_TEXTS, WORKLOADS
from ovchat_server.conversion.weight_form import WeightForm

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks/results"
VISION = "qwen2-vl"
FOLDERS = {
    "0.6b": ROOT / ".cache/benchmarks/qwen3-0.6b-int4",
    "demo": ROOT / "models/demo",
    VISION: ROOT / ".cache/benchmarks/qwen2-vl",
}
CONVERTED = "smollm2"
MODELS = (CONVERTED, *FOLDERS)


async def measure(options: argparse.Namespace) -> None:
    """Measure every model that was asked for, and write what was found."""
    progress = Progress(sys.stderr)
    end = None if options.minutes is None else time.monotonic() + 60 * options.minutes
    servers = [name for name in options.beside if name != LOOKUP]
    for name in servers:
        if not REFERENCES[name].version:
            raise SystemExit(f"{name} is not installed: {REFERENCES[name].recipe}")
    models = options.model or [*MODELS]
    beside = {model: _beside(model, servers) for model in models}
    paths = {model: _folder(model, options.weights) for model in models}
    progress.say("measuring what the client itself costs")
    cost = await client_cost()
    for number, model in enumerate(models):
        loaded = {
            name: f"{REFERENCES[name].version}, {file.name}" for name, file in beside[model].items()
        }
        # Vision models cannot have it.
        lookup = LOOKUP in options.beside and model != VISION
        if lookup:
            loaded[LOOKUP] = 'ours over REST, with speculation = "lookup"'
        found_on = machine() | {"model": paths[model].name} | loaded
        in_form = model == CONVERTED and options.weights != WeightForm.INT8
        title = f"{model}-{options.weights}" if in_form else model
        result = Result(model=title, machine=found_on, client=cost)
        rounds = 1 if options.quick and options.rounds is None else options.rounds or 5
        try:
            suite = ModelSuite(
                paths[model],
                (QUICK if options.quick else SCALES)[model],
                rounds,
                result,
                progress,
                deadline=_share_of(end, len(models) - number),
                noise=options.noise,
                beside=beside[model],
                lookup=lookup,
                properties=dict(options.property),
            )
            await suite.run(options.only or _asked(model))
        finally:
            # What was found until then is not lost.
            name = options.name or title + ("-quick" if options.quick else "")
            print(write(result, RESULTS, name), flush=True)
            write_plots(result, RESULTS, name)
        if result.left_out:
            progress.say(f"{title}: rounds left out for lack of time: {result.listed_left_out()}")
    progress.say("done")


def _asked(model: str) -> Sequence[str]:
    """Return all that a model is measured with."""
    if model == VISION:
        return OF_IMAGES
    others = OF_IMAGES if model == CONVERTED else (*OF_IMAGES, *OF_TEXTS)
    return [name for name in (*WORKLOADS, *SCENARIOS) if name not in others]


def _folder(model: str, form: WeightForm) -> Path:
    """Return the folder of a model that ours and the bare loop load."""
    return smollm2.converted(form) if model == CONVERTED else _existing(FOLDERS[model])


def _beside(model: str, names: Sequence[str]) -> dict[str, Path]:
    """Return what each of these servers of others loads, of those that have the model."""
    found = {name: REFERENCES[name].models.get(model) for name in names}
    return {name: _existing(path) for name, path in found.items() if path}


def _existing(path: Path) -> Path:
    if not path.exists():
        raise SystemExit(f"there is no {path}: `make bench` with the same arguments makes it")
    return path


def _share_of(end: float | None, models: int) -> float | None:
    """Return when to be done with the next of so many models that share the time until `end`."""
    if end is None:
        return None
    now = time.monotonic()
    return now + (end - now) / models


def _property(text: str) -> tuple[str, str | int]:
    """Read one of OpenVINO's properties from NAME=VALUE."""
    name, _, value = text.partition("=")
    return name, int(value) if value.isdecimal() else value


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = (*WORKLOADS, *SCENARIOS)
    parser.add_argument("--model", action="append", choices=MODELS, help="repeatable; default: all")
    parser.add_argument("--weights", type=WeightForm, choices=[*WeightForm],
                        default=WeightForm.INT8, help="what smollm2's are kept in")  # fmt: skip
    parser.add_argument("--only", action="append", choices=names, metavar="WORKLOAD",
                        help=f"repeatable; default: all of {', '.join(names)}")  # fmt: skip
    parser.add_argument("--rounds", type=int, help="default 5, with --quick 1")
    parser.add_argument("--minutes", type=float, help="leave out what would take longer")
    parser.add_argument("--quick", action="store_true", help="little of each: does it work?")
    parser.add_argument("--noise", action="store_true", help="run the bare loop twice a round")
    parser.add_argument("--with", dest="beside", action="append", choices=(*REFERENCES, LOOKUP),
                        default=[],
                        help="measure this server of others, too, where it has the model, "
                        "or ours with prompt lookup; repeatable")  # fmt: skip
    parser.add_argument("--property", action="append", type=_property, default=[],
                        metavar="NAME=VALUE", help="OpenVINO's, such as "
                        "INFERENCE_PRECISION_HINT=f32; repeatable")  # fmt: skip
    parser.add_argument("--name", help="of the files to write; default: the model's")
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
