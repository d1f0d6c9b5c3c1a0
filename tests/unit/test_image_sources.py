"""Where images come from: what is read, and what is refused, in words for the caller."""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver

from ovchat_server.domain.content import Image
from ovchat_server.domain.errors import InvalidRequestError
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.images.addresses import is_public
from ovchat_server.images.downloads import MAX_REDIRECTS, Network
from ovchat_server.images.sources import ImageSources

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from aiohttp.abc import ResolveResult

FIELD = FieldPath.of("messages", 0, "content", 1, "image_url")
FILE = bytes(range(256)) * 3
BASE64 = base64.b64encode(FILE).decode()
MAX_BYTES = 1000
# No test waits so long.
NEVER = 3600.0


async def read(sources: ImageSources, url: str) -> bytes:
    return await sources.read(Image(url, field=FIELD))


async def refusal(sources: ImageSources, url: str) -> tuple[str, str]:
    """The code of the error, and its sentence without the field."""
    with pytest.raises(InvalidRequestError) as caught:
        await read(sources, url)
    assert caught.value.param == str(FIELD)
    return caught.value.code, caught.value.message.removeprefix(f"{FIELD} ")


# In the request itself.


async def test_bytes_are_the_file() -> None:
    assert await ImageSources().read(Image(data=FILE)) == FILE


@pytest.mark.parametrize(
    "url",
    [
        f"data:image/png;base64,{BASE64}",
        f"data:;base64,{BASE64}",
        f"data:base64,{BASE64}",
        f"DATA:IMAGE/PNG; name=a.png ;BASE64,{BASE64}",
        f"data:application/octet-stream;base64,{BASE64}",
        f" data:image/png;base64,{BASE64}\n",
        f"data:image/png;base64,{BASE64.rstrip('=')}",
        f"data:image/png;base64,{base64.encodebytes(FILE).decode()}",
        "data:image/png;base64," + BASE64.replace("+", "%2B").replace("/", "%2f") + "%3D%0A",
        "data:image/png," + "".join(f"%{byte:02x}" for byte in FILE),
    ],
)
async def test_a_data_url_holds_the_file(url: str) -> None:
    assert await read(ImageSources(), url) == FILE


@pytest.mark.parametrize(
    ("url", "code", "words"),
    [
        ("data:image/png;base64", "invalid_image_url", "without a comma"),
        ("data:application/pdf;base64,AA", "unsupported_image_media_type", "'application/pdf'"),
        ("data:text/html,x", "unsupported_image_media_type", "'text/html'"),
        ("data:image/png;base64,AAAAA", "invalid_base64_image", "base64 is wrong"),
        ("data:image/png;base64,A-_A", "invalid_base64_image", "base64 is wrong"),
        ("data:image/png;base64,AA=A", "invalid_base64_image", "base64 is wrong"),
        ("data:image/png;base64,\ud800AAA", "invalid_base64_image", "base64 is wrong"),
        ("", "invalid_image_url", "not ''"),
        ("iVBORw0KGgo", "invalid_image_url", "must be a data: URL"),
        ("ftp://a.example/a.png", "invalid_image_url", "not 'ftp://a.example/a.png'"),
        ("blob:https://a.example/1", "invalid_image_url", "must be a data: URL"),
        ("file://b.example/a.png", "invalid_image_url", "must be a data: URL"),
        ("https://a.example/a.png", "invalid_image_url", "(--allowed-media-domains)"),
        ("/a.png", "invalid_image_url", "(--allowed-local-media-path)"),
    ],
)
async def test_what_is_no_file_is_refused(url: str, code: str, words: str) -> None:
    found, message = await refusal(ImageSources(), url)
    assert found == code
    assert words in message


# On other hosts.


class Names(AbstractResolver):
    """Knows two hosts, of which one is on a network of its own."""

    async def resolve(self, host: str, port: int = 0, family: Any = 0) -> list[ResolveResult]:
        address = {"images.test": "127.0.0.1", "inside.test": "127.0.0.2"}.get(host)
        if address is None:
            raise OSError("no such host; asked 10.0.0.53")
        given = {"hostname": host, "host": address, "port": port, "family": family}
        return [{**given, "proto": 0, "flags": 0}]  # type: ignore[typeddict-item]

    async def close(self) -> None:
        pass


def tls(purpose: int) -> ssl.SSLContext:
    """TLS without certificates: who is who the resolver decides."""
    context = ssl.SSLContext(purpose)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_ciphers("AECDH:@SECLEVEL=0")
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


