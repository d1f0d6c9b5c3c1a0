"""What each package may know of the others, and of the world; and how long a file may be."""

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
    "domain": set(),
    "grammar": {"domain"},
    "tokenizer": set(),
    "chat": {"domain", "grammar", "tokenizer"},
    "engine": set(),
    "engine.contract": {"domain"},
    "engine.client": {"domain", "backoff", "engine.contract", "telemetry"},
    # What a process runs it knows by name only: the spec says which.
    "engine.process": {"engine.contract"},
    "engine.scheduling": {"domain", "engine.contract"},
    "engine.pooling": {"domain", "engine.contract", "engine.genai", "engine.process"},
    "engine.genai": {"domain", "engine.contract", "engine.process", "engine.scheduling"},
    "images": {"domain"},
    "serving": {
        "domain",
        "chat",
        "engine.contract",
        "grammar",
        "images",
        "near_names",
        "tokenizer",
    },
    "responses": {"domain"},
    "rpc": {
        "domain",
        "engine.contract",
        "header_text",
        "resources",
        "responses",
        "serving",
        "telemetry",
        "tls",
    },
    "rest": {"domain", "header_text", "responses", "serving", "telemetry"},
    "telemetry": {"domain"},
    "metrics": {"domain", "engine.contract", "serving"},
    "tracing": {"domain", "serving", "settings", "start_error"},
    "conversion": {"engine.genai"},
    "kinds": {"domain", "chat", "engine.client", "engine.contract", "serving", "settings"},
    "providers": {"backoff", "domain", "provider_settings", "serving", "settings"},
    "launch": {
        "backoff",
        "domain",
        "metrics",
        "open_files",
        "processors",
        "provider_settings",
        "resources",
        "serving",
        "settings",
        "telemetry",
        "tls",
    },
    # A client: of the server it knows the contract alone.
    "top": {"tls"},
    "endpoint": {"rest", "rpc"},
    "header_text": {"domain"},
    "backoff": set(),
    "open_files": set(),
    "processors": set(),
    "resources": set(),
    # Certificates; who serves knows it, and who calls.
    "tls": set(),
    "credential_commands": {"keys", "tls"},
    "tls_options": {"config_file", "option_types", "tls"},
    "start_error": set(),
    "provider_settings": set(),
    "settings": {"domain", "conversion", "provider_settings", "engine.contract", "tls"},
    "near_names": set(),
    "setting_values": {"near_names"},
    "gguf_models": {"conversion", "domain", "near_names", "serving", "settings"},
    "config_tables": {
        "domain",
        "chat",
        "near_names",
        "provider_settings",
        "setting_values",
        "settings",
    },
    "config_file": {
        "config_tables",
        "domain",
        "near_names",
        "provider_settings",
        "setting_values",
        "settings",
    },
    "option_types": {"config_file", "near_names", "setting_values", "settings"},
    "keys": {"config_file", "domain", "near_names", "setting_values"},
    "observability_options": {"option_types"},
    "options": {"config_file", "observability_options", "option_types", "tls_options"},
    "configuration": {
        "config_file",
        "keys",
        "options",
        "serving",
        "settings",
        "tls",
        "tls_options",
    },
    "environment": {"config_tables", "near_names", "option_types", "options"},
    "commands": {"config_file", "config_tables", "option_types", "options"},
    "__init__": set(),
    "__main__": {"cli"},
}
SEE_ALL = {"app", "cli", "endpoints", "pooling_endpoints", "served_models", "serving_parts"}
MAX_LINES = 300
# No wire, no library that holds a model.
DOMAIN_KNOWS_NOT = ("grpc", "google", "ovchat", "json", "msgspec", "openvino", "openvino_genai")


def modules() -> list[str]:
    return sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


def part_of(dotted: str) -> str:
    """The part of the rules that a dotted name inside the package belongs to."""
    names = dotted.split(".")
    deep = ".".join(names[:2])
    return deep if deep in ALLOWED else names[0]


def part(module: str) -> str:
    return part_of(module.removesuffix(".py").removesuffix("/__init__").replace("/", "."))


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


def importing(packages: set[str], libraries: tuple[str, ...]) -> dict[str, list[str]]:
    """Modules of some packages that import one of some libraries, and what they import."""
    found = {
        module: [
            name for name in imported(module) if any(inside(name, library) for library in libraries)
        ]
        for module in modules()
        if part(module).partition(".")[0] in packages
    }
    return {module: names for module, names in found.items() if names}


def test_the_walk_finds_the_package() -> None:
    assert {"app.py", "domain/chat.py", "engine/genai/pipeline.py"} <= set(modules())
    assert any(inside(name, OURS + ".rpc") for name in imported("app.py"))


def test_imports_of_ours_go_one_way() -> None:
    wrong = [
        f"{module} imports {name}"
        for module in modules()
        if part(module) not in SEE_ALL
        for name in imported(module)
        if name.startswith(OURS + ".")
        and part_of(name.removeprefix(OURS + ".")) not in ALLOWED[part(module)] | {part(module)}
    ]
    assert not wrong


def test_the_domain_knows_no_wire_and_no_engine() -> None:
    assert not importing({"domain"}, DOMAIN_KNOWS_NOT)


def test_only_these_packages_import_the_engine_library() -> None:
    found = importing(
        {part(module).partition(".")[0] for module in modules()}, ("openvino", "openvino_genai")
    )
    assert {str(Path(module).parent) for module in found} == {
        "conversion",
        "engine/genai",
        "engine/pooling",
    }


def test_files_are_small() -> None:
    lines = {module: (PACKAGE / module).read_text().count("\n") for module in modules()}

    assert {module: count for module, count in lines.items() if count > MAX_LINES} == {}


def test_text_and_tokens_know_no_wire() -> None:
    assert not importing({"chat", "engine", "grammar", "tokenizer"}, ("grpc", "google"))


@pytest.mark.parametrize("module", ["ovchat_server.cli", "ovchat_server.app"])
def test_starting_does_not_load_the_engine_library(module: str) -> None:
    program = (
        f"import sys, {module}\n"
        "print([name for name in sys.modules if name.split('.')[0].startswith('openvino')])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ended.stdout.strip() == "[]"
