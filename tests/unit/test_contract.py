"""`protos/generate.py --breaking`: which changes of the contract its callers would notice."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from google.api import annotations_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROTO = "ovchat/v1/model_service.proto"
FIELD = "  string state_reason = 6;\n"
VALUE = "  CAPABILITY_VISION = 4;\n"
RPC = "  rpc ListModels(ListModelsRequest) returns (ListModelsResponse) {\n"

HARMLESS = {
    "a new field": (FIELD, FIELD + "  string more = 99;\n"),
    "a new enum value": (VALUE, VALUE + "  CAPABILITY_MORE = 99;\n"),
    "a new message": ("message Model {", "message More {}\n\nmessage Model {"),
    "a new RPC": (RPC, "  rpc MoreModels(Model) returns (Model);\n" + RPC),
    "a comment": ("// The reason why the model is not ready, for operators.", "// Why not."),
    "a deprecation": (FIELD, FIELD.replace(";", " [deprecated = true];")),
}
BREAKING = {
    "a renamed field": (FIELD, FIELD.replace("state_reason", "reason")),
    "a renumbered field": (FIELD, FIELD.replace("6", "99")),
    "a deleted field": (FIELD, ""),
    "a deleted and reserved field": (FIELD, '  reserved 6;\n  reserved "state_reason";\n'),
    "another type": (FIELD, FIELD.replace("string", "bytes")),
    "another cardinality": (FIELD, FIELD.replace("string", "repeated string")),
    "another presence": (FIELD, FIELD.replace("string", "optional string")),
    "a renamed enum value": (VALUE, VALUE.replace("VISION", "SIGHT")),
    "a renumbered enum value": (VALUE, VALUE.replace("4", "99")),
    "a deleted enum value": (VALUE, ""),
    "a deleted and reserved enum value": (
        VALUE,
        '  reserved 4;\n  reserved "CAPABILITY_VISION";\n',
    ),
    "a renamed RPC": (RPC, RPC.replace("ListModels(", "AllModels(")),
    "a stream for one answer": (RPC, RPC.replace("returns (", "returns (stream ")),
    "a renamed service": ("service ModelService", "service TheModelService"),
    "a reservation taken back": ("  reserved 1000;\n", ""),
    "a reservation of an enum taken back": ("  reserved 2000;\n", ""),
}


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The contract of today and some reserved numbers, released."""
    copy = tmp_path_factory.mktemp("released")
    shutil.copytree(ROOT / "protos", copy / "protos")
    shutil.copytree(ROOT / "gen/include", copy / "gen/include")
    shutil.copy(ROOT / "buf.yaml", copy)
    edit(copy, FIELD, FIELD + "  reserved 1000;\n")
    edit(copy, VALUE, VALUE + "  reserved 2000;\n")
    assert generate(copy, "--release").returncode == 0
    return copy


@pytest.fixture
def contract(released: Path, tmp_path: Path) -> Path:
    return shutil.copytree(released, tmp_path / "contract")


def edit(copy: Path, old: str, new: str) -> None:
    path = copy / "protos" / PROTO
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def generate(copy: Path, task: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(copy / "protos/generate.py"), task]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("change", HARMLESS)
def test_what_callers_do_not_notice_passes(contract: Path, change: str) -> None:
    edit(contract, *HARMLESS[change])
    result = generate(contract, "--breaking")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.slow
@pytest.mark.parametrize("change", BREAKING)
def test_what_breaks_callers_is_refused(contract: Path, change: str) -> None:
    edit(contract, *BREAKING[change])
    result = generate(contract, "--breaking")
    assert result.returncode != 0
    assert result.stdout.startswith(f"protos/{PROTO}"), result.stdout + result.stderr


def test_a_release_makes_a_break_the_contract(contract: Path) -> None:
    edit(contract, *BREAKING["a renamed field"])
    assert generate(contract, "--release").returncode == 0
    assert generate(contract, "--breaking").returncode == 0


def paths(image: Path) -> Iterator[tuple[str, str, str, str]]:
    """RPC, HTTP method, path and body of all bindings."""
    for file in FileDescriptorSet.FromString(image.read_bytes()).file:
        for service in file.service:
            for method in service.method:
                rule = method.options.Extensions[annotations_pb2.http]
                for binding in (rule, *rule.additional_bindings):
                    if verb := binding.WhichOneof("pattern"):
                        path = getattr(binding, verb)
                        yield f"{service.name}.{method.name}", verb, path, binding.body


def test_no_released_path_is_gone() -> None:
    # Options of RPCs, which buf does not compare.
    before = set(paths(ROOT / "protos/released.binpb"))
    assert before
    assert before <= set(paths(ROOT / "gen/ovchat.binpb"))
