"""How fast texts become embeddings, beside a bare loop of the model and sentence-transformers.

    .venv/bin/python -m benchmarks.embeddings [--rounds 5] [--texts 2000] [--model FOLDER]
                                              [--sentence-transformers PYTHON]

`ovchat up` serves the model; callers ask it over gRPC and over REST, each for its next request when
the last was answered. The bare loop has all tokens ready, sorts the texts by length and runs the
model on batches of the size that is best for it; what it has in common with a server is the model.
sentence-transformers, with its OpenVINO backend, encodes the texts of each request in turn, and all
at once. It needs a Python that has `sentence-transformers` and `optimum-intel[openvino]`.

All texts are asked for in turn in each round; given are texts per second and the p99 of requests as
medians over the rounds [least to most], and ratios within a round. The machine must do nothing
else.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import random
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import grpc.aio
import tokenizers

from benchmarks.figures import Figures, quantile, spreads
from benchmarks.load_client import RestClient, post
from benchmarks.service import configured
from ovchat.v1 import completion_pb2, embedding_service_pb2
from ovchat.v1.embedding_service_pb2_grpc import EmbeddingServiceStub

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from benchmarks.service import Service

ROOT = Path(__file__).resolve().parent.parent
MODEL = ROOT / ".cache/models/minilm"
PATH = "/v3/embeddings"
TABLE = """
[[models]]
name = "bench"
path = "{path}"
max_queue = 4096
"""
LINE_LIMIT = 1 << 26
GRPC, REST, BARE, ONE_BY_ONE = "gRPC", "REST", "bare loop", "bare loop, one by one"
ENCODED, ENCODED_ALL = "sentence-transformers", "sentence-transformers, all at once"
RATE = "texts/s"


@dataclass(frozen=True, slots=True)
class Load:
    """Callers at once.

    Attributes:
        callers: How many.
        together: Texts of each request.
        texts: All that are asked for.
    """

    callers: int
    together: int
    texts: Sequence[str]

    @property
    def about(self) -> str:
        """What it is, in words."""
        each = "1 text" if self.together == 1 else f"{self.together} texts"
        who = "1 caller" if self.callers == 1 else f"{self.callers} callers"
        return f"{who}, {each} a request"

    @property
    def requests(self) -> list[Sequence[str]]:
        """The texts of each request."""
        starts = range(0, len(self.texts), self.together)
        return [self.texts[start : start + self.together] for start in starts]

    async def ask(self, send: Callable[[int], Awaitable[object]]) -> Figures:
        """The figures of all requests, each sent by its number."""
        numbers = iter(range(len(self.requests)))
        took: list[float] = []

        async def caller() -> None:
            for number in numbers:
                start = time.perf_counter()
                await send(number)
                took.append(time.perf_counter() - start)

        gc.collect()
        start = time.perf_counter()
        await asyncio.gather(*(caller() for _ in range(self.callers)))
        seconds = time.perf_counter() - start
        return {RATE: len(self.texts) / seconds, "p99 ms": quantile(took, 0.99) * 1000}


class Worker:
    """A process that is asked by lines of JSON."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        """See start."""
        self._process = process

    @classmethod
    async def start(cls, python: str, program: str, *arguments: str) -> Self:
        """Run a program; it is ready when this returns."""
        process = await asyncio.create_subprocess_exec(
            *(python, str(ROOT / "benchmarks" / program), *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LINE_LIMIT,
        )
        worker = cls(process)
        await worker._line()
        return worker

    async def ask(self, **question: Any) -> Any:  # noqa: ANN401  JSON
        """Return the answer to a question."""
        assert self._process.stdin is not None  # noqa: S101  for the type
        self._process.stdin.write(json.dumps(question).encode() + b"\n")
        return await self._line()

    async def close(self) -> None:
        """End it."""
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()

    async def _line(self) -> Any:  # noqa: ANN401  JSON
        assert self._process.stdout is not None  # noqa: S101  for the type
        line = await self._process.stdout.readline()
        if not line:
            raise RuntimeError("a process that is compared with has ended")
        return json.loads(line)


def make_texts(model: Path, count: int) -> list[str]:
    """Texts of 8 to 256 tokens, of whole words of the model's vocabulary."""
    tokenizer = tokenizers.Tokenizer.from_file(str(model / "tokenizer.json"))
    words = sorted(word for word in tokenizer.get_vocab() if word.isalpha() and word.isascii())
    chance = random.Random(0)
    # Short ones are as frequent as long ones, on a scale that doubles.
    lengths = (round(2 ** chance.uniform(3, 8)) - 2 for _ in range(count))
    return [" ".join(chance.choices(words, k=length)) for length in lengths]


