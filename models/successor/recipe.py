"""Make the successor model: a test instrument whose next token is always known.

A Qwen3 architecture whose attention and MLP are silenced, so that only the last token
matters: each printable ASCII byte is followed by the next one, `~` by a space, anything
else by `a`. It never ends by itself. A token of another request in an answer is seen at
once, and so is one that is missing.

    python models/successor/recipe.py

Needs the extra `demo-model`, and half a minute.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import torch
from openvino import Core, save_model
from openvino_tokenizers import convert_tokenizer
from optimum.intel import OVModelForCausalLM
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

HERE = Path(__file__).resolve().parent
CONTROL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
PAD, END = 256, 258
VOCABULARY = 288
CONTEXT_LENGTH = 4096
# The prompt is what the last message says, and the answer goes on with the bytes after it.
TEMPLATE = """\
{%- for message in messages %}
{%- if not loop.last %}{{ '<|im_start|>' + message.content + '<|im_end|>' }}{% endif %}
{%- endfor %}
{{- messages[-1].content -}}
"""


def successor(token: int) -> int:
    """The token that follows `token`."""
    first, last = ord(" "), ord("~")
    if not first <= token <= last:
        return ord("a")
    return first if token == last else token + 1


def make_tokenizer() -> PreTrainedTokenizerFast:
    """A token for every byte, and the control tokens."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    # ByteLevel writes bytes that have no printable character of their own as others.
    to_byte = {char: byte for byte, char in enumerate(_byte_characters())}
    vocabulary = {char: to_byte[char] for char in alphabet}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in CONTROL_TOKENS])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        model_max_length=CONTEXT_LENGTH,
    )


def _byte_characters() -> list[str]:
    """The character that GPT-2's byte-level alphabet gives to each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte) if byte in plain else chr(next(others)) for byte in range(256)]


def make_model() -> Qwen3ForCausalLM:
    """The weights: one-hot embeddings, silent layers, a head that shifts by one."""
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=VOCABULARY,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=32,
        max_position_embeddings=CONTEXT_LENGTH,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=END,
        pad_token_id=PAD,
    )
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(config).eval()
    with torch.no_grad():
        model.model.embed_tokens.weight.copy_(torch.eye(VOCABULARY))
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
        head = torch.zeros(VOCABULARY, VOCABULARY)
        for token in range(VOCABULARY):
            # The norm of a one-hot vector scales it by the root of its length.
            head[successor(token), token] = 30 / VOCABULARY**0.5
        model.lm_head.weight.copy_(head)
    return model


def main() -> None:
    """Write the model's files beside this one."""
    tokenizer = make_tokenizer()
    with tempfile.TemporaryDirectory() as directory:
        make_model().save_pretrained(directory)
        tokenizer.save_pretrained(directory)
        exported = OVModelForCausalLM.from_pretrained(
            directory, export=True, compile=False, load_in_8bit=False
        )
        exported.save_pretrained(directory)
        core = Core()
        save_model(
            core.read_model(Path(directory) / "openvino_model.xml"),
            HERE / "openvino_model.xml",
            compress_to_fp16=True,
        )
    encode, decode = convert_tokenizer(tokenizer, with_detokenizer=True)
    save_model(encode, HERE / "openvino_tokenizer.xml")
    save_model(decode, HERE / "openvino_detokenizer.xml")
    tokenizer.backend_tokenizer.save(str(HERE / "tokenizer.json"))
    (HERE / "chat_template.jinja").write_text(TEMPLATE)
    _write_json("config.json", {"model_type": "qwen3", "max_position_embeddings": CONTEXT_LENGTH})
    _write_json("generation_config.json", {"eos_token_id": END, "pad_token_id": PAD})
    _write_json("tokenizer_config.json", {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"})


def _write_json(name: str, value: dict[str, object]) -> None:
    (HERE / name).write_text(json.dumps(value, indent=2) + "\n")


if __name__ == "__main__":
    main()
