"""The calls that ask how the server is doing, and what each of them is exempt from.

Envoy's access log leaves out the same ones (the filter of `access_log` in envoy/envoy.yaml).
"""

from __future__ import annotations

from enum import Flag, auto
from typing import Final


class Exempt(Flag):
    """What a probe is exempt from.

    Attributes:
        KEY: It needs no API key.
        LOG: It leaves no line in the log, whether all is well or nothing is ready yet.
        DRAIN: It is answered while the server drains, to the end, and nobody waits for it.
    """

    KEY = auto()
    LOG = auto()
    DRAIN = auto()


# By the beginning of the RPC's full name.
PROBES: Final = {
    "/grpc.health.v1.Health/": Exempt.KEY | Exempt.LOG | Exempt.DRAIN,
    # The contract is no secret; somebody reads it, which is worth a line.
    "/grpc.reflection.": Exempt.KEY | Exempt.DRAIN,
    "/ovchat.v1.RestService/GetLiveness": Exempt.KEY | Exempt.LOG | Exempt.DRAIN,
    # A server that drains is not ready: refused, as all calls are.
    "/ovchat.v1.RestService/GetReadiness": Exempt.KEY | Exempt.LOG,
    "/ovchat.v1.RestService/GetModelReadiness": Exempt.KEY | Exempt.LOG,
    # What balancers of load ask for at /.
    "/ovchat.v1.RestService/GetServerMetadata": Exempt.KEY | Exempt.LOG,
}


def exempt(method: str, rule: Exempt) -> bool:
    """Return whether an RPC is a probe that is exempt from `rule`."""
    return any(method.startswith(name) and rule in rules for name, rules in PROBES.items())
