"""Where metrics are asked for: a port, or the socket on which `ovchat up` asks a server."""

from __future__ import annotations

import logging
import socket
from typing import TYPE_CHECKING

from ovchat_server.launch.errors import LaunchError
from ovchat_server.launch.ports import authority, listen, numeric_host

if TYPE_CHECKING:
    from ovchat_server.settings import Settings

logger = logging.getLogger(__name__)


def listen_for_metrics(settings: Settings) -> socket.socket:
    """Listen where the settings say.

    Raises:
        LaunchError: The port or the socket is in use, or the address is not this machine's.
    """
    if settings.metrics_socket is None:
        host = numeric_host(settings.metrics_host, "--metrics-host")
        return listen(host, settings.metrics_port, "--metrics-port")
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.bind(f"\0{settings.metrics_socket.removeprefix('@')}")
    except OSError as error:
        listening.close()
        raise LaunchError(f"socket {settings.metrics_socket}: {error.strerror}") from error
    return listening


def announced(listening: socket.socket) -> str | None:
    """Log the URL of the metrics and return it; None if only `ovchat up` asks for them."""
    if listening.family == socket.AF_UNIX:
        return None
    address = authority(*listening.getsockname()[:2])
    logger.info("Metrics are on http://%s/metrics", address, extra={"address": address})
    return f"http://{address}/metrics"
