"""What the operator is told of models that cannot be loaded while others are served."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

logger = logging.getLogger(__name__)


def log_failed(served: Sequence[str], failed: Sequence[str]) -> None:
    """Say which models are served, which are not, and what becomes of these."""
    one = len(failed) == 1
    them = "it is" if one else "they are"
    reason = "for the reason above" if one else "for the reasons above"
    whose = "its folder" if one else "their folders"
    logger.warning(
        "%s; %s cannot be loaded, %s: %s tried again when a file of %s changes, and a change "
        "of %s settings needs a restart%s",
        f"{_are(served)} served" if served else "no model is served",
        ", ".join(failed),
        reason,
        them,
        whose,
        "its" if one else "their",
        "" if served else "; Ctrl-C ends it",
        extra={"served": ", ".join(served), "failed": ", ".join(failed)},
    )


def _are(models: Sequence[str]) -> str:
    return f"{', '.join(models)} {'is' if len(models) == 1 else 'are'}"
