"""OpenAI's Responses API: answers as items of an output, and as the events that build them."""
