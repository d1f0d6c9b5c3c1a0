"""Addresses and ports to listen on, checked before anything is started."""

from __future__ import annotations

import errno
import os
import socket

from ovchat_server.launch.errors import LaunchError


def numeric_host(host: str) -> str:
    """Resolve a host name to a numeric address: Envoy takes no names.

    Raises:
        LaunchError: The name cannot be resolved.
    """
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        msg = f"--host: cannot resolve host {host!r}: {error.strerror}"
        raise LaunchError(msg) from error
    # "localhost" is two addresses, and clients that know only one of them know IPv4.
    found.sort(key=lambda entry: entry[0] != socket.AF_INET)
    return str(found[0][4][0])


def check_free(host: str, port: int, option: str) -> None:
    """Check that `port` can be listened on.

    Envoy sets SO_REUSEPORT: it would join another Envoy on the same port, and each would get
    half of the connections, without a word.

    Args:
        host: The numeric address.
        port: The port.
        option: The flag that sets another port, for the message.

    Raises:
        LaunchError: The port is in use, or not for this user or machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # Connections of a server that has just ended linger on its port; they are no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise LaunchError(_reason(error, host, port, option)) from error


def free_port() -> int:
    """Return a loopback port that nobody listens on."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def authority(host: str, port: int) -> str:
    """Return host and port as in a URL."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _reason(error: OSError, host: str, port: int, option: str) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} is already in use: choose another with {option}"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"port {port} needs privileges: choose one above 1023 with {option}"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is not an address of this machine: choose another with --host"
    return f"cannot listen on {authority(host, port)}: {os.strerror(error.errno or 0)}"
