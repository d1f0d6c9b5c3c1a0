"""The file of API keys: read, watched, and added to."""
