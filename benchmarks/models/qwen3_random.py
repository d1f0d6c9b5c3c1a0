"""Make a model of Qwen3-0.6B's shape with random weights in int4, to measure with.

    pip install '.[benchmark-model]'
    python benchmarks/models/qwen3_random.py [--output .cache/benchmarks/qwen3-0.6b-int4]

Downloads nothing, takes some minutes and 6 GB of memory, and gives the same weights every time.
What it says is noise, but every token that it can say has a text of its own in ASCII: a stream
shows each of them. It never ends by itself.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import string
import tempfile
from pathlib import Path

import openvino
import torch
from openvino_tokenizers import convert_tokenizer
from optimum.intel import OVModelForCausalLM, OVWeightQuantizationConfig
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = ROOT / ".cache/benchmarks/qwen3-0.6b-int4"
TEMPLATE = ROOT / "models/demo/chat_template.jinja"
CONTROL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
# Those that the template writes, and parsers look for.
MARKUP_TOKENS = (
    *("<think>", "</think>", "<tool_call>", "</tool_call>"),
    *("<tool_response>", "</tool_response>"),
)
VOCABULARY = 32_768
CONTEXT_LENGTH = 40_960
SEED = 0


def make_tokenizer() -> PreTrainedTokenizerFast:
    """Bytes, and words of three letters, most of them with a space before them, too.

    A word is a capital and two small letters: merges then have one way only, and text that is
    made of such words has as many tokens as words.
    """
    merges: list[tuple[str, str]] = []
    for capital, small in itertools.product(string.ascii_uppercase, string.ascii_lowercase):
        merges.append((capital, small))
    for (capital, small), last in itertools.product(tuple(merges), string.ascii_lowercase):
        merges.append((capital + small, last))
    vocabulary = {letter: number for number, letter in enumerate(_byte_letters())}
    words = ("".join(merge) for merge in merges if len(merge[0]) > 1)
    free = VOCABULARY - len(vocabulary) - len(merges) - len(CONTROL_TOKENS) - len(MARKUP_TOKENS)
    # The letter that stands for a space.
    merges += [("\u0120", word) for word in itertools.islice(words, free)]
    for merge in merges:
        vocabulary["".join(merge)] = len(vocabulary)
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in CONTROL_TOKENS])
    tokenizer.add_tokens([AddedToken(token, special=False) for token in MARKUP_TOKENS])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        model_max_length=CONTEXT_LENGTH,
    )


def _byte_letters() -> list[str]:
    """GPT-2's letters for the bytes; printable ASCII comes first in their order."""
    return sorted(pre_tokenizers.ByteLevel.alphabet())


def silent_tokens(tokenizer: PreTrainedTokenizerFast) -> list[int]:
    """Tokens that are not to be said: control tokens, markup, and bytes that are not ASCII."""
    printable = set(string.ascii_letters + string.digits + string.punctuation + "\u0120")
    bytes_apart = [letter for letter in _byte_letters() if letter not in printable]
    names = [*bytes_apart, *CONTROL_TOKENS, *MARKUP_TOKENS]
    found: list[int] = tokenizer.convert_tokens_to_ids(names)
    return found


def make_model(tokenizer: PreTrainedTokenizerFast) -> Qwen3ForCausalLM:
    """Random weights in the shape of Qwen3-0.6B but for the size of the vocabulary."""
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=1024,
        intermediate_size=3072,
        num_hidden_layers=28,
        num_attention_heads=16,
        num_key_value_heads=8,
        head_dim=128,
        max_position_embeddings=CONTEXT_LENGTH,
        rope_theta=1_000_000,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    torch.manual_seed(SEED)
    model = Qwen3ForCausalLM(config).eval()
    with torch.no_grad():
        # Logits of 0, beside thousands of others of which some are always above it.
        model.model.embed_tokens.weight[silent_tokens(tokenizer)] = 0
    return model


def export(model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, output: Path) -> None:
    """Write the folder that a server loads."""
    with tempfile.TemporaryDirectory() as scratch:
        model.save_pretrained(scratch)
        tokenizer.save_pretrained(scratch)
        # As optimum-intel's own recipes do it, without data to calibrate with.
        quantization = OVWeightQuantizationConfig(bits=4, sym=False, group_size=128, ratio=1.0)
        exported = OVModelForCausalLM.from_pretrained(
            scratch, export=True, compile=False, quantization_config=quantization
        )
        exported.save_pretrained(output)
    write_tokenizer(tokenizer, TEMPLATE, output)


def write_tokenizer(tokenizer: PreTrainedTokenizerFast, template: Path, output: Path) -> None:
    """Write what a server reads of a tokenizer; a folder is whole once that is there."""
    converted = convert_tokenizer(tokenizer, with_detokenizer=True)
    for part, name in zip(converted, ("openvino_tokenizer", "openvino_detokenizer"), strict=True):
        openvino.save_model(part, output / f"{name}.xml", compress_to_fp16=False)
    tokenizer.backend_tokenizer.save(str(output / "tokenizer.json"))
    shutil.copyfile(template, output / "chat_template.jinja")
    ends = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    write_json(output / "generation_config.json", ends)
    # The last one: `make bench` takes the folder to be whole where it is there.
    names = {"eos_token": tokenizer.eos_token, "pad_token": tokenizer.pad_token}
    write_json(output / "tokenizer_config.json", names)


def write_json(path: Path, value: dict[str, object]) -> None:
    """Write a configuration."""
    path.write_text(json.dumps(value, indent=2) + "\n")


def main() -> None:
    """Write the model's folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    output: Path = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    tokenizer = make_tokenizer()
    export(make_model(tokenizer), tokenizer, output)
    megabytes = (output / "openvino_model.bin").stat().st_size / 1e6
    print(f"{output}: {megabytes:.0f} MB of weights")


if __name__ == "__main__":
    main()
