"""Make this Qwen2-VL: tiny, with random weights, for images that take fewer positions than tokens.

    pip install '.[demo-model]'
    python tests/data/qwen2-vl/recipe.py [--output tests/data/qwen2-vl]

It has the tokenizer of models/demo. Its answers mean nothing: they are compared with GenAI's own.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import openvino
import torch
from openvino_tokenizers import convert_tokenizer
from optimum.exporters.openvino import main_export
from transformers import PreTrainedTokenizerFast, Qwen2VLConfig, Qwen2VLForConditionalGeneration

FOLDER = Path(__file__).parent
DEMO = FOLDER.parents[2] / "models/demo"
HIDDEN_SIZE = 64
VISION_TOKENS = {
    "vision_start_token_id": "<|vision_start|>",
    "vision_end_token_id": "<|vision_end|>",
    "image_token_id": "<|image_pad|>",
    "video_token_id": "<|video_pad|>",
}
# Wide, or one answer would be as likely as another.
DEVIATION = 0.15


def make_tokenizer() -> PreTrainedTokenizerFast:
    """The demo model's, with the tokens that stand around images, and for them."""
    tokenizer = PreTrainedTokenizerFast.from_pretrained(DEMO)
    tokenizer.chat_template = None
    tokenizer.add_special_tokens({"additional_special_tokens": [*VISION_TOKENS.values()]})
    return tokenizer


def make_model(tokenizer: PreTrainedTokenizerFast) -> Qwen2VLForConditionalGeneration:
    """Random weights."""
    torch.manual_seed(0)
    rope = {"type": "mrope", "rope_type": "default", "mrope_section": [4, 6, 6]}
    text = {
        "vocab_size": len(tokenizer),
        "hidden_size": HIDDEN_SIZE,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "max_position_embeddings": 4096,
        "rope_scaling": rope,
        "bos_token_id": None,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "tie_word_embeddings": False,
    }
    vision = {"depth": 1, "embed_dim": 32, "num_heads": 2, "hidden_size": HIDDEN_SIZE}
    ids = {name: tokenizer.convert_tokens_to_ids(token) for name, token in VISION_TOKENS.items()}
    config = Qwen2VLConfig(text_config=text, vision_config={**vision, "mlp_ratio": 2}, **ids)
    model = Qwen2VLForConditionalGeneration(config)
    for weights in model.parameters():
        if weights.dim() > 1:
            torch.nn.init.normal_(weights, std=DEVIATION)
    return model


def export(
    model: Qwen2VLForConditionalGeneration, tokenizer: PreTrainedTokenizerFast, output: Path
) -> None:
    """Write the folder, but for how images are prepared."""
    with tempfile.TemporaryDirectory() as scratch:
        model.save_pretrained(scratch)
        tokenizer.save_pretrained(scratch)
        preprocessor = (FOLDER / "preprocessor_config.json").read_text()
        Path(scratch, "preprocessor_config.json").write_text(preprocessor)
        main_export(scratch, output, task="image-text-to-text", library_name="transformers")
    (output / "preprocessor_config.json").write_text(preprocessor)
    converted = convert_tokenizer(tokenizer, with_detokenizer=True)
    for part, name in zip(converted, ("openvino_tokenizer", "openvino_detokenizer"), strict=True):
        openvino.save_model(part, output / f"{name}.xml")


def main() -> None:
    """Make the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=FOLDER)
    output: Path = parser.parse_args().output
    tokenizer = make_tokenizer()
    export(make_model(tokenizer), tokenizer, output)


if __name__ == "__main__":
    main()
