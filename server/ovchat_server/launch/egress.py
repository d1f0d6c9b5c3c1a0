"""Envoy's way out: what its configuration has besides where there are providers."""

from __future__ import annotations

import ssl
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import yaml

from ovchat_server.launch.envoy_config import HTTP_PROTOCOL
from ovchat_server.launch.errors import LaunchError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.launch.envoy_config import Config, Upstream
    from ovchat_server.provider_settings import ProviderSettings

_PORTS = {"http": 80, "https": 443}
# Where systems have the certificates of the authorities that they trust.
_ROOTS = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)


def add_egress(
    config: Config, file: Path, address: Upstream, providers: Sequence[ProviderSettings]
) -> None:
    """Add the egress listener and the providers behind it to Envoy's configuration.

    Args:
        config: The configuration.
        file: egress.yaml.
        address: Where servers reach the listener.
        providers: The providers; each is a host of its name there.

    Raises:
        LaunchError: There are no certificates to check a provider's by.
    """
    template: Config = yaml.safe_load(file.read_text(encoding="utf-8"))
    listener = {**template["listener"], "address": address.config}
    manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
    manager["route_config"]["virtual_hosts"] = [
        _virtual_host(template, provider) for provider in providers
    ]
    resources = config["static_resources"]
    resources["listeners"].append(listener)
    resources["clusters"] += [_cluster(template, provider) for provider in providers]


def _virtual_host(template: Config, provider: ProviderSettings) -> Config:
    url = urlsplit(provider.base_url)
    host = deepcopy(template["virtual_host"])
    [route] = host["routes"]
    route["route"] |= {
        "cluster": _cluster_name(provider),
        "prefix_rewrite": f"{url.path.rstrip('/')}/",
        "host_rewrite_literal": url.netloc.removesuffix(f":{_PORTS[url.scheme]}"),
        "idle_timeout": _seconds(provider.timeout),
    }
    return {**host, "name": provider.name, "domains": [provider.name]}


def _cluster(template: Config, provider: ProviderSettings) -> Config:
    url = urlsplit(provider.base_url)
    name = _cluster_name(provider)
    address = {"address": url.hostname, "port_value": url.port or _PORTS[url.scheme]}
    endpoint = {"endpoint": {"address": {"socket_address": address}}}
    protocol = "grpc" if provider.kind == "ovchat" else url.scheme
    most = provider.max_requests
    thresholds = dict.fromkeys(("max_requests", "max_pending_requests", "max_retries"), most)
    # With fewer than that a request would wait for a connection instead of being refused.
    thresholds["max_connections"] = 2 * most
    cluster = {
        **deepcopy(template["cluster"]),
        "name": name,
        "connect_timeout": _seconds(provider.connect_timeout),
        "circuit_breakers": {"thresholds": [thresholds]},
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": [endpoint]}]},
        "typed_extension_protocol_options": {HTTP_PROTOCOL: template[protocol]},
    }
    if url.scheme == "https":
        cluster["transport_socket"] = tls = deepcopy(template["transport_socket"])
        roots = str(provider.ca_file or _system_roots(provider))
        context = tls["typed_config"]["common_tls_context"]["validation_context"]
        context["trusted_ca"] = {"filename": roots}
    return cluster


def _cluster_name(provider: ProviderSettings) -> str:
    return f"provider_{provider.name}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.9f}s"


def _system_roots(provider: ProviderSettings) -> Path:
    # OpenSSL's own comes first: the environment's SSL_CERT_FILE is in it.
    for path in filter(None, (ssl.get_default_verify_paths().cafile, *_ROOTS)):
        if (found := Path(path)).is_file():
            return found
    raise LaunchError(
        f"the provider {provider.name!r}: this system has no certificates of authorities: "
        "set its ca_file"
    )
