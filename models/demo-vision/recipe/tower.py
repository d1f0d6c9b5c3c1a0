"""Teaches the vision tower to see, before it is taught to speak.

Each patch that the figure covers has to tell the figure's shape and colour, which makes a
transformer learn from thousands of pictures what the answers alone would take millions for.
"""

import math

import torch
from pictures import COLOURS, SHAPES
from pool import Pool
from preprocessing import GRID
from torch import nn
from torch.nn import functional
from transformers import CLIPVisionModel
from workers import Clock

BATCH = 32
"""Pictures a step for each worker."""
RATE = 1e-3
_WARM_UP = 0.05
"""The share of the time in which the learning rate rises."""
_COVERED, _EMPTY = 0.1, 0.01
"""From which share of a patch on it has to name the figure, and up to which it must not."""


class Heads(nn.Module):
    """What each patch says: nothing, or a shape and a colour. Only training needs it."""

    def __init__(self, width: int) -> None:
        """Make the two heads."""
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.shape = nn.Linear(width, 1 + len(SHAPES))
        self.colour = nn.Linear(width, 1 + len(COLOURS))

    def forward(self, patches: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits of shapes and of colours, for each patch."""
        patches = self.norm(patches)
        return self.shape(patches), self.colour(patches)


def set_positions(tower: CLIPVisionModel) -> None:
    """Start from waves along both axes, so that neighbours are known as such from the start."""
    embedding = tower.vision_model.embeddings.position_embedding.weight
    quarter = embedding.shape[1] // 4
    frequencies = torch.exp(torch.linspace(math.log(math.pi / GRID), math.log(math.pi), quarter))
    steps = torch.arange(GRID).float()[:, None] * frequencies
    wave = torch.cat((steps.sin(), steps.cos()), 1)
    rows = wave[:, None].expand(GRID, GRID, -1)
    columns = wave[None].expand(GRID, GRID, -1)
    with torch.no_grad():
        embedding[1:] = 0.3 * torch.cat((rows, columns), -1).reshape(GRID * GRID, -1)


def rate_at(share: float) -> float:
    """The learning rate by the share of the time: up, then down along a cosine."""
    if share < _WARM_UP:
        return RATE * share / _WARM_UP
    return RATE * (
        0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * (share - _WARM_UP) / (1 - _WARM_UP)))
    )


def patch_loss(heads: Heads, patches: torch.Tensor, batch: Pool) -> torch.Tensor:
    """How wrong the patches are."""
    coverage = batch.coverage.flatten(1)
    # A figure smaller than a patch is told by the patch that has most of it.
    most = coverage.max(1, keepdim=True).values
    covered, empty = coverage >= torch.minimum(most, torch.tensor(_COVERED)), coverage < _EMPTY
    loss = patches.new_zeros(())
    for logits, truth in zip(heads(patches), (batch.shapes, batch.colours), strict=True):
        target = (truth + 1)[:, None].expand_as(coverage)
        loss = loss + functional.cross_entropy(logits[covered], target[covered])
        loss = loss + 0.3 * functional.cross_entropy(logits[empty], torch.zeros_like(target[empty]))
    return loss


def named(heads: Heads, patches: torch.Tensor) -> list[torch.Tensor]:
    """The shape and the colour that the patches name together."""
    names = []
    for logits in heads(patches):
        votes = logits.softmax(-1)[..., 1:].sum(1)
        names.append(votes.argmax(-1))
    return names


@torch.no_grad()
def score(tower: CLIPVisionModel, heads: Heads, pool: Pool) -> tuple[float, float, float]:
    """The shares of pictures with the right shape, the right colour, and both."""
    shapes, colours = [], []
    for start in range(0, len(pool), 250):
        batch = pool.batch(torch.arange(start, min(start + 250, len(pool))), 0)
        patches = tower(batch.normalised()).last_hidden_state[:, 1:]
        shape, colour = named(heads, patches)
        shapes.append(shape == batch.shapes)
        colours.append(colour == batch.colours)
    shape, colour = torch.cat(shapes), torch.cat(colours)
    return tuple(x.float().mean().item() for x in (shape, colour, shape & colour))


def teach(tower: CLIPVisionModel, heads: Heads, pool: Pool, held_out: Pool, minutes: float) -> None:
    """Train for that long, telling how it goes."""
    parameters = [*tower.parameters(), *heads.parameters()]
    optimiser = torch.optim.AdamW(parameters, lr=RATE, weight_decay=0.05, betas=(0.9, 0.98))
    clock = Clock(minutes)
    while clock.share < 1:
        for group in optimiser.param_groups:
            group["lr"] = rate_at(clock.share)
        batch = pool.batch(torch.randint(len(pool), (BATCH,)), int(torch.randint(8, ())))
        loss = patch_loss(heads, tower(batch.normalised()).last_hidden_state[:, 1:], batch)
        optimiser.zero_grad()
        loss.backward()
        clock.average(parameters)
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()
        if clock.is_time_to_tell():
            shape, colour, both = score(tower, heads, held_out)
            print(
                f"seeing: {clock.share:4.0%}, step {clock.steps}, loss {loss.item():.3f}: "
                f"shape {shape:.1%}, colour {colour:.1%}, both {both:.1%}",
                flush=True,
            )
