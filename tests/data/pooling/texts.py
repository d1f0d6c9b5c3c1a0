"""What the tokenizers are trained on and what is embedded and ranked."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

INSTRUCTION = "Given a web search query, retrieve relevant passages that answer the query"
QUERY_PROMPT = f"Instruct: {INSTRUCTION}\nQuery:"

# Qwen3-Reranker's, as its model card has them.
RERANK_PREFIX = (
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and "
    'the Instruct provided. Note that the answer can only be "yes" or "no".<|im_end|>\n'
    "<|im_start|>user\n"
)
RERANK_SUFFIX = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"

TEXTS = [
    "cat",
    "The cat sits on the mat.",
    "A feline rests on a rug.",
    "the CAT sits on the mat",
    "The central bank raised its interest rates by half a percent today.",
    "Crème brûlée à la façon de Zoë: très sucrée.",
    "東京は日本の首都です。",
    "Rust, Go & C++: which one is faster? 🚀",
    "   two   spaces\tand\na new line  ",
    "7 * 6 = 42",
    "Paris is the capital of France, and Berlin is the capital of Germany; both lie on rivers.",
]

QUERY = "Which city is the capital of France?"
DOCUMENTS = [
    "Paris is the capital of France.",
    "Berlin is the capital of Germany.",
    "The cat sits on the mat.",
    "no",
    "France has many cities. The largest of them is Paris, where the president lives, too.",
    "東京は日本の首都です。",
    "Crème brûlée is a dessert 🍮",
    "The central bank raised its interest rates by half a percent today, and that is all.",
]

# Whole words become tokens only if they are frequent.
CORPUS = [*TEXTS[:5], *TEXTS[9:], QUERY, *DOCUMENTS, QUERY_PROMPT, RERANK_PREFIX] * 4 + [
    "yes\nno\n<Instruct>: <Query>: <Document>:"
] * 20


def with_longest(tokenizer: PreTrainedTokenizerFast, longest: int) -> list[str]:
    """Add a text of exactly `longest` tokens, special ones included."""
    text = ""
    words = " ".join(TEXTS[4:5] + TEXTS[1:3]).split() * longest
    for word in words:
        longer = f"{text} {word}".strip()
        if len(tokenizer(longer).input_ids) > longest:
            break
        text = longer
    while len(tokenizer(text).input_ids) < longest:
        # A letter of its own is a token.
        text += " a"
    assert len(tokenizer(text).input_ids) == longest, text
    return [*TEXTS, text]
