"""Whether a model can draft for another."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from ovchat_server.kinds.base import ModelSettingsError
from ovchat_server.serving.model_files import read_model_files
from ovchat_server.serving.model_folder import ModelFilesError, ModelFolder
from ovchat_server.serving.model_path import MODEL, is_vision_model

if TYPE_CHECKING:
    from pathlib import Path

    from ovchat_server.serving.model_files import ModelFiles


def draft_context_length(name: str, path: Path, files: ModelFiles) -> int:
    """Return how many tokens a draft model was made for; check that it has the same vocabulary.

    Args:
        name: The name of the model for which it drafts.
        path: The folder of the draft model.
        files: The folder of the model for which it drafts.

    Raises:
        ModelSettingsError: It cannot draft; the message says why.
    """
    if is_vision_model(path):
        raise ModelSettingsError(f"the model {name!r}: draft_model must not be a vision model")
    try:
        ModelFolder(path).file(MODEL)
        draft = read_model_files(path)
    except ModelFilesError as error:
        raise ModelSettingsError(f"the model {name!r}: draft_model: {error}") from error
    ours, theirs = files.tokenizer.vocabulary, draft.tokenizer.vocabulary
    if ours == theirs:
        return draft.context_length
    first = next(token for token in itertools.count() if ours.get(token) != theirs.get(token))
    raise ModelSettingsError(
        f"the model {name!r}: draft_model must have the same vocabulary, and {path} has not: its "
        f"token {first} is {_shown(theirs, first)}, not {_shown(ours, first)}"
    )


def _shown(vocabulary: dict[int, str], token: int) -> str:
    return repr(vocabulary[token]) if token in vocabulary else "none"
