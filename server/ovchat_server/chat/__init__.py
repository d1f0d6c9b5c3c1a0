"""Text: chat templates, detokenizing, stop strings, parsers, deltas. Pure and synchronous."""
