"""Calls that watch the server's health, and what each of them is exempt from.

Envoy's access log leaves out the same ones (the filter of `access_log` in envoy/envoy.yaml).
"""

from __future__ import annotations

from enum import Flag, auto
from typing import Final


class Exempt(Flag):
    """What a probe is exempt from.

    Attributes:
        KEY: It needs no API key.
        LOG: It is not logged, whether the server is healthy or not ready yet.
        DRAIN: It is answered while the server drains, and does not delay its end.
    """

    KEY = auto()
    LOG = auto()
    DRAIN = auto()


# By prefix of the RPC's full name.
PROBES: Final = {
    "/grpc.health.v1.Health/": Exempt.KEY | Exempt.LOG | Exempt.DRAIN,
    # The contract is public; that someone reads it is worth a line in the log.
    "/grpc.reflection.": Exempt.KEY | Exempt.DRAIN,
    "/ovchat.v1.RestService/GetLiveness": Exempt.KEY | Exempt.LOG | Exempt.DRAIN,
    # A draining server is not ready, so this is refused as all other calls are.
    "/ovchat.v1.RestService/GetReadiness": Exempt.KEY | Exempt.LOG,
    "/ovchat.v1.RestService/GetModelReadiness": Exempt.KEY | Exempt.LOG,
    # Load balancers ask for it at /.
    "/ovchat.v1.RestService/GetServerMetadata": Exempt.KEY | Exempt.LOG,
    # Envoy asks whether a request has a key; logged if it has none.
    "/envoy.service.auth.v3.Authorization/Check": Exempt.KEY | Exempt.LOG,
    # `ovchat top` asks for it every other second, and shows how a server drains.
    "/ovchat.v1.ServerService/GetMetrics": Exempt.LOG | Exempt.DRAIN,
}


def exempt(method: str, rule: Exempt) -> bool:
    """Return whether an RPC is a probe that is exempt from `rule`."""
    return any(method.startswith(name) and rule in rules for name, rules in PROBES.items())
