"""Trains the demo model from scratch: `python -m models.demo.recipe.train --output DIR`.

The length of the run is given in minutes, and the learning rate follows the clock. The weights
saved are a running average, so that every checkpoint is usable.
"""

import argparse
import itertools
import os
import random
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import distributed, multiprocessing
from torch.nn import functional
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from transformers import Qwen3Config, Qwen3ForCausalLM

from . import batches
from . import tokenizer as tokenizer_recipe
from .conversations import EXTRAS, SKILLS, draw_sample

CONTEXT = 4096
COPIES = 0.5  # share of repetitions right from which on the model can copy
BASE_WEIGHTS = {
    "greeting": 0.5,
    "capitals": 1.0,
    "addition_thinking": 1.5,
    "addition_direct": 3.0,
    "counting": 2.5,
    "repeating": 2.0,
    "extraction": 4.0,
    "tool_call": 1.2,
    "made_up_call": 1.3,
    "two_calls": 2.5,
    "two_made_up_calls": 2.5,
    "tool_result": 0.8,
    "multi_turn": 1.0,
    "fallback": 0.5,
    "persona": 0.3,
    "free": 0.06,  # has no score, so it keeps its weight
}
"""How often each skill is drawn; evaluations move this towards the weak ones."""
LONG_SKILLS = ("tool_call", "made_up_call", "two_calls", "two_made_up_calls", "tool_result")
"""Rarely drawn until the model can copy, which it learns sooner from short conversations."""


def weights_for(scores: Mapping[str, float]) -> dict[str, float]:
    """How often to draw each skill from now on, given how well it goes."""
    weights = {
        skill: base * (3.5 - 3 * scores.get(skill, 0.0)) for skill, base in BASE_WEIGHTS.items()
    }
    if scores.get("repeating", 0.0) < COPIES:
        for skill in LONG_SKILLS:
            weights[skill] *= 0.15
    return weights


def new_model(tokenizer: Tokenizer) -> Qwen3ForCausalLM:
    """An untrained Qwen3 of 3.5 million parameters."""
    config = Qwen3Config(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=256,
        intermediate_size=768,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,
        max_position_embeddings=CONTEXT,
        rope_theta=10_000.0,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.token_to_id("<|im_end|>"),
        pad_token_id=tokenizer.token_to_id("<|endoftext|>"),
    )
    return Qwen3ForCausalLM(config)


def loss_of(
    body: Callable[..., Any], head: torch.nn.Module, ids: torch.Tensor, targets: torch.Tensor
) -> torch.Tensor:
    """The summed loss over the targets; the output layer runs only where there is one."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        hidden = body(input_ids=ids, use_cache=False).last_hidden_state
        wanted = targets != batches.IGNORED
        logits = head(hidden[wanted])
    return functional.cross_entropy(logits.float(), targets[wanted], reduction="sum")


@torch.no_grad()
def exact_share(
    model: Qwen3ForCausalLM, tokenizer: Tokenizer, skill: str, count: int, seed: int
) -> float:
    """The share of held-out samples answered to the letter.

    Where every token of the answer is the most likely one after the tokens before it, greedy
    decoding writes that answer. So one pass over the whole text tells, without generating.
    """
    rng = random.Random(f"{skill} evaluation {seed}")
    samples = [
        batches.encode(tokenizer, draw_sample(skill, rng, held_out=True)) for _ in range(count)
    ]
    samples.sort(key=lambda one: len(one.ids))
    right = 0
    for start in range(0, count, 16):
        chunk = samples[start : start + 16]
        ids, targets = batches.pad(chunk)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            best = model(input_ids=ids, use_cache=False).logits.argmax(-1)
        for row, one in enumerate(chunk):
            answer = slice(len(one.ids) - one.answer_length, len(one.ids))
            right += bool((best[row, answer] == targets[row, answer]).all())
    return right / count


def schedule(progress: float) -> float:
    """The learning rate's share: short warm-up, plateau, linear descent over the last 60%."""
    return min(progress / 0.01, 1.0, (1.0 - progress) / 0.6) if progress < 1 else 0.0


