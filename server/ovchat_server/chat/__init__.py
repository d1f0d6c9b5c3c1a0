"""Text: templates, detokenising, stop strings, parsers, deltas. Pure and synchronous."""
