"""The grammar process: `python -m ovchat_server.engine.genai.grammar_process FD`.

It compiles or follows one grammar after the other, so that a grammar that crashes the compiler ends
this process and not the engine. It limits its own memory; the server limits the time.
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from setproctitle import setproctitle

from ovchat_server.engine.contract.frames import encode
from ovchat_server.engine.contract.grammar_messages import (
    SLOW_TO_FOLLOW,
    Checked,
    Compile,
    Follow,
    GrammarProcessReady,
    GrammarProcessSpec,
)
from ovchat_server.engine.process.channel import Channel, leave_ending_to_the_server
from ovchat_server.engine.process.telemetry_off import turn_off_telemetry

if TYPE_CHECKING:
    from ovchat_server.engine.genai.grammar_compiler import GrammarCompiler
    from ovchat_server.engine.genai.mask_times import MaskTimes

# What one grammar may take, with those that are still in the compiler's cache.
HEADROOM_BYTES = 512 << 20
# Verdicts are kept by the server, so few grammars come here twice.
MAX_CACHED_BYTES = 32 << 20


def main() -> int:
    """Compile and follow until the server is gone, or a grammar has taken all memory there is."""
    leave_ending_to_the_server()
    turn_off_telemetry()
    channel = Channel.inherited()
    frames = channel.receive(wait=True)
    if not frames:
        return 1
    spec = msgspec.msgpack.decode(frames[0], type=GrammarProcessSpec)
    setproctitle(f"ovchat grammars {spec.name}")

    from ovchat_server.engine.genai.grammar_compiler import load_compiler  # noqa: PLC0415
    from ovchat_server.engine.genai.mask_times import MaskTimes  # noqa: PLC0415

    compiler = load_compiler(spec.path, MAX_CACHED_BYTES)
    times = None
    if spec.followed_tokens:
        times = MaskTimes(compiler.tokenizer, compiler.vocabulary_size, spec.followed_tokens)
    # The library's own address space is a multiple of what it uses.
    limit = _address_space() + HEADROOM_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    channel.send(encode(GrammarProcessReady()))
    while frames := channel.receive(wait=True):
        request = msgspec.msgpack.decode(frames[0], type=Compile | Follow)
        try:
            reason = _fault(request, compiler, times)
        except MemoryError:
            channel.send(encode(Checked("it takes too much memory", last=True)))
            return 0
        channel.send(encode(Checked(reason)))
        # Not before a grammar, whose time it would take.
        if compiler.full:
            compiler.clear()
    return 0


def _fault(request: Compile | Follow, compiler: GrammarCompiler, times: MaskTimes | None) -> str:
    """Return why a grammar cannot be served; "" if it can.

    Raises:
        MemoryError: It takes more memory than there is.
    """
    from ovchat_server.engine.genai.grammar_compiler import GrammarError  # noqa: PLC0415

    try:
        # One that is followed is most often known.
        compiler.compile(request.grammar)
    except GrammarError as error:
        return str(error)
    if isinstance(request, Compile) or times is None:
        return ""
    slow = times.exceed(request.mask_seconds, request.grammar, request.tokens)
    return SLOW_TO_FOLLOW if slow else ""


def _address_space() -> int:
    """Return the size of this process's address space in bytes."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[0]
    return int(pages) * resource.getpagesize()


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)
