"""Trains the byte-level BPE tokenizer: `python -m models.demo.recipe.tokenizer --output DIR`.

The pre-tokenizer cuts between letters and everything else, so that a word has the same tokens after
a space, inside quotes and before a full stop. Copying a word is then copying its tokens.
"""

import argparse
import json
import random
from collections.abc import Iterator
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel, Sequence, Split
from tokenizers.trainers import BpeTrainer

from .conversations import EXTRAS, SKILLS, draw_sample
from .template import answer_text, prompt_text

VOCABULARY = 1536
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MARKERS = (
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
)
"""Added tokens that are text to a client, as in Qwen3: decoding keeps them."""

# JSON's own punctuation in one piece each; then letters in runs, and anything else by itself.
PIECES = r'\{"|": \{"|": \["|": \{|": "|": |", "|\}, "|"\]|"\}+|\}+|, |\p{L}+|[^\p{L}]'


def build(texts: Iterator[str]) -> Tokenizer:
    """A tokenizer trained on the texts."""
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = Sequence(
        [
            Split(Regex(PIECES), behavior="isolated"),
            ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = ByteLevelDecoder()
    added = len(SPECIAL) + len(MARKERS)
    trainer = BpeTrainer(
        vocab_size=VOCABULARY - added,
        initial_alphabet=ByteLevel.alphabet(),
        min_frequency=2,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_special_tokens(
        [AddedToken(text, normalized=False, special=True) for text in SPECIAL]
    )
    tokenizer.add_tokens([AddedToken(text, normalized=False, special=False) for text in MARKERS])
    if tokenizer.get_vocab_size() != VOCABULARY:
        message = f"the vocabulary has {tokenizer.get_vocab_size()} entries instead of {VOCABULARY}"
        raise ValueError(message)
    return tokenizer


def corpus(samples: int, seed: int) -> Iterator[str]:
    """Training conversations as text, without the control tokens that are no part of BPE."""
    rng = random.Random(seed)
    names = [*SKILLS, *EXTRAS]
    for _ in range(samples):
        sample = draw_sample(rng.choice(names), rng, held_out=False)
        text = prompt_text(sample) + answer_text(sample)
        for token in (*SPECIAL, *MARKERS):
            text = text.replace(token, "\n")
        yield text


def save(tokenizer: Tokenizer, folder: Path) -> None:
    """Writes tokenizer.json and tokenizer_config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "added_tokens_decoder": {
            str(tokenizer.token_to_id(text)): {
                "content": text,
                "lstrip": False,
                "normalized": False,
                "rstrip": False,
                "single_word": False,
                "special": text in SPECIAL,
            }
            for text in (*SPECIAL, *MARKERS)
        },
        "additional_special_tokens": ["<|im_start|>", "<|im_end|>"],
        "bos_token": None,
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "unk_token": None,
        "clean_up_tokenization_spaces": False,
        "model_max_length": 4096,
    }
    (folder / "tokenizer_config.json").write_text(
        json.dumps(config, indent=2) + "\n", encoding="utf-8"
    )


def main() -> None:
    """Trains and saves the tokenizer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="folder for tokenizer.json")
    parser.add_argument("--samples", type=int, default=20_000, help="conversations to train on")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    save(build(corpus(options.samples, options.seed)), options.output)


if __name__ == "__main__":
    main()
