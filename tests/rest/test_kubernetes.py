"""deploy/kubernetes.yaml: valid for Kubernetes, and what of it runs without one is run."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import grpc
import httpx
import kubernetes_validate
import pytest
import yaml
from grpc_health.v1 import health_pb2, health_pb2_grpc

from ovchat_server import cli
from ovchat_server.configuration import settings_from
from ovchat_server.launch.envoy_config import locate_envoy
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from ovchat_server.settings import Settings
    from tests.rest.conftest import Stack

OBJECTS: dict[str, Any] = {
    item["kind"]: item for item in yaml.safe_load_all((ROOT / "deploy/kubernetes.yaml").read_text())
}
POD = OBJECTS["Deployment"]["spec"]["template"]["spec"]
CONTAINERS = {item["name"]: item for item in POD["containers"]}
EVERY_CONTAINER = [*POD["initContainers"], *POD["containers"]]
PROBES = [
    container[key] | {"ports": container["ports"]}
    for container in POD["containers"]
    for key in ("startupProbe", "readinessProbe", "livenessProbe")
    if key in container
]


def server_settings() -> Settings:
    _, _, *arguments = CONTAINERS["server"]["command"]
    return settings_from(cli.serve.make_context("serve", arguments).params)


# The oldest with all that it uses, and the newest that the package knows.
@pytest.mark.parametrize("version", ["1.30", kubernetes_validate.latest_version()])
@pytest.mark.parametrize("kind", OBJECTS)
def test_kubernetes_knows_every_field(kind: str, version: str) -> None:
    kubernetes_validate.validate(OBJECTS[kind], version, strict=True)


def test_the_servers_command_is_one() -> None:
    assert CONTAINERS["server"]["command"][:2] == ["ovchat", "serve"]
    settings = server_settings()
    # Where probes come from, and where Envoy and the image have it.
    assert (settings.host, settings.grpc_port) == ("0.0.0.0", 9000)
    assert settings.metrics_host == "0.0.0.0"
    (mount,) = [item for item in CONTAINERS["server"]["volumeMounts"] if item["name"] == "models"]
    assert str(settings.models[0].path).startswith(mount["mountPath"])
    (name,) = POD["initContainers"][0]["env"]
    assert name["value"] == settings.models[0].name
    ready = CONTAINERS["envoy"]["readinessProbe"]["httpGet"]["path"]
    assert ready == f"/v2/models/{name['value']}/ready"


def test_a_model_that_cannot_be_loaded_has_no_pod_restarted() -> None:
    for probe in ("startupProbe", "livenessProbe"):
        # It answers without any model.
        assert CONTAINERS["server"][probe]["grpc"]["service"] == "ovchat.v1.ModelService"


def test_answers_under_way_have_their_time() -> None:
    settings, grace = server_settings(), POD["terminationGracePeriodSeconds"]
    sleep = CONTAINERS["server"]["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert grace >= sleep + settings.drain_timeout + 15
    script = CONTAINERS["envoy"]["lifecycle"]["preStop"]["exec"]["command"][-1].split()
    assert float(script[1].strip(";")) == sleep
    assert settings.drain_timeout < float(script[-1]) < grace - sleep


@pytest.mark.parametrize("container", EVERY_CONTAINER, ids=lambda item: str(item["name"]))
def test_no_container_has_more_than_it_needs(container: dict[str, Any]) -> None:
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["limits"]["memory"]


@pytest.mark.parametrize("probe", PROBES, ids=str)
def test_probes_are_answered(probe: dict[str, Any], stack: Stack) -> None:
    ports = {"rest": stack.rest_port, "grpc": stack.grpc_port, 9000: stack.grpc_port}
    names = {item["name"] for item in probe["ports"]}
    numbers = {item["containerPort"] for item in probe["ports"]}
    if http := probe.get("httpGet"):
        assert http["port"] in names
        answer = httpx.get(f"http://127.0.0.1:{ports[http['port']]}{http['path']}", timeout=None)
        assert answer.status_code == 200
    elif asked := probe.get("grpc"):
        assert asked["port"] in numbers
        with grpc.insecure_channel(f"127.0.0.1:{ports[asked['port']]}") as channel:
            request = health_pb2.HealthCheckRequest(service=asked.get("service", ""))
            answer = health_pb2_grpc.HealthStub(channel).Check(request)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
    else:
        assert probe["tcpSocket"]["port"] in names


def test_the_service_leads_to_ports_of_the_pod() -> None:
    service, deployment = OBJECTS["Service"]["spec"], OBJECTS["Deployment"]["spec"]
    labels = deployment["template"]["metadata"]["labels"]
    assert labels == deployment["selector"]["matchLabels"] == service["selector"]
    ports = {
        port["name"]: port["containerPort"] for c in CONTAINERS.values() for port in c["ports"]
    }
    # No key is asked for there, so it is not for callers.
    assert ports.pop("metrics") == server_settings().metrics_port
    assert {port["targetPort"]: port["port"] for port in service["ports"]} == ports


def test_envoy_takes_its_files_as_they_are_mounted(tmp_path: Path) -> None:
    (volume,) = [item for item in POD["volumes"] if item["name"] == "envoy"]
    # As the README's command makes the ConfigMap: a key for each file, by its name.
    sources = {file.name: file for file in (ROOT / "envoy").iterdir()}
    sources |= {name.name: name for name in (ROOT / "gen/ovchat.binpb", ROOT / "deploy/drain.sh")}
    for item in volume["configMap"]["items"]:
        target = tmp_path / item["path"]
        target.parent.mkdir(exist_ok=True)
        shutil.copy(sources[item["key"]], target)
    envoy = CONTAINERS["envoy"]
    (mount,) = envoy["volumeMounts"]
    assert envoy["workingDir"] == mount["mountPath"]
    _, *arguments = envoy["command"]
    command = [str(locate_envoy(None)), *arguments, "--mode", "validate"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
