"""How many random examples the tests try.

    OVCHAT_TEST_EFFORT=40 pytest tests/fuzz

tries forty times as many, and others in every run; with 1, the default, and less they are the
same in every run, so that a test that fails does so because of what was changed.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

EFFORT = float(os.environ.get("OVCHAT_TEST_EFFORT", "1"))


def scaled(count: int) -> int:
    """Return how many tries `count` are with the effort asked for."""
    return max(1, round(count * EFFORT))


def examples(count: int) -> settings:
    """Have Hypothesis try `count` examples instead of the profile's 100."""
    return settings(max_examples=scaled(count))


def load_profile() -> None:
    """Set what all of Hypothesis' tests share."""
    settings.register_profile(
        "ovchat",
        max_examples=scaled(100),
        derandomize=EFFORT <= 1,
        # A machine may be busy, and so may the server that is asked.
        deadline=None,
        database=None,
        suppress_health_check=[
            HealthCheck.function_scoped_fixture,
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
        ],
    )
    settings.load_profile("ovchat")
