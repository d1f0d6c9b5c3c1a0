"""A minimal HTTP client for Envoy: no dependency, no thread."""

from __future__ import annotations

import asyncio

from ovchat_server.launch.ports import authority

# Seconds for an answer. Envoy's own take milliseconds; one that hangs must not hold us up.
_TIMEOUT = 2.0


async def request(method: str, host: str, port: int, path: str) -> tuple[int, bytes]:
    """Send a request without a body and return the status and body of the answer.

    Raises:
        OSError: There is no complete answer within two seconds.
    """
    async with asyncio.timeout(_TIMEOUT):
        connection = await asyncio.open_connection(host, port)
        return await _request(connection, f"{method} {path}", authority(host, port))


async def request_on_socket(method: str, name: str, path: str) -> tuple[int, bytes]:
    """Send a request to a Unix socket, as `request` does to a port."""
    async with asyncio.timeout(_TIMEOUT):
        connection = await asyncio.open_unix_connection(name)
        return await _request(connection, f"{method} {path}", "localhost")


async def _request(
    connection: tuple[asyncio.StreamReader, asyncio.StreamWriter], what: str, host: str
) -> tuple[int, bytes]:
    reader, writer = connection
    try:
        head = f"{what} HTTP/1.1\r\nhost: {host}\r\n"
        writer.write(f"{head}content-length: 0\r\nconnection: close\r\n\r\n".encode("ascii"))
        await writer.drain()
        answer = await reader.read()
    finally:
        writer.close()
    status_line, _, rest = answer.partition(b"\r\n")
    try:
        status = int(status_line.split()[1])
    except (IndexError, ValueError):
        msg = "the connection ended before an answer"
        raise ConnectionError(msg) from None
    return status, rest.partition(b"\r\n\r\n")[2]
