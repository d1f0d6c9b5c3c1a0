"""The recipe of the demo model: conversations, tokenizer, training, export and evaluation."""
