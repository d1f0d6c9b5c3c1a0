"""JSON Schemas, and the grammars of the JSON that follows them."""