def network(timeout: float = NEVER, *, trusted: bool = True) -> Network:
    trust = tls(ssl.PROTOCOL_TLS_CLIENT) if trusted else True
    return Network(lambda address: address == "127.0.0.1", Names, trust, timeout)


# What hosts say that they send, and do not.
LENGTHS = {"vanish": 100, "large": MAX_BYTES + 1}


class Host:
    """A host of images, on loopback."""

    def __init__(self) -> None:
        self.port = 0
        self.left = asyncio.Event()
        self.asked = asyncio.Event()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        if name == "redirect":
            headers = {"Location": to} if (to := request.query.get("to")) else {}
            return web.Response(status=302, headers=headers)
        if name == "a.png":
            assert request.headers["Accept-Encoding"] == "identity"
            return web.Response(body=FILE)
        response = web.StreamResponse()
        if name == "zip":
            response.headers["Content-Encoding"] = "gzip"
        if name in LENGTHS:
            response.content_length = LENGTHS[name]
        await response.prepare(request)
        await response.write(FILE[:50])
        if name == "vanish" and request.transport:
            request.transport.abort()
        if name in ("stall", "large"):
            self.asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.left.set()
        while name == "endless":
            await response.write(FILE)
        while name == "drip":
            await response.write(b"x")
            await asyncio.sleep(0.01)
        return response

    def url(self, path: str, host: str = "images.test") -> str:
        return f"https://{host}:{self.port}/{path}"

    def sources(self, **changes: Any) -> ImageSources:
        hosts = ("Images.test", "inside.test", "unknown.test", "127.0.0.2", "127.0.0.1")
        domains = [f"{host}:{self.port}" for host in hosts]
        return ImageSources(domains, **{"max_bytes": MAX_BYTES, "network": network(), **changes})


@asynccontextmanager
async def serving() -> AsyncIterator[Host]:
    host = Host()
    app = web.Application()
    app.router.add_get("/{name}", host.answer)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls(ssl.PROTOCOL_TLS_SERVER))
    await site.start()
    host.port = runner.addresses[0][1]
    try:
        yield host
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    "path", ["a.png", "redirect?to=/a.png", "redirect?to=/redirect?to=https://127.0.0.1:PORT/a.png"]
)
async def test_a_file_is_fetched_where_allowed_redirects_lead(path: str) -> None:
    async with serving() as host:
        url = host.url(path.replace("PORT", str(host.port)))
        assert await read(host.sources(), url) == FILE


@pytest.mark.parametrize(
    ("path", "code", "words"),
    [
        ("no/such", "failed_to_download_image", "its host answered 404."),
        ("large", "image_file_too_large", "larger than 1000 bytes"),
        ("endless", "image_file_too_large", "larger than 1000 bytes"),
        ("vanish", "failed_to_download_image", "did not answer as it should."),
        ("redirect", "failed_to_download_image", "its host answered 302."),
        ("redirect?to=https://b.example/", "invalid_image_url", "redirects to 'b.example', which"),
        (
            "redirect?to=http://images.test/",
            "invalid_image_url",
            "redirects to a host without https",
        ),
        ("redirect?to=https://127.0.0.2:PORT/", "invalid_image_url", "without a public address"),
        ("redirect?to=https://inside.test:PORT/", "invalid_image_url", "without a public address"),
        ("redirect?to=https://a:b/", "invalid_image_url", "redirects to no host"),
    ],
)
async def test_what_a_host_answers_otherwise_is_refused(path: str, code: str, words: str) -> None:
    async with serving() as host:
        url = host.url(path.replace("PORT", str(host.port)))
        found, message = await refusal(host.sources(), url)
        assert found == code
        assert words in message


@pytest.mark.parametrize(
    ("url", "code", "words"),
    [
        ("https://images.test/a.png", "invalid_image_url", "is on 'images.test', which is not"),
        ("https://a.images.test:PORT/a.png", "invalid_image_url", "is on 'a.images.test:"),
        ("http://images.test:PORT/a.png", "invalid_image_url", "is on a host without https"),
        ("https://images.test:PORT@b.example/", "invalid_image_url", "is on 'b.example', which"),
        ("https://b.example\\@images.test:PORT/", "invalid_image_url", "is on no host"),
        ("https://inside.test:PORT/a.png", "invalid_image_url", "without a public address"),
        ("https://127.0.0.2:PORT/a.png", "invalid_image_url", "without a public address"),
        ("https://unknown.test:PORT/", "failed_to_download_image", "did not answer as it should."),
        ("https://images.test:PORT/" + "a" * 9000, "invalid_image_url", "more than 8192 char"),
    ],
)
async def test_a_host_is_checked_before_it_is_asked(url: str, code: str, words: str) -> None:
    async with serving() as host:
        found, message = await refusal(host.sources(), url.replace("PORT", str(host.port)))
        assert found == code
        assert words in message


