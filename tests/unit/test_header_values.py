"""Which headers a call may have, and what gRPC's own loggers write of others."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from ovchat_server.domain.errors import InvalidRequestError
from ovchat_server.rpc.access_line import Call
from ovchat_server.rpc.grpc_log import bound_grpc_log
from ovchat_server.rpc.header_values import check_headers

if TYPE_CHECKING:
    from collections.abc import Iterator

CYGRPC = logging.getLogger("grpc._cython.cygrpc")


def call(*metadata: tuple[str, str | bytes]) -> Any:
    return SimpleNamespace(invocation_metadata=lambda: metadata)


@pytest.mark.parametrize("value", ["", "Bearer k~", "a\tb c", b"\x00\xff"])
async def test_a_call_with_valid_headers_goes_on(value: str | bytes) -> None:
    name = "x-bin" if isinstance(value, bytes) else "x"
    async with check_headers(call((name, value)), "/a/b"):
        pass


@pytest.mark.parametrize("value", ["caf\xe9", "\xff" * 9, "a\x01", "a\x7f", "a\n", "\u20ac"])
async def test_a_call_with_other_bytes_in_a_header_is_refused_by_its_name(value: str) -> None:
    with pytest.raises(InvalidRequestError, match="The header 'x'") as caught:
        async with check_headers(call(("ok", "a"), ("x", value)), "/a/b"):
            pytest.fail("it was let in")
    assert value not in str(caught.value)


def test_a_header_with_such_bytes_is_not_in_the_access_log() -> None:
    assert Call.of("/a/b", {"user-agent": "secret\xff"}, "ipv4:127.0.0.1:1").user_agent == ""
    assert Call.of("/a/b", {"user-agent": "me/1"}, "ipv4:127.0.0.1:1").user_agent == "me/1"


@pytest.fixture
def bounded() -> Iterator[None]:
    before = list(CYGRPC.filters)
    bound_grpc_log()
    yield
    CYGRPC.filters[:] = before


@pytest.mark.usefixtures("bounded")
def test_grpc_logs_no_header_and_no_long_line(caplog: pytest.LogCaptureFixture) -> None:
    # As grpc._cython.cygrpc writes it of each header that is no UTF-8.
    CYGRPC.exception("Invalid encoding on %s", b"Bearer secret\xff" * 1000)
    CYGRPC.error("Something %s", "x" * 10_000)
    CYGRPC.error("Short")
    long, short = caplog.messages
    assert long.startswith("Something xxx")
    assert len(long) == 300
    assert short == "Short"
