"""DESIGN's import rule: what each package may know of the others, and of the world."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import ovchat_server

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(ovchat_server.__file__).parent
OURS = "ovchat_server"

# Package or top-level module: which of ours it may import, besides itself.
ALLOWED: dict[str, set[str]] = {
    "api": set(),
    "chat": {"api"},
    "engine": {"api"},
    "serving": {"api", "chat", "engine"},
    "rpc": {"api", "serving", "telemetry"},
    "rest": {"api", "serving", "telemetry"},
    "telemetry": {"api"},
    "launch": {"processors", "settings"},
    "processors": set(),
    "settings": {"api"},
    "config_file": {"api", "settings"},
    "options": {"config_file", "settings"},
    "__init__": set(),
    "__main__": {"cli"},
}
SEE_ALL = {"app", "cli"}


def modules() -> list[str]:
    return sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


def part(module: str) -> str:
    """The package that a module belongs to; of one at the top its own name."""
    return module.partition("/")[0].removesuffix(".py")


@cache
def imported(module: str) -> frozenset[str]:
    """The dotted names that a module imports anywhere, for types only or not."""
    path = PACKAGE / module
    here = [OURS, *Path(module).parent.parts]
    return frozenset(_imported(ast.parse(path.read_text()), here))


def _imported(tree: ast.AST, here: list[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else []
            source = ".".join([*base, *filter(None, [node.module])])
            # `from package import module` names the module, too.
            yield from (f"{source}.{alias.name}" for alias in node.names)


def inside(name: str, library: str) -> bool:
    return name == library or name.startswith(library + ".")


def test_the_walk_finds_the_package() -> None:
    assert {"app.py", "api/chat.py", "engine/pipeline.py"} <= set(modules())
    assert any(inside(name, OURS + ".rpc") for name in imported("app.py"))


@pytest.mark.parametrize("module", [name for name in modules() if part(name) not in SEE_ALL])
def test_imports_of_ours_go_one_way(module: str) -> None:
    known = ALLOWED[part(module)] | {part(module)}
    seen = {name.split(".")[1] for name in imported(module) if name.startswith(OURS + ".")}
    assert seen <= known


@pytest.mark.parametrize("module", [name for name in modules() if part(name) == "api"])
@pytest.mark.parametrize(
    "library", ["grpc", "google", "ovchat", "json", "msgspec", "openvino", "openvino_genai"]
)
def test_the_domain_knows_no_wire_and_no_engine(module: str, library: str) -> None:
    assert not [name for name in imported(module) if inside(name, library)]


@pytest.mark.parametrize("module", modules())
def test_only_the_pipelines_and_their_parts_import_the_engine_library(module: str) -> None:
    found = {
        name
        for name in imported(module)
        if inside(name, "openvino") or inside(name, "openvino_genai")
    }
    assert bool(found) == (
        module
        in {
            "engine/pipeline.py",
            "engine/scratch.py",
            "engine/graph_parts.py",
            "engine/logits_tap.py",
        }
    )


@pytest.mark.parametrize("module", [name for name in modules() if part(name) in {"chat", "engine"}])
def test_text_and_tokens_know_no_wire(module: str) -> None:
    assert not [name for name in imported(module) if inside(name, "grpc") or inside(name, "google")]


@pytest.mark.parametrize("module", ["ovchat_server.cli", "ovchat_server.app"])
def test_starting_does_not_load_the_engine_library(module: str) -> None:
    program = (
        f"import sys, {module}\n"
        "print([name for name in sys.modules if name.split('.')[0].startswith('openvino')])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout.strip() == "[]"
