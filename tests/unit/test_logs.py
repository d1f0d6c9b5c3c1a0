"""Log lines: text for people, JSON for programs."""

from __future__ import annotations

import io
import json
import logging
import re
import sys
from typing import TYPE_CHECKING, Any

import pytest

from ovchat_server.telemetry.logs import configure_logs, decided_format
from ovchat_server.telemetry.text_logs import ACCESS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TIME = re.compile(r"\d\d:\d\d:\d\d ")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def root_logger() -> Iterator[None]:
    root = logging.getLogger()
    before = root.level, [*root.handlers]
    yield
    root.setLevel(before[0])
    root.handlers[:] = before[1]


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Logs one message in some format; what standard error has of it."""

    def write(
        message: str, log_format: str = "text", *, terminal: bool = False, **extra: Any
    ) -> str:
        stream = Terminal() if terminal else io.StringIO()
        monkeypatch.setattr(sys, "stderr", stream)
        configure_logs("info", log_format)
        logger = logging.getLogger(extra.pop("logger", "x"))
        level, exception = extra.pop("level", logging.INFO), extra.pop("exception", None)
        logger.log(level, message, extra=extra, exc_info=exception)
        return stream.getvalue()

    return write


def text_of(line: str) -> str:
    assert TIME.match(line), line
    return TIME.sub("", line, count=1).removesuffix("\n")


def test_text_adds_what_the_message_leaves_out(written: Callable[..., str]) -> None:
    line = written("demo is loaded in 1.2 s", model="demo", seconds=1.2, pid=77)
    assert text_of(line) == "demo is loaded in 1.2 s pid=77"


def test_json_has_all_of_it(written: Callable[..., str]) -> None:
    entry = json.loads(written("demo is loaded", "json", model="demo", level=logging.WARNING))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00", entry.pop("timestamp"))
    assert entry == {
        "level": "WARNING",
        "logger": "x",
        "message": "demo is loaded",
        "model": "demo",
    }


def test_a_traceback_follows_its_line(written: Callable[..., str]) -> None:
    line, *traceback = written("It failed", exception=ValueError("why")).splitlines()
    assert text_of(line) == "It failed"
    assert traceback == ["ValueError: why"]


@pytest.mark.parametrize("given", ["a\nb", "a\r\x1b[31mb", "a\u2028b", "a\u202eb"])
def test_no_text_ends_its_line_or_steers_a_terminal(
    written: Callable[..., str], given: str
) -> None:
    for line in (written(given), written("a", b=given)):
        assert text_of(line).isprintable()


def test_a_request_is_its_sentence_with_the_id_where_it_failed(
    written: Callable[..., str],
) -> None:
    fields = {"logger": ACCESS, "peer": "ipv4:127.0.0.1:5", "request_id": "r1"}
    well = written("GET /x 200", grpc_status="OK", **fields)
    ill = written("GET /x 404", grpc_status="NOT_FOUND", **fields)
    # A stream that broke.
    broken = written("GET /x 200", grpc_status="OK", error="internal_error", **fields)
    assert text_of(well) == "GET /x 200"
    assert text_of(ill) == "GET /x 404 request_id=r1"
    assert text_of(broken) == "GET /x 200 request_id=r1"


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_a_terminal_has_colours_unless_they_are_unwanted(
    written: Callable[..., str], monkeypatch: pytest.MonkeyPatch, no_color: str, *, coloured: bool
) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    line = written("It hangs", terminal=True, level=logging.WARNING)
    assert ("\x1b[33mIt hangs\x1b[0m" in line) is coloured
    assert ("\x1b" in line) is coloured
    assert "\x1b" not in written("It hangs", level=logging.WARNING)


def test_auto_is_text_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert [decided_format(name) for name in ("auto", "text", "json")] == ["text", "text", "json"]
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert [decided_format(name) for name in ("auto", "text", "json")] == ["json", "text", "json"]


def test_one_of_several_servers_says_which_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for log_format, logger in (("text", "x"), ("text", ACCESS), ("json", ACCESS)):
        stream = io.StringIO()
        monkeypatch.setattr(sys, "stderr", stream)
        configure_logs("info", log_format, 1)
        logging.getLogger(logger).info("GET /x 200 1 ms")
        if log_format == "json":
            assert json.loads(stream.getvalue())["server"] == 1
        else:
            own = " server=1" if logger == "x" else ""
            assert text_of(stream.getvalue()) == f"GET /x 200 1 ms{own}"
