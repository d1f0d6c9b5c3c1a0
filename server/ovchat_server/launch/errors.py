"""What `ovchat up` tells a person and ends with."""

from __future__ import annotations


class LaunchError(Exception):
    """Nothing was started, or what was started has ended; the text says why and what to do."""
