"""Trains the demo model for pictures from scratch: first to see, then to speak.

    python -m models.demo-vision.recipe.train --output build/demo-vision

Writes weights and tokenizer as Hugging Face keeps them, for export.py.
"""

import argparse
import json
import random
import time
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken, Tokenizer
from torch.nn import functional
from transformers import (
    CLIPVisionConfig,
    LlamaConfig,
    LlavaConfig,
    LlavaForConditionalGeneration,
)

from . import tower, workers
from .conversations import IMAGE, MODEL, Conversation, draw_conversation, tokens_of
from .pictures import COLOURS, SHAPES
from .pool import Pool, draw_pool
from .preprocessing import PATCH, SIDE
from .workers import Clock, Optimiser

CONTEXT = 4096
PICTURES, HELD_OUT = 24_000, 300
WIDTH, TEXT_WIDTH = 128, 128
BATCH = 12
"""Conversations a step for each worker."""
MOST_PICTURES = 3
"""Of a conversation in training."""
RATE = 2e-3
HEADS = "heads.safetensors"


def make_tokenizer() -> Tokenizer:
    """The demo model's tokenizer, with a token for pictures."""
    tokenizer = Tokenizer.from_file(str(MODEL.parent / "demo/tokenizer.json"))
    tokenizer.add_special_tokens([AddedToken(IMAGE, normalized=False, special=True)])
    return tokenizer


def make_model(tokenizer: Tokenizer) -> LlavaForConditionalGeneration:
    """The model with random weights."""
    vision = CLIPVisionConfig(
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=4,
        num_attention_heads=4,
        image_size=SIDE,
        patch_size=PATCH,
        projection_dim=WIDTH,
    )
    text = LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=TEXT_WIDTH,
        intermediate_size=3 * TEXT_WIDTH,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=CONTEXT,
        bos_token_id=None,
        eos_token_id=tokenizer.token_to_id("<|im_end|>"),
        pad_token_id=tokenizer.token_to_id("<|endoftext|>"),
    )
    config = LlavaConfig(
        vision_config=vision,
        text_config=text,
        image_token_index=tokenizer.token_to_id(IMAGE),
        vision_feature_layer=-1,
        vision_feature_select_strategy="default",
    )
    model = LlavaForConditionalGeneration(config)
    tower.prepare(model.model.vision_tower)
    return model


def save(model: LlavaForConditionalGeneration, tokenizer: Tokenizer, folder: Path) -> None:
    """Write everything that export.py reads."""
    model.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    demo = MODEL.parent / "demo/tokenizer_config.json"
    config = json.loads(demo.read_text(encoding="utf-8"))
    picture = {"content": IMAGE, "special": True} | dict.fromkeys(
        ("lstrip", "normalized", "rstrip", "single_word"), False
    )
    config["added_tokens_decoder"][str(tokenizer.token_to_id(IMAGE))] = picture
    config["additional_special_tokens"].append(IMAGE)
    config["image_token"] = IMAGE
    text = json.dumps(config, indent=2) + "\n"
    (folder / "tokenizer_config.json").write_text(text, encoding="utf-8")


def speaking_loss(
    model: LlavaForConditionalGeneration,
    tokenizer: Tokenizer,
    talks: list[Conversation],
    shown: torch.Tensor,
) -> tuple[torch.Tensor, float]:
    """How wrong the answers are, and the share of their tokens that are right."""
    rows = [tokens_of(tokenizer, talk) for talk in talks]
    longest = max(len(tokens) for tokens, _ in rows)
    padding = model.config.text_config.pad_token_id
    tokens = torch.tensor([row + [padding] * (longest - len(row)) for row, _ in rows])
    said = torch.tensor([row + [False] * (longest - len(row)) for _, row in rows])
    # Padding is behind everything that counts, so no row looks at it.
    embeddings = model.get_input_embeddings()(tokens)
    if len(shown):
        pictures = model.model.multi_modal_projector(shown)
        places = (tokens == model.config.image_token_id)[..., None].expand_as(embeddings)
        embeddings = embeddings.masked_scatter(places, pictures)
    hidden = model.model.language_model(inputs_embeds=embeddings).last_hidden_state
    logits = model.lm_head(hidden[:, :-1][said[:, 1:]])
    right = tokens[:, 1:][said[:, 1:]]
    loss = functional.cross_entropy(logits, right)
    return loss, (logits.argmax(-1) == right).float().mean().item()


def teach_speaking(
    model: LlavaForConditionalGeneration, tokenizer: Tokenizer, pool: Pool, minutes: float
) -> None:
    """Train projector and language model on what the tower sees by now."""
    model.model.vision_tower.requires_grad_(requires_grad=False)
    optimiser = Optimiser(model, RATE)
    rng = random.Random(torch.initial_seed())
    clock = Clock(minutes)
    while clock.share < 1:
        talks, wanted = [], []
        for _ in range(BATCH):
            indices = [rng.randrange(len(pool)) for _ in range(MOST_PICTURES)]
            figures = [(SHAPES[pool.shapes[i]], COLOURS[pool.colours[i]]) for i in indices]
            talks.append(draw_conversation(rng, figures))
            wanted.extend(indices[number] for number in talks[-1].pictures)
        batch = pool.batch(torch.tensor(wanted), rng.randrange(8))
        with torch.no_grad():
            shown = model.model.vision_tower(batch.normalised()).last_hidden_state[:, 1:]
        loss, right = speaking_loss(model, tokenizer, talks, shown)
        optimiser.step(loss, clock)
        if clock.is_time_to_tell():
            print(
                f"speaking: {clock.share:4.0%}, step {clock.steps}, loss {loss.item():.3f}: "
                f"tokens {right:.1%}",
                flush=True,
            )


def train(rank: int, pool: Pool, held_out: Pool, options: argparse.Namespace) -> None:
    """Train with the other workers; the first one writes the weights."""
    tokenizer = make_tokenizer()
    torch.manual_seed(0)
    if options.resume:
        model = LlavaForConditionalGeneration.from_pretrained(options.resume)
    else:
        model = make_model(tokenizer)
    eyes, heads = model.model.vision_tower, tower.Heads(WIDTH)
    if options.resume:
        heads.load_state_dict(load_file(options.resume / HEADS), strict=False)
    # From here on each worker draws its own.
    torch.manual_seed(1 + rank)

    def keep() -> None:
        if rank == 0:
            save(model, tokenizer, options.output)
            save_file(heads.state_dict(), options.output / HEADS)

    teachers = (
        (options.seeing, lambda minutes: tower.teach(eyes, heads, (pool, held_out), minutes, keep)),
        (options.speaking, lambda minutes: teach_speaking(model, tokenizer, pool, minutes)),
    )
    for minutes, teach in teachers:
        if minutes:
            teach(minutes)
        keep()


def main() -> None:
    """Train, and write the weights."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="folder for the weights")
    parser.add_argument("--seeing", type=float, default=25, metavar="MINUTES")
    parser.add_argument("--speaking", type=float, default=12, metavar="MINUTES")
    parser.add_argument("--resume", type=Path, help="weights of an earlier run, to go on with")
    parser.add_argument("--workers", type=int, default=2, help="as many as there are processors")
    options = parser.parse_args()
    start = time.monotonic()
    pool = draw_pool(PICTURES, f"training {options.resume}", options.workers)
    held_out = draw_pool(HELD_OUT, "scores", options.workers)
    print(f"{len(pool)} pictures drawn in {time.monotonic() - start:.0f} s", flush=True)
    workers.run(train, options.workers, pool, held_out, options)


if __name__ == "__main__":
    main()
