"""Answers of the Responses API: items of an output, and events that build them."""
