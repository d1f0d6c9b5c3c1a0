"""OpenAI's Responses API for the REST door."""
