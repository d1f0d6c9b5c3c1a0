"""What an engine's libraries write becomes lines of the log."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ovchat_server.engine.client.process_output import LONGEST, log_output
from ovchat_server.engine.client.spawn import start_child

if TYPE_CHECKING:
    import pytest

START = "demo: its engine process wrote: "


async def test_each_line_is_one_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    stream = asyncio.StreamReader()
    for piece in (b"[ERROR] one\n\nt", b"wo \xff\n", b"x" * 3 * LONGEST, b"y\nend"):
        stream.feed_data(piece)
    stream.feed_eof()

    await log_output("demo", stream)

    assert caplog.messages == [
        f"{START}[ERROR] one",
        f"{START}two \N{REPLACEMENT CHARACTER}",
        START + "x" * LONGEST,
        f"{START}end",
    ]


async def test_standard_output_and_error_of_a_process_are_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # Python says of a module that is not there on standard error.
    process, ours = await start_child("ovchat_server.gone", output=asyncio.subprocess.PIPE)
    ours.close()
    assert process.stdout is not None
    await log_output("demo", process.stdout)
    await process.wait()
    assert "No module named ovchat_server.gone" in caplog.messages[-1]
