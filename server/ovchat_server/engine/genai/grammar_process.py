"""The grammar sandbox's process: `python -m ovchat_server.engine.genai.grammar_process FD`.

Compiles one grammar after the other, so that what kills a compiler kills this process and
no engine. Whoever started it watches the time; memory it limits itself.
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
    SandboxReady,
    SandboxSpec,
)
from ovchat_server.engine.process.channel import Channel, leave_ending_to_the_server

# What one grammar may take, and what all together may leave behind in the compiler's cache.
HEADROOM_BYTES = 512 << 20
MAX_LEFT_BYTES = 128 << 20


def main() -> int:
    """Compile until the server is gone, or there is too little memory left."""
    leave_ending_to_the_server()
    channel = Channel.inherited()
    frames = channel.receive(wait=True)
    if not frames:
        return 1
    spec = msgspec.msgpack.decode(frames[0], type=SandboxSpec)
    setproctitle(f"ovchat grammars {spec.name}")

    from ovchat_server.engine.genai.grammar_compiler import GrammarError, ScratchCompiler  # noqa: PLC0415

    compiler = ScratchCompiler(spec.path)
    # The library's own address space is a multiple of what it uses.
    limit = _memory(0) + HEADROOM_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    used = _memory(1)
    channel.send(encode(SandboxReady()))
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
        last = _memory(1) - used > MAX_LEFT_BYTES
        channel.send(encode(Checked(reason, last)))
        if last:
            return 0
    return 0


def _memory(field: int) -> int:
    """Bytes: field 0 the address space, field 1 what is resident."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[field]
    return int(pages) * resource.getpagesize()


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)
