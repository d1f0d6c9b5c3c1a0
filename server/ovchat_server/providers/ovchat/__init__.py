"""The kind `ovchat`: another ovchat, over gRPC with the typed contract."""
