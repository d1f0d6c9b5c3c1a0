"""Whether a model can draft for another."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from ovchat_server.kinds.base import ModelSettingsError
from ovchat_server.serving.model_folder import ModelFilesError, ModelFolder
from ovchat_server.serving.model_path import MODEL
from ovchat_server.tokenizer.huggingface import Tokenizer, TokenizerError

if TYPE_CHECKING:
    from pathlib import Path


def check_draft_model(name: str, path: Path, tokenizer: Tokenizer) -> None:
    """Check that the folder of a draft model is one, and has the vocabulary of its model.

    Args:
        name: The name of the model for which it drafts.
        path: The folder of the draft model.
        tokenizer: The tokenizer of the model for which it drafts.

    Raises:
        ModelSettingsError: It cannot draft; the message says why.
    """
    try:
        ModelFolder(path).file(MODEL)
        drafts = Tokenizer.load(path)
    except ModelFilesError as error:
        raise ModelSettingsError(f"the model {name!r}: draft_model: {error}") from error
    except TokenizerError as error:
        raise ModelSettingsError(f"the model {name!r}: draft_model: {error}, in {path}") from error
    ours, theirs = tokenizer.vocabulary, drafts.vocabulary
    if ours == theirs:
        return
    differing = (token for token in itertools.count() if ours.get(token) != theirs.get(token))
    first = next(differing)
    raise ModelSettingsError(
        f"the model {name!r}: draft_model must have the same vocabulary, and {path} has not: its "
        f"token {first} is {_shown(theirs, first)}, not {_shown(ours, first)}"
    )


def _shown(vocabulary: dict[int, str], token: int) -> str:
    return repr(vocabulary[token]) if token in vocabulary else "none"
