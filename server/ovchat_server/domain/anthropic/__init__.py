"""Requests of Anthropic's Messages API."""
