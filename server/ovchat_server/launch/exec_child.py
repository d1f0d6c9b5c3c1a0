"""Become another program, and end when the parent ends. Run as a file, by `child.spawn`.

The kernel's death signal outlives exec, and can be set only by the process it is for. Doing it
here, after the fork, needs no code between fork and exec in a parent that has threads (what
`preexec_fn` would be). Imports nothing of ours: it costs every start of a child some 10 ms.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Become the program.

    Args:
        arguments: The parent's process id, the processors to run on (comma-separated, or empty),
            the name for ps (or empty), and the program with its arguments.
    """
    parent, processors, name, program, *rest = arguments
    # KILL: a parent that was killed cannot follow up on a child that is slow to obey TERM.
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        code = ctypes.get_errno()
        sys.exit(f"prctl: {os.strerror(code)}")
    # The parent may have ended before the line above.
    if os.getppid() != int(parent):
        sys.exit(1)
    if processors:
        os.sched_setaffinity(0, map(int, processors.split(",")))
    try:
        os.execvp(program, [name or program, *rest])  # noqa: S606 - this is the module's purpose
    except OSError as error:
        sys.stderr.write(f"{program}: {error.strerror}\n")
        sys.exit(127)


if __name__ == "__main__":
    main(sys.argv[1:])
