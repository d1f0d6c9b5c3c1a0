"""Images that chats name: where their files come from."""
