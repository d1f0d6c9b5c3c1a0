"""Kinds of models: each reads the folders of its own, and makes the model and its engine."""
