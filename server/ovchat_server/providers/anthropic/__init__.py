"""The kind `anthropic`: providers that speak Anthropic's Messages API."""
