"""Grammars: from JSON Schemas and other constraints to what a model's answer must follow."""
