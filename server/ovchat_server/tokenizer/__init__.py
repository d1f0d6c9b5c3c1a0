"""Tokenizers: text to tokens and back."""
