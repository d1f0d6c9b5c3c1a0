"""Images in prompts: the answers are those that genai gives by itself."""

from __future__ import annotations

import asyncio
import dataclasses
import io
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import openvino as ov
import openvino_genai as genai
import pytest
from PIL import Image

from ovchat_server.backoff import Backoff
from ovchat_server.domain.errors import InternalError
from ovchat_server.engine.client.image_encoder import SupervisedImageEncoder
from ovchat_server.engine.contract.generation import GenerationRequest, Sampling
from ovchat_server.engine.contract.image_messages import ImageSpec
from ovchat_server.engine.contract.prompt import Prompt, PromptImage
from ovchat_server.tokenizer.huggingface import Tokenizer
from tests.conftest import EXACT, ROOT
from tests.engine.conftest import Watched, at_once, collect_all, loaded, spec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from ovchat_server.engine.contract.image_encoder import EncodedImage

MODELS = {"llava": ROOT / "models/demo-vision", "qwen2-vl": ROOT / "tests/data/qwen2-vl"}
TOKENS = 40
Parts = tuple["str | bytes", ...]


def image(seed: int, width: int, height: int) -> bytes:
    """The file of an image of large coloured squares."""
    squares = np.random.default_rng(seed).integers(0, 256, (4, 4, 3), dtype=np.uint8)
    picture = Image.fromarray(squares).resize((width, height), Image.Resampling.NEAREST)
    file = io.BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()


ONE, OTHER, LARGE = image(1, 90, 60), image(2, 90, 60), image(3, 300, 220)
# Twice the same beginning; images of one size in the same place.
PROMPTS: dict[str, Parts] = {
    "an image": (ONE, "What is it?"),
    "another": (OTHER, "What is it?"),
    "behind text": ("Look at this: ", ONE),
    "two images": (ONE, "and ", LARGE, "What are they?"),
    "swapped": (LARGE, "and ", ONE, "What are they?"),
    "a large one": (LARGE, "What is it? " * 8),
    "text alone": ("What is the capital of France?",),
}


class Reference:
    """genai's own answers."""

    def __init__(self, folder: Path) -> None:
        config = genai.SchedulerConfig()
        config.num_kv_blocks = 64
        config.max_num_batched_tokens = 4096
        self._pipeline = genai.ContinuousBatchingPipeline(str(folder), config, "CPU", EXACT)

    def answer(self, parts: Parts) -> list[int]:
        images = [part for part in parts if isinstance(part, bytes)]
        tags = iter(f"<ov_genai_image_{number}>" for number in range(len(images)))
        text = "".join(part if isinstance(part, str) else next(tags) for part in parts)
        pixels = [ov.Tensor(np.asarray(Image.open(io.BytesIO(file)))) for file in images]
        config = genai.GenerationConfig(max_new_tokens=TOKENS, ignore_eos=True)
        config.apply_chat_template = False
        handle = self._pipeline.add_request(0, text, pixels, config)
        while self._pipeline.has_non_finished_requests():
            self._pipeline.step()
        return list(handle.read_all()[0].generated_ids)


@dataclass
class Seeing:
    """A vision model: its engine, and what encodes its images."""

    folder: Path
    engine: Watched
    encoder: SupervisedImageEncoder
    expected: dict[str, list[int]]
    tokenizer: Tokenizer = field(init=False)

    def __post_init__(self) -> None:
        self.tokenizer = Tokenizer.load(self.folder)

    async def prompt(self, parts: Parts) -> tuple[Prompt, Sequence[EncodedImage]]:
        """The prompt, and what has to be kept as long as it is used."""
        tokens: list[int] = []
        places: list[PromptImage] = []
        kept: list[EncodedImage] = []
        for part in parts:
            if isinstance(part, str):
                tokens += self.tokenizer.encode(part)
            else:
                found = await self.encoder.encode(part)
                kept.append(found)
                places.append(PromptImage(len(tokens), found.length, found.hash, found.rows))
                tokens += [0] * found.length
        first = sum(item.length - item.positions for item in kept)
        return Prompt(tuple(tokens), tuple(places), first_position=first), kept

    async def answer(self, name: str) -> list[int]:
        prompt, _kept = await self.prompt(PROMPTS[name])
        request = GenerationRequest(prompt, TOKENS, Sampling(), ignore_eos=True)
        [sequence] = await collect_all(self.engine.engine.generate([request]))
        return sequence.tokens


@pytest.fixture(scope="module", params=MODELS)
def reference(request: pytest.FixtureRequest) -> tuple[Path, dict[str, list[int]]]:
    folder = MODELS[request.param]
    pipeline = Reference(folder)
    return folder, {name: pipeline.answer(parts) for name, parts in PROMPTS.items()}


@pytest.fixture(scope="module")
async def seeing(reference: tuple[Path, dict[str, list[int]]]) -> AsyncIterator[Seeing]:
    folder, expected = reference
    # Slices of 64 tokens, and a KV cache in which few of the prompts fit together.
    fields = {"max_num_batched_tokens": 64, "kv_blocks": 12, "end_tokens": ()}
    images = ImageSpec(name="images", path=str(folder), properties=EXACT)
    encoder = SupervisedImageEncoder(images, lambda: None, Backoff(at_once))
    encoder.start()
    async with loaded(Watched(spec(str(folder), **fields))) as engine:
        yield Seeing(folder, engine, encoder, expected)
    await encoder.close()


@pytest.mark.parametrize("name", PROMPTS)
async def test_an_answer_is_genais_own(seeing: Seeing, name: str) -> None:
    assert await seeing.answer(name) == seeing.expected[name]
    # From the prefix cache.
    assert await seeing.answer(name) == seeing.expected[name]


async def test_answers_are_right_together_when_room_is_short_and_the_engine_dies(
    seeing: Seeing,
) -> None:
    names = [*PROMPTS] * 4
    answers = [asyncio.create_task(seeing.answer(name)) for name in names]
    await seeing.engine.until_load(lambda load: load.preemptions > 0)
    for cancelled in answers[2::5]:
        cancelled.cancel()
    await seeing.engine.until_load(lambda load: load.generated_tokens > 2 * TOKENS)
    seeing.engine.kill()
    told = await asyncio.gather(*answers, return_exceptions=True)
    await seeing.engine.idle()
    whole = [
        (answer, seeing.expected[name])
        for name, answer in zip(names, told, strict=True)
        if not isinstance(answer, asyncio.CancelledError)
    ]
    assert len(whole) >= len(names) - len(answers[2::5])
    assert [answer for answer, _ in whole] == [expected for _, expected in whole]


@pytest.mark.parametrize("name", ["an image", "a large one"])
async def test_a_prompt_whose_image_is_gone_fails_alone(seeing: Seeing, name: str) -> None:
    prompt, _kept = await seeing.prompt(("Nobody asked this. ", *PROMPTS[name]))
    images = tuple(dataclasses.replace(item, rows="/nowhere.npy") for item in prompt.images)
    gone = GenerationRequest(dataclasses.replace(prompt, images=images), TOKENS)
    other = asyncio.create_task(seeing.answer("two images"))
    with pytest.raises(InternalError):
        await collect_all(seeing.engine.engine.generate([gone]))
    assert await other == seeing.expected["two images"]
    assert await seeing.answer(name) == seeing.expected[name]


def test_the_answers_differ(seeing: Seeing) -> None:
    assert len({*map(tuple, seeing.expected.values())}) == len(PROMPTS)
