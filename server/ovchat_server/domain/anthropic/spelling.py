"""Fields of a chat as requests of the Messages API have them."""

from __future__ import annotations

from ovchat_server.domain.field_path import FieldPath


def spelled(path: FieldPath) -> FieldPath:
    """Return the path of a field of a chat as it is in a request of this API."""
    match path.steps:
        case ("stop", *inner):
            return FieldPath.of("stop_sequences", *inner)
    return path
