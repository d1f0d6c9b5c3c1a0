"""Make a small Qwen2-VL with random weights, to measure what images cost.

    pip install '.[benchmark-model]'
    python benchmarks/models/qwen2_vl_random.py [--output .cache/benchmarks/qwen2-vl]

Its weights are in 8 bits. As in Qwen2-VL, an image takes a token for each 28 x 28 pixels, up to
1,280. For all else see qwen3_random, whose tokenizer it has.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch
from optimum.intel import OVModelForVisualCausalLM, OVWeightQuantizationConfig
from qwen3_random import (
    CONTEXT_LENGTH,
    SEED,
    make_tokenizer,
    silent_tokens,
    write_json,
    write_tokenizer,
)
from tokenizers import AddedToken
from transformers import PreTrainedTokenizerFast, Qwen2VLConfig, Qwen2VLForConditionalGeneration

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = ROOT / ".cache/benchmarks/qwen2-vl"
TEMPLATE = ROOT / "tests/data/templates/qwen2.5-vl.jinja"
VISION_TOKENS = {
    "vision_start_token_id": "<|vision_start|>",
    "vision_end_token_id": "<|vision_end|>",
    "image_token_id": "<|image_pad|>",
    "video_token_id": "<|video_pad|>",
}
PATCH, MERGE = 14, 2
PIXELS = {"min_pixels": 4 * (PATCH * MERGE) ** 2, "max_pixels": 1280 * (PATCH * MERGE) ** 2}
PREPROCESSOR = {
    "image_processor_type": "Qwen2VLImageProcessor",
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
    "patch_size": PATCH,
    "merge_size": MERGE,
    "temporal_patch_size": 2,
    **PIXELS,
    "size": {"shortest_edge": PIXELS["min_pixels"], "longest_edge": PIXELS["max_pixels"]},
}
HIDDEN_SIZE = 1024


def with_vision_tokens(tokenizer: PreTrainedTokenizerFast) -> PreTrainedTokenizerFast:
    """Add the tokens that stand around images, and for them."""
    tokens = [AddedToken(token, special=True) for token in VISION_TOKENS.values()]
    tokenizer.add_special_tokens({"additional_special_tokens": tokens})
    return tokenizer


def make_model(tokenizer: PreTrainedTokenizerFast) -> Qwen2VLForConditionalGeneration:
    """Random weights, a third of those of Qwen2-VL-2B."""
    vision = {"depth": 8, "embed_dim": 768, "num_heads": 12, "hidden_size": HIDDEN_SIZE}
    text = {
        "vocab_size": len(tokenizer),
        "hidden_size": HIDDEN_SIZE,
        "intermediate_size": 3072,
        "num_hidden_layers": 12,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "max_position_embeddings": CONTEXT_LENGTH,
        "rope_scaling": {"type": "mrope", "mrope_section": [8, 12, 12]},
        "tie_word_embeddings": True,
        "bos_token_id": None,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    ids = {key: tokenizer.convert_tokens_to_ids(token) for key, token in VISION_TOKENS.items()}
    config = Qwen2VLConfig(text_config=text, vision_config=vision, tie_word_embeddings=True, **ids)
    torch.manual_seed(SEED)
    model = Qwen2VLForConditionalGeneration(config).eval()
    silent = [*silent_tokens(tokenizer), *ids.values()]
    with torch.no_grad():
        # Logits of 0, beside thousands of others of which some are always above it.
        model.get_input_embeddings().weight[silent] = 0
    return model


def export(
    model: Qwen2VLForConditionalGeneration, tokenizer: PreTrainedTokenizerFast, output: Path
) -> None:
    """Write the folder that a server loads."""
    with tempfile.TemporaryDirectory() as scratch:
        model.save_pretrained(scratch)
        tokenizer.save_pretrained(scratch)
        write_json(Path(scratch, "preprocessor_config.json"), PREPROCESSOR)
        exported = OVModelForVisualCausalLM.from_pretrained(
            scratch,
            export=True,
            compile=False,
            quantization_config=OVWeightQuantizationConfig(bits=8),
        )
        exported.save_pretrained(output)
    write_json(output / "preprocessor_config.json", PREPROCESSOR)
    write_tokenizer(tokenizer, TEMPLATE, output)


def main() -> None:
    """Write the model's folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    output: Path = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    tokenizer = with_vision_tokens(make_tokenizer())
    export(make_model(tokenizer), tokenizer, output)
    megabytes = sum(file.stat().st_size for file in output.glob("*.bin")) / 1e6
    print(f"{output}: {megabytes:.0f} MB of weights")


if __name__ == "__main__":
    main()
