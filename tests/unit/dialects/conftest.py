"""What tests of dialects share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def templates() -> Path:
    """Chat templates of the families."""
    return Path(__file__).parents[2] / "data" / "templates"
