"""Tokens: the engine process, its client, the tokenizer, admission to the KV cache."""
