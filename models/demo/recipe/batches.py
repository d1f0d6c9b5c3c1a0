"""Endless training batches, drawn fresh: no conversation is seen twice but by chance."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from tokenizers import Tokenizer

from .conversations import draw_sample
from .samples import Sample
from .template import answer_text, prompt_text

IGNORED = -100
LONGEST = 1536
MICRO_BATCH_TOKENS = 3072
POOL = 400

Batch = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Encoded:
    """Token ids, and the targets: the next token where the model is to learn it."""

    ids: list[int]
    targets: list[int]
    answer_length: int


def encode(tokenizer: Tokenizer, sample: Sample) -> Encoded:
    """The tokens of a sample, to learn its answer and the earlier ones that stand as generated."""
    prompt = tokenizer.encode(prompt_text(sample)).ids
    answer = tokenizer.encode(answer_text(sample)).ids
    ids = prompt + answer
    learned = [False] * len(prompt) + [True] * len(answer)
    if sample.thinking:
        start, end = tokenizer.token_to_id("<|im_start|>"), tokenizer.token_to_id("<|im_end|>")
        opening = [start, *tokenizer.encode("assistant\n").ids]
        earlier = [message for message in sample.messages if message["role"] == "assistant"]
        position = 0
        for message in earlier:
            while ids[position : position + len(opening)] != opening:
                position += 1
            position += len(opening)
            stop = ids.index(end, position) + 1
            # The template drops earlier reasoning, so such a turn is not what was generated.
            if "reasoning_content" not in message:
                learned[position:stop] = [True] * (stop - position)
    targets = [
        token if wanted else IGNORED for token, wanted in zip(ids[1:], learned[1:], strict=True)
    ]
    return Encoded(ids[:-1], targets, len(answer))


def pad(batch: list[Encoded]) -> Batch:
    """Ids and targets as tensors, padded on the right: causal attention never looks there."""
    width = max(len(one.ids) for one in batch)
    ids = torch.zeros(len(batch), width, dtype=torch.long)
    targets = torch.full((len(batch), width), IGNORED, dtype=torch.long)
    for row, one in enumerate(batch):
        ids[row, : len(one.ids)] = torch.tensor(one.ids)
        targets[row, : len(one.targets)] = torch.tensor(one.targets)
    return ids, targets


def micro_batches(
    tokenizer: Tokenizer, weights: Mapping[str, float], rng: random.Random
) -> Iterator[Batch]:
    """Batches of like lengths, so that little is padding; `weights` may change meanwhile."""
    while True:
        names, shares = list(weights), list(weights.values())
        drawn = (
            encode(tokenizer, draw_sample(skill, rng, held_out=False))
            for skill in rng.choices(names, shares, k=POOL)
        )
        pool = sorted(
            (one for one in drawn if len(one.ids) <= LONGEST), key=lambda one: len(one.ids)
        )
        cut: list[list[Encoded]] = [[]]
        for one in pool:
            if len(cut[-1]) > 1 and len(one.ids) * (len(cut[-1]) + 1) > MICRO_BATCH_TOKENS:
                cut.append([])
            cut[-1].append(one)
        rng.shuffle(cut)
        # A batch of one would compile anew.
        yield from (pad(batch) for batch in cut if len(batch) > 1)
