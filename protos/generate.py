"""Generate gen/ from protos/: messages, typed stubs and the descriptor set for Envoy.

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
import tempfile
from pathlib import Path

from grpc_tools import protoc

PROTOS = Path(__file__).resolve().parent
GEN = PROTOS.parent / "gen"
SCRIPTS = Path(sysconfig.get_path("scripts"))
# google/api and google/rpc come with googleapis-common-protos, google/protobuf with grpc_tools.
INCLUDES = [PROTOS, Path(sysconfig.get_path("purelib")), Path(protoc.__file__).parent / "_proto"]


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
    run_protoc(f"--descriptor_set_out={target / 'ovchat.binpb'}", "--include_imports", files=files)
    (target / "ovchat" / "py.typed").touch()


def lint() -> int:
    """Run buf's lint over the contract; its exit code."""
    # buf would resolve google/api from its own registry; a descriptor set needs no network.
    with tempfile.TemporaryDirectory() as directory:
        image = Path(directory) / "image.binpb"
        run_protoc(
            f"--descriptor_set_out={image}",
            "--include_imports",
            "--include_source_info",
            files=sorted(PROTOS.rglob("*.proto")),
        )
        return subprocess.call(
            [SCRIPTS / "buf", "lint", image, "--config", PROTOS.parent / "buf.yaml"]
        )


def main() -> int:
    """Generate, or lint, as asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=GEN, help="where to write (default: gen/)")
    parser.add_argument("--lint", action="store_true", help="lint the contract, write nothing")
    arguments = parser.parse_args()
    if arguments.lint:
        return lint()
    generate(arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
