"""Teaches the vision tower to see, before it is taught to speak.

From names alone a transformer would learn shapes from millions of pictures. So its middle layer has
to tell of each patch where the figure is in it, and whether there is a corner; and each patch that
the figure covers has to tell shape and colour in the end. Large figures come first.
"""

import math
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional
from transformers import CLIPVisionModel

from .pictures import COLOURS, SHAPES
from .pool import FINE, Pool
from .preprocessing import GRID, PATCH
from .workers import Clock, Optimiser

BATCH = 32
"""Pictures a step for each worker."""
RATE = 3e-3
_COVERED, _EMPTY = 0.1, 0.01
"""From which share of a patch on it has to name the figure, and up to which it must not."""
_MIDDLE = 2
"""After so many layers a patch knows its neighbours."""
_CORNERS = torch.tensor(4.0)
"""How much a patch with a corner counts: most have none."""
_FIRST, _ALL = 0.3, 0.4
"""The share of pictures to begin with, the easiest; and of the time after which all are used."""


class Heads(nn.Module):
    """What each patch says, at the middle and in the end. Only training needs it."""

    def __init__(self, width: int) -> None:
        """Make the heads."""
        super().__init__()
        self.middle = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, FINE * FINE + 1))
        self.pooled = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(), nn.Linear(width, len(SHAPES))
        )
        self.moments = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 5))
        self.norm = nn.LayerNorm(width)
        self.shape = nn.Linear(width, 1 + len(SHAPES))
        self.colour = nn.Linear(width, 1 + len(COLOURS))

    def forward(self, patches: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits of shapes and of colours, for each patch; the first is that of no figure."""
        patches = self.norm(patches)
        return self.shape(patches), self.colour(patches)


def prepare(tower: CLIPVisionModel) -> None:
    """Start from waves, in patches and across them: noise would have to become them first."""
    embeddings = tower.vision_model.embeddings
    with torch.no_grad():
        weight = embeddings.patch_embedding.weight
        weight.copy_(_waves_in_patch(len(weight)))
        embeddings.position_embedding.weight[1:] = 0.3 * _waves_across(weight.shape[0])


def _waves_in_patch(width: int) -> torch.Tensor:
    """The longest waves of a cosine transform, each in red, green and blue."""
    steps = (torch.arange(PATCH) + 0.5) * math.pi / PATCH
    waves = torch.cos(torch.arange(PATCH)[:, None] * steps) * (2 / PATCH) ** 0.5
    waves[0] /= 2  # the mean of a patch would drown the rest
    orders = sorted(((u, v) for u in range(PATCH) for v in range(PATCH)), key=lambda x: (sum(x), x))
    kernels = torch.zeros(width, 3, PATCH, PATCH)
    for row in range(width):
        u, v = orders[row // 3]
        kernels[row, row % 3] = 0.1 * torch.outer(waves[u], waves[v])
    return kernels


def _waves_across(width: int) -> torch.Tensor:
    """For each patch its row and column."""
    frequencies = torch.exp(torch.linspace(math.log(math.pi / GRID), math.log(math.pi), width // 4))
    steps = torch.arange(GRID).float()[:, None] * frequencies
    wave = torch.cat((steps.sin(), steps.cos()), 1)
    rows = wave[:, None].expand(GRID, GRID, -1)
    columns = wave[None].expand(GRID, GRID, -1)
    return torch.cat((rows, columns), -1).reshape(GRID * GRID, -1)


def seeing_loss(tower: CLIPVisionModel, heads: Heads, batch: Pool) -> list[torch.Tensor]:
    """How wrong the patches are: of masks, corners, edges, moments, shapes and colours."""
    layers = tower(batch.normalised(), output_hidden_states=True).hidden_states
    number = len(batch)
    cells = batch.masks.float().view(number, GRID, FINE, GRID, FINE) / 255
    cells = cells.transpose(2, 3).reshape(number, GRID * GRID, FINE * FINE)
    coverage = cells.mean(-1)
    told = heads.middle(layers[_MIDDLE][:, 1:])
    masks = functional.binary_cross_entropy_with_logits(told[..., 1:], cells)
    at_figure = coverage > 0
    corners = functional.binary_cross_entropy_with_logits(
        told[..., 0][at_figure], batch.corners.flatten(1)[at_figure].float(), pos_weight=_CORNERS
    )
    # The patches along the edge, taken together, tell the shape: it takes no look around to learn
    # what of an edge matters.
    edge = (at_figure & (coverage < 1)).float()[..., None]
    mean = (layers[_MIDDLE][:, 1:] * edge).sum(1) / edge.sum(1).clamp(min=1)
    together = functional.cross_entropy(heads.pooled(mean), batch.shapes)
    moments = heads.moments(layers[_MIDDLE + 1][:, 1:]) - _moments(coverage)
    losses = [3 * masks, corners, together, 2 * moments[at_figure].abs().mean()]
    # A figure smaller than a patch is told by the patch that has most of it.
    most = coverage.max(1, keepdim=True).values
    covered, empty = coverage >= most.clamp(max=_COVERED), coverage < _EMPTY
    truths = (batch.shapes, batch.colours)
    for logits, truth in zip(heads(layers[-1][:, 1:]), truths, strict=True):
        target = (truth + 1)[:, None].expand_as(coverage)
        named = functional.cross_entropy(logits[covered], target[covered])
        nothing = functional.cross_entropy(logits[empty], torch.zeros_like(target[empty]))
        losses.append(named + 0.3 * nothing)
    return losses


def _moments(coverage: torch.Tensor) -> torch.Tensor:
    """For each patch where the figure's middle is from there, and how far it extends."""
    places = (torch.arange(GRID) + 0.5) / GRID
    places = torch.stack(torch.meshgrid(places, places, indexing="ij"), -1).view(-1, 2)
    share = coverage / coverage.sum(1, keepdim=True)
    middle = (share[..., None] * places).sum(1, keepdim=True)
    away = places - middle
    products = torch.stack((away[..., 0] ** 2, away[..., 1] ** 2, away.prod(-1)), -1)
    spread = (share[..., None] * products).sum(1, keepdim=True)
    # Of about the same size as the distances.
    spread = spread.sign() * spread.abs().sqrt()
    return 4 * torch.cat((middle - places, spread.expand(-1, GRID * GRID, -1)), -1)


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


def teach(
    tower: CLIPVisionModel,
    heads: Heads,
    pools: tuple[Pool, Pool],
    minutes: float,
    save: Callable[[], None],
) -> None:
    """Train for that long on the first pool, telling how it goes on the second."""
    pool, held_out = pools
    # One that sees already needs no easy pictures, and would forget at the full rate.
    sees = score(tower, heads, held_out)[-1] > 0.5
    first, rate = (1.0, RATE / 2) if sees else (_FIRST, RATE)
    optimiser = Optimiser(nn.ModuleList((tower, heads)), rate)
    easiest = pool.ease.argsort(descending=True)
    clock, smooth = Clock(minutes), 0.0
    while clock.share < 1:
        used = min(first + (1 - first) * clock.share / _ALL, 1) * len(pool)
        drawn = easiest[torch.randint(int(used), (BATCH,))]
        losses = seeing_loss(tower, heads, pool.batch(drawn, int(torch.randint(8, ()))))
        optimiser.step(sum(losses), clock)
        smooth = 0.95 * smooth + 0.05 * torch.stack(losses).detach()
        if clock.is_time_to_tell():
            shape, colour, both = score(tower, heads, held_out)
            told = " ".join(f"{loss:.2f}" for loss in smooth.tolist())
            print(
                f"seeing: {clock.share:4.0%}, step {clock.steps}, losses {told}: "
                f"shape {shape:.1%}, colour {colour:.1%}, both {both:.1%}",
                flush=True,
            )
            save()