async def test_redirects_end() -> None:
    async with serving() as host:
        url = host.url("redirect?to=" * (MAX_REDIRECTS + 1) + "a.png")
        code, message = await refusal(host.sources(), url)
        assert (code, message) == ("failed_to_download_image", "redirects more than 3 times.")


async def test_a_compressed_file_stays_as_it_is() -> None:
    async with serving() as host:
        assert await read(host.sources(), host.url("zip")) == FILE[:50]


async def test_a_host_that_nobody_vouches_for_is_not_asked() -> None:
    async with serving() as host:
        sources = host.sources(network=network(trusted=False))
        code, _ = await refusal(sources, host.url("a.png"))
        assert code == "failed_to_download_image"


@pytest.mark.parametrize("path", ["stall", "drip"])
async def test_a_host_that_does_not_end_is_left(path: str) -> None:
    async with serving() as host:
        sources = host.sources(network=network(timeout=0.2))
        code, message = await refusal(sources, host.url(path))
        assert (code, message) == (
            "failed_to_download_image",
            "took longer than 0.2 s to download.",
        )


async def test_cancelling_leaves_the_host() -> None:
    async with serving() as host:
        reading = asyncio.create_task(read(host.sources(), host.url("stall")))
        await host.asked.wait()
        reading.cancel()
        await host.left.wait()


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:4700::1111", True),
        ("64:ff9b::5db8:d822", True),
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("::1", False),
        ("::", False),
        ("::127.0.0.1", False),
        ("::ffff:127.0.0.1", False),
        ("64:ff9b::7f00:1", False),
        ("2002:7f00:1::", False),
        ("fe80::1%eth0", False),
        ("fd00::1", False),
        ("fec0::1", False),
        ("ff02::1", False),
    ],
)
def test_only_hosts_on_the_internet_are_public(address: str, *, public: bool) -> None:
    assert is_public(address) is public


# In files.


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with an image, and things that are none; another image is beside it."""
    folder = tmp_path / "images"
    (folder / "sub").mkdir(parents=True)
    for path in (folder / "a b.png", tmp_path / "secret.png"):
        path.write_bytes(FILE)
    (folder / "large").write_bytes(bytes(MAX_BYTES + 1))
    (folder / "in").symlink_to("a b.png")
    (folder / "out").symlink_to(tmp_path / "secret.png")
    (folder / "loop").symlink_to("loop")
    os.mkfifo(folder / "fifo")
    return folder


@pytest.mark.parametrize(
    "url",
    [
        "file://FOLDER/a%20b.png",
        "FILE://localhostFOLDER/a b.png",
        "file:FOLDER/a b.png",
        "FOLDER/a b.png",
        "FOLDER/in",
        "FOLDER/sub/../a b.png",
    ],
)
async def test_a_file_in_the_folder_is_read(files: Path, url: str) -> None:
    for folder in (files, files / "sub" / ".."):
        sources = ImageSources(local_path=folder)
        assert await read(sources, url.replace("FOLDER", str(files))) == FILE


OUTSIDE = ("invalid_image_url", "is a file outside of the folder")
UNREADABLE = ("image_file_not_found", "is not a file that can be read.")


@pytest.mark.parametrize(
    ("path", "verdict"),
    [
        ("out", OUTSIDE),
        ("../secret.png", OUTSIDE),
        ("../no-such", OUTSIDE),
        ("%2e%2e/secret.png", OUTSIDE),
        ("sub/../../images2/a.png", OUTSIDE),
        ("no-such", UNREADABLE),
        ("a b.png/x", UNREADABLE),
        ("sub", UNREADABLE),
        ("fifo", UNREADABLE),
        ("loop", UNREADABLE),
        ("%00", UNREADABLE),
        ("x" * 300, UNREADABLE),
        ("large", ("image_file_too_large", "is larger than 1000 bytes")),
    ],
)
async def test_other_files_are_refused(files: Path, path: str, verdict: tuple[str, str]) -> None:
    sources = ImageSources(local_path=files, max_bytes=MAX_BYTES)
    code, message = await refusal(sources, f"file://{files}/{path}")
    assert code == verdict[0]
    assert message.startswith(verdict[1])
    assert "secret" not in message
