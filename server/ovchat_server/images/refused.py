"""Why the file of an image is not read."""

from __future__ import annotations


class Refused(Exception):  # noqa: N818  a verdict on what the caller sent, not a fault
    """The file cannot be had, or may not be."""

    def __init__(self, complaint: str, code: str) -> None:
        """Make the verdict.

        Args:
            complaint: Completes "<field> ...", for the caller.
            code: OpenAI's word for it, one of those that a Response has in `error.code`.
        """
        super().__init__(complaint)
        self.complaint = complaint
        self.code = code


def too_large(max_bytes: int) -> Refused:
    """Return the verdict on a file of more bytes than are read."""
    return Refused(
        f"is larger than {max_bytes} bytes, the most that is read of an image: "
        "send a smaller image",
        "image_file_too_large",
    )
