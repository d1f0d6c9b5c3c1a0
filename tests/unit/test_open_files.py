"""How many files may be open, and for how many connections that leaves room."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ovchat_server.open_files import MAX_CONNECTIONS, RESERVE

LIMITED = """
import logging, resource, sys
logging.basicConfig(format="%(message)s")
from ovchat_server.open_files import connections, raise_limit, warn_if_few
soft, hard = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
raise_limit()
warn_if_few()
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0], connections(), connections(700))
"""
HARD = MAX_CONNECTIONS + RESERVE


@pytest.mark.parametrize(
    ("soft", "hard", "found"),
    [
        (256, HARD, f"{HARD} {MAX_CONNECTIONS} {MAX_CONNECTIONS - 700}"),
        (256, 1024, "1024 768 256"),
        (100, 200, "200 50 50"),
    ],
)
def test_the_limit_is_raised_and_leaves_room_for_other_files(
    soft: int, hard: int, found: str
) -> None:
    command = [sys.executable, "-c", LIMITED, str(soft), str(hard)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == found
    # Only where there is less room than there could be.
    assert ("ulimit -Hn" in ended.stderr) == (hard < HARD)