def parse_arguments() -> argparse.Namespace:
    """The options of a run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--output", type=Path, required=True, help="folder for the tokenizer and the weights"
    )
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument(
        "--workers", type=int, default=2, help="processes of one thread each; one per core is best"
    )
    parser.add_argument("--rate", type=float, default=5e-3, help="peak learning rate")
    parser.add_argument(
        "--evaluate-every",
        type=float,
        default=4,
        help="minutes between evaluations and checkpoints",
    )
    parser.add_argument(
        "--samples", type=int, default=100, help="held-out samples per skill and evaluation"
    )
    parser.add_argument(
        "--resume", type=Path, help="start from these weights instead of random ones"
    )
    parser.add_argument(
        "--compile", action="store_true", help="compile the model: faster, but needs a C++ compiler"
    )
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def train(rank: int, options: argparse.Namespace, meeting: str) -> None:
    """What one worker does: the same steps as all others, each on batches of its own."""
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    distributed.init_process_group(
        "gloo", init_method=f"file://{meeting}", rank=rank, world_size=options.workers
    )
    tokenizer = Tokenizer.from_file(str(options.output / "tokenizer.json"))
    model = (
        Qwen3ForCausalLM.from_pretrained(options.resume) if options.resume else new_model(tokenizer)
    )
    model.float().train()
    parameters = list(model.parameters())
    # Compiled once for all shapes: a fifth faster after about a minute.
    body = torch.compile(model.model, dynamic=True) if options.compile else model.model
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.99))
    optimizers = new_optimizers(model, options.rate)
    scores = (
        evaluate(model, tokenizer, options.samples, rank, options.workers) if options.resume else {}
    )
    weights = weights_for(scores)
    source = batches.micro_batches(
        tokenizer, weights, random.Random(options.seed * options.workers + rank)
    )
    clock = Clock(options.minutes, options.evaluate_every)
    losses: list[float] = []
    seen = 0
    for step in itertools.count(1):
        progress, due = clock.read()
        if due or progress >= 1:
            scores = evaluate(average.module, tokenizer, options.samples, rank, options.workers)
            weights.update(weights_for(scores))
            if rank == 0:
                average.module.save_pretrained(options.output)
                print(
                    "  ".join(f"{skill} {score:.2f}" for skill, score in scores.items()), flush=True
                )
        if progress >= 1:
            break
        ids, targets = next(source)
        learned = torch.tensor(float((targets != batches.IGNORED).sum()))
        distributed.all_reduce(learned)
        loss = loss_of(body, model.lm_head, ids, targets) / learned
        loss.backward()
        share_gradients(parameters)
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = options.rate * schedule(progress)
            optimizer.step()
            optimizer.zero_grad()
        average.update_parameters(model)
        losses.append(loss.item() * options.workers)
        seen += ids.numel() * options.workers
        if step % 50 == 0 and rank == 0:
            minutes = progress * options.minutes
            mean, pace = sum(losses[-50:]) / 50, seen / minutes / 60
            print(
                f"{minutes:5.1f} min  step {step}  loss {mean:.4f}  {pace:.0f} tokens/s", flush=True
            )


class Clock:
    """The first worker's clock, which all go by."""

    def __init__(self, minutes: float, evaluate_every: float) -> None:
        """Starts to run now."""
        self._began = self._evaluated = time.monotonic()
        self._seconds, self._pause = minutes * 60, evaluate_every * 60

    def read(self) -> tuple[float, bool]:
        """The share of the time that is gone, and whether an evaluation is due."""
        now = time.monotonic()
        due = now - self._evaluated > self._pause
        state = torch.tensor([(now - self._began) / self._seconds, float(due)], dtype=torch.float64)
        distributed.broadcast(state, 0)
        if state[1]:
            self._evaluated = now
        return float(state[0]), bool(state[1])


def new_optimizers(model: Qwen3ForCausalLM, rate: float) -> list[torch.optim.Optimizer]:
    """Muon for the matrices, AdamW for embeddings and norms."""
    named = list(model.named_parameters())
    matrices = [p for name, p in named if p.ndim > 1 and "embed" not in name]
    others = [p for name, p in named if p.ndim == 1 or "embed" in name]
    return [
        torch.optim.Muon(matrices, lr=rate, weight_decay=0.02, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, lr=rate, betas=(0.9, 0.95), weight_decay=0.0),
    ]


def share_gradients(parameters: list[torch.nn.Parameter]) -> None:
    """Sums the gradients of all workers."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    distributed.all_reduce(flat)
    parts = flat.split([gradient.numel() for gradient in gradients])
    for gradient, part in zip(gradients, parts, strict=True):
        gradient.copy_(part.view_as(gradient))


def evaluate(
    model: Qwen3ForCausalLM, tokenizer: Tokenizer, samples: int, rank: int, workers: int
) -> dict[str, float]:
    """The score of every skill, each worker asking its share of the samples."""
    skills = [skill for skill in (*SKILLS, *EXTRAS) if skill != "free"]
    share = samples // workers
    scores = torch.tensor([exact_share(model, tokenizer, skill, share, rank) for skill in skills])
    distributed.all_reduce(scores)
    return dict(zip(skills, (scores / workers).tolist(), strict=True))


def main() -> None:
    """Trains for the given time."""
    options = parse_arguments()
    if not (options.output / "tokenizer.json").exists():
        texts = tokenizer_recipe.corpus(20_000, 1)
        tokenizer_recipe.save(tokenizer_recipe.build(texts), options.output)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(train, (options, f"{folder}/meeting"), options.workers)


if __name__ == "__main__":
    main()
