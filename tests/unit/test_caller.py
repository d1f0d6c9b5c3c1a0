"""Which client a call is taken for."""

from __future__ import annotations

import contextlib
import socket
from types import SimpleNamespace
from typing import Any

import pytest

from ovchat_server.domain.errors import AuthenticationError
from ovchat_server.domain.identity import Identity, KeyRing, KeyRules
from ovchat_server.rpc.caller import identify
from ovchat_server.serving.caller import current_caller
from ovchat_server.serving.record import begin_record
from tests.keys import api_keys

[NAME] = (key.name for key in api_keys("k"))
IDENTITY = Identity(NAME, NAME)


def own_address() -> str:
    """What this machine calls others from, where it is on a network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        with contextlib.suppress(OSError):
            # Sends nothing.
            probe.connect(("203.0.113.1", 9))
        address: str = probe.getsockname()[0]
    return address if address != "0.0.0.0" else "127.0.0.2"


async def identified(
    metadata: tuple[tuple[str, str], ...], *keys: str, peer: str = "unix:"
) -> Identity:
    context: Any = SimpleNamespace(invocation_metadata=lambda: metadata, peer=lambda: peer)
    record = begin_record()
    async with identify(KeyRing(api_keys(*keys)))(
        context, "/ovchat.v1.ChatService/CreateChatCompletion"
    ):
        return record.caller


async def identity(*headers: tuple[str, str]) -> Identity:
    return await identified(headers, "k", "other")


async def known(peer: str, forwarded_for: str | None) -> str:
    metadata = () if forwarded_for is None else (("x-forwarded-for", forwarded_for),)
    return (await identified(metadata, peer=peer)).client


@pytest.mark.parametrize(
    "peer",
    [
        "ipv4:127.0.0.1:5000",
        "ipv6:%5B::1%5D:5000",
        "ipv6:[::1]:5000",
        "ipv6:%5B::ffff:127.0.0.1%5D:5000",
        "unix:",
        "unix:/run/ovchat.sock",
        "unix-abstract:ovchat-1-1",
    ],
)
async def test_envoy_is_believed_who_calls_through_it(peer: str) -> None:
    assert await known(peer, "203.0.113.9") == "203.0.113.9"
    # What the client itself says of others before it comes first.
    assert await known(peer, "198.51.100.1, 203.0.113.9") == "203.0.113.9"


async def test_an_envoy_that_calls_from_this_machines_own_address_is_believed() -> None:
    assert await known(f"ipv4:{own_address()}:5000", "203.0.113.9") == "203.0.113.9"


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        ("ipv4:198.51.100.7:5000", "ipv4:198.51.100.7"),
        ("ipv6:%5B2001:db8::7%5D:5000", "ipv6:%5B2001:db8::7%5D"),
        ("ipv6:%5Bfe80::7%25eth9%5D:5000", "ipv6:%5Bfe80::7%25eth9%5D"),
        ("ipv6:%5B::ffff:198.51.100.7%5D:5000", "ipv6:%5B::ffff:198.51.100.7%5D"),
        ("strange", ""),
    ],
)
async def test_others_cannot_choose_a_name(peer: str, address: str) -> None:
    for forwarded_for in (None, "203.0.113.9", "127.0.0.1"):
        assert await known(peer, forwarded_for) == address


async def test_a_direct_caller_of_this_machine_is_known_by_its_address() -> None:
    assert await known("ipv4:127.0.0.1:5000", None) == "ipv4:127.0.0.1"


@pytest.mark.parametrize("header", ["Bearer k", "bearer  k", "BEARER k "])
async def test_a_key_is_one_client_however_its_header_is_spelled(header: str) -> None:
    assert await identity(("authorization", header)) == IDENTITY


@pytest.mark.parametrize("name", ["x-api-key", "api-key"])
async def test_a_key_may_come_in_another_header(name: str) -> None:
    assert await identity((name, "k")) == IDENTITY


async def test_a_bearer_token_counts_before_another_header() -> None:
    headers = (("x-api-key", "other"), ("api-key", "wrong"), ("authorization", "Bearer k"))
    assert await identity(*headers) == IDENTITY


@pytest.mark.parametrize(
    "headers",
    [
        (),
        (("authorization", "Bearer"),),
        (("authorization", "Basic k"),),
        (("authorization", "k"),),
        (("x-api-key", "wrong"),),
        (("x-api-key", "K"),),
    ],
)
async def test_callers_without_a_key_are_refused(headers: tuple[tuple[str, str], ...]) -> None:
    with pytest.raises(AuthenticationError):
        await identity(*headers)


def test_a_key_may_have_a_priority_that_counts_beside_others() -> None:
    begin_record().caller = Identity("ann", "ann", KeyRules(priority=-5))
    ranks = [current_caller(priority).shared_priority for priority in (-9, -3, 4)]
    begin_record().caller = Identity("bob", "bob")
    assert ranks == [-5, -3, 4]
    assert [current_caller(priority).shared_priority for priority in (-9, 4)] == [0, 4]


async def test_an_address_is_nobodys_name() -> None:
    assert not (await identified((), peer="ipv4:127.0.0.1:5000")).name
