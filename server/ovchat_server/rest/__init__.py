"""The REST door: OpenAI's JSON and server-sent events, inside HttpBody messages."""
