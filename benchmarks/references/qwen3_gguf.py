"""Write the weights of `models/qwen3_random.py` as llama.cpp reads them.

    make bench-llama-cpp

What is in 4 bits there is Q4_0 here, and the embedding is in 8 bits in both. Tokenizer and template
are the same, so a prompt has the same tokens.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

import gguf
import torch

from benchmarks.models.qwen3_random import (
    CONTROL_TOKENS,
    MARKUP_TOKENS,
    TEMPLATE,
    make_model,
    make_tokenizer,
)

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

ARCHITECTURE = gguf.MODEL_ARCH.QWEN3
Q4_0, Q8_0 = gguf.GGMLQuantizationType.Q4_0, gguf.GGMLQuantizationType.Q8_0
# llama.cpp's name for the rule that cuts texts into words as the tokenizer does.
WORDS_AS_IN = "gpt-2"


def add_shape(writer: gguf.GGUFWriter, config: Qwen3Config) -> None:
    """What the model is, without its weights."""
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q4_0)
    writer.add_vocab_size(config.vocab_size)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_theta)


def add_tokenizer(writer: gguf.GGUFWriter, tokenizer: PreTrainedTokenizerFast) -> None:
    """Tokens, merges and the template."""
    kinds = dict.fromkeys(CONTROL_TOKENS, gguf.TokenType.CONTROL)
    kinds |= dict.fromkeys(MARKUP_TOKENS, gguf.TokenType.USER_DEFINED)
    tokens = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    merges = json.loads(tokenizer.backend_tokenizer.to_str())["model"]["merges"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(WORDS_AS_IN)
    writer.add_token_list(tokens)
    writer.add_token_types([kinds.get(token, gguf.TokenType.NORMAL) for token in tokens])
    writer.add_token_merges([" ".join(merge) for merge in merges])
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_pad_token_id(tokenizer.pad_token_id)
    writer.add_add_bos_token(value=False)
    writer.add_chat_template(TEMPLATE.read_text())


def add_weights(writer: gguf.GGUFWriter, model: Qwen3ForCausalLM) -> None:
    """Matrices in 4 bits, the embedding in 8, vectors as they are."""
    names = gguf.get_tensor_name_map(ARCHITECTURE, model.config.num_hidden_layers)
    embedding = gguf.TENSOR_NAMES[gguf.MODEL_TENSOR.TOKEN_EMBD]
    # Without repeats: the embedding is the output's matrix, too, and llama.cpp takes it for both.
    for theirs, weight in model.named_parameters():
        name = names.get_name(theirs.removesuffix(".weight"))
        values = weight.detach().to(torch.float32).numpy()
        if values.ndim == 1:
            writer.add_tensor(f"{name}.weight", values)
            continue
        kind = Q8_0 if name == embedding else Q4_0
        packed = gguf.quants.quantize(values, kind)
        writer.add_tensor(f"{name}.weight", packed, raw_dtype=kind)


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    output: Path = parser.parse_args().output
    output.parent.mkdir(parents=True, exist_ok=True)
    tokenizer = make_tokenizer()
    model = make_model(tokenizer)
    # Whole where it has its name: `make` takes it to be so.
    unfinished = output.with_suffix(".unfinished")
    writer = gguf.GGUFWriter(unfinished, gguf.MODEL_ARCH_NAMES[ARCHITECTURE])
    add_shape(writer, model.config)
    add_tokenizer(writer, tokenizer)
    add_weights(writer, model)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    unfinished.rename(output)
    print(f"{output}: {output.stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
