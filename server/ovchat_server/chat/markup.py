"""Finding tags in text that arrives in pieces."""

from __future__ import annotations


def overlap(text: str, tag: str) -> int:
    """Length of the longest end of `text` that may still become `tag`, short of all of it."""
    longest = min(len(tag) - 1, len(text))
    return next((n for n in range(longest, 0, -1) if text.endswith(tag[:n])), 0)


def split_at_tag(text: str, tag: str) -> tuple[str, str, bool]:
    """Split `text` at the first `tag`.

    Returns:
        The text before the tag, what follows, and whether the tag was found. Where it was
        not, what follows is the end of the text that may still become the tag.
    """
    before, found, after = text.partition(tag)
    if found:
        return before, after, True
    passed = len(text) - overlap(text, tag)
    return text[:passed], text[passed:], False
