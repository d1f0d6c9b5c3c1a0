"""What Envoy's configuration has where there are providers, and who is told of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from ovchat_server.launch import egress as module
from ovchat_server.launch.egress import add_egress
from ovchat_server.launch.envoy_config import EnvoyFiles, Socket
from ovchat_server.launch.errors import LaunchError
from ovchat_server.launch.plan import LaunchPlan
from ovchat_server.provider_settings import ProviderSettings
from tests.conftest import settings_of
from tests.ports import unused_port

if TYPE_CHECKING:
    from pathlib import Path

    from ovchat_server.settings import ModelSettings


def configured(**settings: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The route to a provider, and its cluster."""
    config: dict[str, Any] = {"static_resources": {"listeners": [], "clusters": []}}
    provider = ProviderSettings(name="one", **settings)
    add_egress(config, EnvoyFiles.locate().egress, Socket("@x"), [provider])
    [listener] = config["static_resources"]["listeners"]
    [cluster] = config["static_resources"]["clusters"]
    manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
    [host] = manager["route_config"]["virtual_hosts"]
    return host["routes"][0]["route"], cluster


@pytest.mark.parametrize(
    ("url", "address", "port", "host", "prefix"),
    [
        ("https://api.example", "api.example", 443, "api.example", "/"),
        ("https://api.example:443/v1/", "api.example", 443, "api.example", "/v1/"),
        ("http://api.example:443/v1", "api.example", 443, "api.example:443", "/v1/"),
        ("http://192.0.2.1:80/a/b", "192.0.2.1", 80, "192.0.2.1", "/a/b/"),
        ("http://[::1]:8000/v1", "::1", 8000, "[::1]:8000", "/v1/"),
    ],
)
def test_a_base_url_says_where_a_provider_is(
    url: str, address: str, port: int, host: str, prefix: str
) -> None:
    route, cluster = configured(base_url=url)
    endpoint = cluster["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]
    assert endpoint["address"]["socket_address"] == {"address": address, "port_value": port}
    assert (route["host_rewrite_literal"], route["prefix_rewrite"]) == (host, prefix)
    assert ("transport_socket" in cluster) == url.startswith("https")


@pytest.mark.parametrize("url", ["http://a.example:9000", "https://a.example"])
def test_another_ovchat_is_reached_by_http_2(url: str) -> None:
    route, cluster = configured(base_url=url, kind="ovchat")
    [protocol] = cluster["typed_extension_protocol_options"].values()
    assert "http2_protocol_options" in protocol["explicit_http_config"]
    # The paths are those of gRPC's methods.
    assert route["prefix_rewrite"] == "/"


def trusted(**settings: Any) -> str:
    _, cluster = configured(base_url="https://api.example", **settings)
    tls = cluster["transport_socket"]["typed_config"]["common_tls_context"]
    found: str = tls["validation_context"]["trusted_ca"]["filename"]
    return found


def test_the_authorities_are_those_of_the_file_or_else_of_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, systems = tmp_path / "ours.pem", tmp_path / "systems.pem"
    systems.touch()
    monkeypatch.setenv("SSL_CERT_FILE", str(systems))
    assert trusted() == str(systems)
    assert trusted(ca_file=ours) == str(ours)
    # OpenSSL's own default is not there on every system.
    systems.unlink()
    monkeypatch.setattr(module, "_ROOTS", (tmp_path / "none.pem",))
    with pytest.raises(LaunchError, match="'one': this system has no certificates"):
        trusted()


def ways_out(plan: LaunchPlan) -> list[dict[str, Any]]:
    """The addresses of egress listeners."""
    listeners = json.loads(plan.envoy.text)["static_resources"]["listeners"]
    return [item["address"] for item in listeners if item["name"] == "egress"]


@pytest.mark.parametrize("replicas", [1, 2])
def test_every_server_is_told_the_way_out(
    demo: ModelSettings, replicas: int, tmp_path: Path
) -> None:
    ports = {"grpc_port": unused_port(), "replicas": replicas}
    provider = ProviderSettings(name="one", base_url="http://192.0.2.1")
    plan = LaunchPlan.make(settings_of(demo, providers=(provider,), **ports), tmp_path)
    [address] = ways_out(plan)
    assert len(plan.replicas) == replicas
    for replica in plan.replicas:
        assert replica.arguments[-1] == f"--egress={address['pipe']['path']}"

    plan = LaunchPlan.make(settings_of(demo, **ports), tmp_path)
    assert not ways_out(plan)
    assert not any("--egress" in item for server in plan.replicas for item in server.arguments)