async def measure(
    options: argparse.Namespace, loads: Sequence[Load]
) -> dict[str, list[dict[str, Figures]]]:
    """The figures of each round, by load and who was asked."""
    found: dict[str, list[dict[str, Figures]]] = {load.about: [] for load in loads}
    model = str(options.model.resolve())
    hello = post({"model": "bench", "input": "Hello!"}, PATH)
    bare = await Worker.start(sys.executable, "embedding_loop.py", model)
    others = {}
    if python := options.sentence_transformers:
        others[ENCODED] = await Worker.start(python, "sentence_transformers_loop.py", model)
    async with configured(TABLE.format(path=model), request=hello) as service:
        for number in range(-1, options.rounds):
            for load in loads:
                print(f"{load.about}: round {number + 1}", file=sys.stderr)
                figures = await _round(load, service, bare, others)
                # Not counted: connections are made, and kernels for new shapes.
                if number >= 0:
                    found[load.about].append(figures)
    for worker in (bare, *others.values()):
        await worker.close()
    return found


async def _round(
    load: Load, service: Service, bare: Worker, others: dict[str, Worker]
) -> dict[str, Figures]:
    figures = {
        GRPC: await _typed(load, service),
        REST: await _rest(load, service),
        BARE: await bare.ask(texts=load.texts, one_by_one=False),
    }
    if load.together == 1:
        figures[ONE_BY_ONE] = await bare.ask(texts=load.texts, one_by_one=True)
    for name, worker in others.items():
        figures[name] = await worker.ask(requests=load.requests)
        figures[ENCODED_ALL] = await worker.ask(requests=[load.texts])
    return figures


async def _typed(load: Load, service: Service) -> Figures:
    requests = [
        embedding_service_pb2.CreateEmbeddingsRequest(
            model="bench", input=[completion_pb2.Prompt(text=text) for text in texts]
        )
        for texts in load.requests
    ]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{service.grpc_port}") as channel:
        stub = EmbeddingServiceStub(channel)
        return await load.ask(lambda number: stub.CreateEmbeddings(requests[number]))


async def _rest(load: Load, service: Service) -> Figures:
    # As OpenAI's SDK asks.
    requests = [
        post({"model": "bench", "input": list(texts), "encoding_format": "base64"}, PATH)
        for texts in load.requests
    ]
    client = RestClient("", service.rest_port)
    figures = await load.ask(lambda number: client.send(requests[number]))
    await client.close()
    return figures


def tell(about: str, rounds: Sequence[dict[str, Figures]]) -> None:
    """Print a row for each who was asked."""
    print(about)
    for name in rounds[0]:
        spread = spreads(rounds, name)
        row = f"    {name:<36}" + "".join(f"{spread[key]!s:<28} {key}  " for key in spread)
        row += "  ".join(
            f"x {statistics.median(values):.2f} of {other}"
            for other in (BARE, ONE_BY_ONE, ENCODED, ENCODED_ALL)
            if name in (GRPC, REST) and other in rounds[0]
            if (values := [one[name][RATE] / one[other][RATE] for one in rounds])
        )
        print(row.rstrip())


def main() -> None:
    """Read the command line, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--texts", type=int, default=2000)
    parser.add_argument("--model", type=Path, default=MODEL)
    parser.add_argument("--sentence-transformers", help="a Python that has it")
    options = parser.parse_args()
    texts = make_texts(options.model, options.texts)
    loads = [Load(callers, together, texts) for together in (1, 32) for callers in (1, 16, 64)]
    for about, rounds in asyncio.run(measure(options, loads)).items():
        tell(about, rounds)


if __name__ == "__main__":
    main()
