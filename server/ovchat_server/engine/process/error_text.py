"""What went wrong in an engine process, in words for an operator."""

from __future__ import annotations

import re

# Where OpenVINO's source says so, on the machine that it was built on.
_PLACES = re.compile(r"Exception from \S+:\d+:\s*|Check '.*' failed at \S+:\d+:\s*")
_LIBRARY = re.compile(r'/[^\s"]*/(?=[^\s"/]+\.so\b)')


def error_text(error: BaseException) -> str:
    """Return an error's own words in one line, without its places in OpenVINO's source."""
    text = _LIBRARY.sub("", _PLACES.sub("", str(error)))
    line = " ".join(text.split()).rstrip(".!")
    # OpenVINO throws RuntimeErrors; of another error the name says more than its words.
    name = "" if type(error) is RuntimeError and line else type(error).__name__
    return ": ".join(filter(None, (name, line)))
