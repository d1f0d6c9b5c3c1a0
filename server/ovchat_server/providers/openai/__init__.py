"""The kind `openai`: providers that speak OpenAI's Chat Completions and Completions."""
