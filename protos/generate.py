"""Generate gen/ from protos/: messages, typed stubs, the descriptor set, what protos import.

And guard the contract: its style, and that no caller of the released one breaks.

Everything comes from the packages of the `dev` extra, so that the result depends on their
pinned versions alone.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from grpc_tools import protoc

PROTOS = Path(__file__).resolve().parent
GEN = PROTOS.parent / "gen"
# The contract that callers were last promised, as a descriptor set.
RELEASED = PROTOS / "released.binpb"
SCRIPTS = Path(sysconfig.get_path("scripts"))
# google/api and google/rpc come with googleapis-common-protos, google/protobuf with grpc_tools.
PACKAGES = Path(sysconfig.get_path("purelib"))
INCLUDES = [PROTOS, PACKAGES, Path(protoc.__file__).parent / "_proto"]
# What the contract imports from elsewhere, and the details of its errors, which no file imports.
GOOGLE = [
    "google/api/annotations.proto",
    "google/api/http.proto",
    "google/api/httpbody.proto",
    "google/rpc/error_details.proto",
    "google/rpc/status.proto",
]


def run_protoc(*arguments: str, files: list[Path]) -> None:
    """Run protoc over `files`, or exit with its message."""
    includes = [f"-I{path}" for path in INCLUDES]
    # protoc finds its plugins on PATH, where the virtual environment need not be.
    os.environ["PATH"] = f"{SCRIPTS}{os.pathsep}{os.environ.get('PATH', '')}"
    if protoc.main(["protoc", *includes, *arguments, *map(str, files)]) != 0:
        sys.exit(1)


def generate(target: Path) -> None:
    """Write all generated files below `target`, replacing what is there."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    files = sorted(PROTOS.rglob("*.proto"))
    services = [path for path in files if path.stem.endswith("_service")]
    run_protoc(f"--python_out={target}", f"--mypy_out=quiet:{target}", files=files)
    run_protoc(f"--grpc_python_out={target}", f"--mypy_grpc_out=quiet:{target}", files=services)
    # Envoy needs no comments, but reflection and callers who have nothing else do.
    write_image(target / "ovchat.binpb", "--include_source_info", *GOOGLE)
    for name in GOOGLE:
        (target / "include" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(PACKAGES / name, target / "include" / name)
    (target / "ovchat" / "py.typed").touch()


def write_image(target: Path, *options: str) -> None:
    """Write the contract and all it imports as one descriptor set."""
    files = sorted(PROTOS.rglob("*.proto"))
    run_protoc(f"--descriptor_set_out={target}", "--include_imports", *options, files=files)


def buf(command: str, *arguments: str | Path) -> int:
    """Have buf check the contract; its exit code."""
    return subprocess.call([SCRIPTS / "buf", command, PROTOS.name, *arguments], cwd=PROTOS.parent)


def main() -> int:
    """Generate, or guard, as asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=GEN, help="where to write (default: gen/)")
    task = parser.add_mutually_exclusive_group()
    task.add_argument("--lint", action="store_true", help="lint the contract, write nothing")
    task.add_argument("--breaking", action="store_true", help="compare it with the released one")
    task.add_argument("--release", action="store_true", help="make it the released one")
    arguments = parser.parse_args()
    if arguments.lint:
        return buf("lint")
    if arguments.breaking:
        return buf("breaking", "--against", RELEASED)
    if arguments.release:
        write_image(RELEASED)
        return 0
    generate(arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
