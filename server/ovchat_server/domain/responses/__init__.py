"""The Responses API: its requests, read by declared types into chats."""
