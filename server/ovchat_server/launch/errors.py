"""The error that ends `ovchat up`."""

from __future__ import annotations


class LaunchError(Exception):
    """`ovchat up` cannot go on; the message says why and what to do.

    Empty where a child has said so already.
    """
