"""How hard to try: a little in the suite, the same every time; more where it is asked for.

    OVCHAT_FUZZ_EXAMPLES=5000 pytest tests/fuzz

tries as many random examples in each test, others every time.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

ASKED = int(os.environ.get("OVCHAT_FUZZ_EXAMPLES", "0"))


def effort(examples: int) -> settings:
    """Try so many examples where nobody asked for more."""
    return settings(
        max_examples=ASKED or examples,
        derandomize=not ASKED,
        # What a test draws is sent to a server that may be busy.
        deadline=None,
        database=None,
        suppress_health_check=[
            HealthCheck.function_scoped_fixture,
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
        ],
    )
