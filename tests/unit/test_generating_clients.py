"""What clients in other languages are generated from: a checkout, or the descriptor set."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from tests.conftest import ROOT

BUF = Path(sysconfig.get_path("scripts")) / "buf"
PROTOC = [sys.executable, "-m", "grpc_tools.protoc"]
DESCRIPTORS = "gen/ovchat.binpb"
FILES = FileDescriptorSet.FromString((ROOT / DESCRIPTORS).read_bytes()).file
OURS = [file for file in FILES if file.package.startswith("ovchat")]


@pytest.mark.parametrize("given", [".", DESCRIPTORS])
def test_buf_generates_without_its_registry(given: str, tmp_path: Path) -> None:
    plugin = {"protoc_builtin": "python", "protoc_path": PROTOC, "out": str(tmp_path)}
    template = json.dumps({"version": "v2", "plugins": [plugin]})
    done = subprocess.run(
        [BUF, "generate", given, "--template", template],
        cwd=ROOT,
        # It would ask the registry through this proxy.
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "HTTPS_PROXY": "http://127.0.0.1:1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "ovchat/v1/chat_service_pb2.py").exists()
    assert (tmp_path / "google/rpc/error_details_pb2.py").exists()


def test_every_file_names_its_package_in_other_languages() -> None:
    packages = {
        (
            file.options.go_package,
            file.options.java_package,
            file.options.java_multiple_files,
            file.options.csharp_namespace,
        )
        for file in OURS
    }

    assert packages == {("ovchat/v1;ovchatv1", "dev.ovchat.v1", True, "Ovchat.V1")}


def test_the_descriptor_set_has_comments_and_all_that_it_imports() -> None:
    known: set[str] = set()
    for file in FILES:
        assert known >= set(file.dependency)
        known.add(file.name)
    # What no file imports, but errors bring.
    assert "google/rpc/error_details.proto" in known
    for file in OURS:
        assert any(location.leading_comments for location in file.source_code_info.location)
