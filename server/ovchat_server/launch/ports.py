"""Addresses and ports to listen on, checked before anything is started."""

from __future__ import annotations

import errno
import logging
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from ovchat_server.launch.errors import LaunchError

if TYPE_CHECKING:
    from ovchat_server.settings import Settings

logger = logging.getLogger(__name__)


def numeric_host(host: str, option: str = "--host") -> str:
    """Resolve a host name to a numeric address: Envoy takes no names.

    Args:
        host: The name or address.
        option: The flag that it is from, for the message.

    Raises:
        LaunchError: The name cannot be resolved.
    """
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        msg = f"{option}: cannot resolve host {host!r}: {error.strerror}"
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


def listen(host: str, port: int, option: str) -> socket.socket:
    """Listen on a port.

    Args:
        host: The numeric address.
        port: The port; 0 picks a free one.
        option: The flag that sets another port, for the message.

    Raises:
        LaunchError: The port is in use, or not for this user or machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise LaunchError(_reason(error, host, port, option)) from error


def check_socket(name: str) -> None:
    """Check that a server can listen on a Unix socket, as `--grpc-socket` names it.

    gRPC takes over the file of a socket, whether somebody listens on it or has left it behind.

    Args:
        name: Its path, or "@" and an abstract name.

    Raises:
        LaunchError: Somebody listens on it, or it cannot be.
    """
    path = Path(name)
    if not name.startswith("@"):
        if not path.parent.is_dir():
            raise LaunchError(f"--grpc-socket: there is no folder {path.parent}")
        if path.exists() and not path.is_socket():
            what = "a folder" if path.is_dir() else "a file"
            raise LaunchError(f"--grpc-socket: {path} is {what}, not a socket")
        if not os.access(path.parent, os.W_OK):
            raise LaunchError(f"--grpc-socket: the folder {path.parent} cannot be written to")
    if _accepts("\0" + name[1:] if name.startswith("@") else name):
        raise LaunchError(f"socket {name} is in use: choose another with --grpc-socket")


def _accepts(address: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        # Not to wait for one that has many connections waiting.
        probe.settimeout(0)
        try:
            probe.connect(address)
        except BlockingIOError:
            return True
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        except OSError as error:
            shown = address.replace("\0", "@")
            raise LaunchError(f"--grpc-socket: {shown}: {error.strerror or error}") from error
        return True


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
        flag = "--metrics-host" if option == "--metrics-port" else "--host"
        return f"{host} is not an address of this machine: choose another with {flag}"
    return f"cannot listen on {authority(host, port)}: {os.strerror(error.errno or 0)}"


def log_listening(settings: Settings, port: int, level: int) -> None:
    """Say where the server listens: on its Unix socket, or else on `port`."""
    name = settings.envoy_socket if settings.replicas > 1 else settings.grpc_socket
    if name is not None:
        logger.log(level, "The server listens on socket %s", name, extra={"socket": name})
        return
    address = authority(settings.host, port)
    logger.log(level, "The server listens on %s", address, extra={"address": address})
