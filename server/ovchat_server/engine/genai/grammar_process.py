"""The grammar process: `python -m ovchat_server.engine.genai.grammar_process FD`.

It compiles one grammar after the other, so that a grammar that crashes the compiler ends this
process and not the engine. It limits its own memory; the server limits the time.
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

import msgspec
from setproctitle import setproctitle

from ovchat_server.engine.contract.frames import encode
from ovchat_server.engine.contract.grammar_messages import (
    Checked,
    Compile,
    GrammarProcessReady,
    GrammarProcessSpec,
)
from ovchat_server.engine.process.channel import Channel, leave_ending_to_the_server
from ovchat_server.engine.process.telemetry_off import turn_off_telemetry

# What one grammar may take, with those that are still in the compiler's cache.
HEADROOM_BYTES = 512 << 20
# Verdicts are kept by the server, so few grammars come here twice.
MAX_CACHED_BYTES = 32 << 20


def main() -> int:
    """Compile until the server is gone, or a grammar has taken all memory there is."""
    leave_ending_to_the_server()
    turn_off_telemetry()
    channel = Channel.inherited()
    frames = channel.receive(wait=True)
    if not frames:
        return 1
    spec = msgspec.msgpack.decode(frames[0], type=GrammarProcessSpec)
    setproctitle(f"ovchat grammars {spec.name}")

    from ovchat_server.engine.genai.grammar_compiler import GrammarError, load_compiler  # noqa: PLC0415

    compiler = load_compiler(spec.path, MAX_CACHED_BYTES)
    # The library's own address space is a multiple of what it uses.
    limit = _address_space() + HEADROOM_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    channel.send(encode(GrammarProcessReady()))
    while frames := channel.receive(wait=True):
        request = msgspec.msgpack.decode(frames[0], type=Compile)
        try:
            compiler.compile(request.grammar)
            reason = ""
        except GrammarError as error:
            reason = str(error)
        except MemoryError:
            channel.send(encode(Checked("it takes too much memory to compile", last=True)))
            return 0
        channel.send(encode(Checked(reason)))
        # Not before a grammar, whose time it would take.
        if compiler.full:
            compiler.clear()
    return 0


def _address_space() -> int:
    """Return the size of this process's address space in bytes."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[0]
    return int(pages) * resource.getpagesize()


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)
