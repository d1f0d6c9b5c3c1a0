"""Anthropic's Messages API for the REST door."""
