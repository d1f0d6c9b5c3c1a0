"""Write the paths and services of the contract into envoy.yaml: they stand in protos/ alone.

A path of the contract is an RPC's google.api.http; Envoy's transcoder knows them by itself, but
its routes, by which a wrong method or a wrong content-type is refused, have to name them.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from google.api import annotations_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorSet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).resolve().parent.parent
CONFIG = ROOT / "envoy/envoy.yaml"
DESCRIPTOR = ROOT / "gen/ovchat.binpb"
METHODS = ("get", "post", "delete")
# A prefix is the name of a provider (provider_settings.py). Versions are none.
PREFIX = "([a-uw-z0-9][a-z0-9_-]*|v([0-9]*[a-z_-][a-z0-9_-]*)?)"
# What is posted there was meant for another path: the route `get-only` in envoy.yaml has them.
GET_ONLY = ("/", "/v2/models/")
# The names of the expressions in envoy.yaml, by the methods of their paths.
EXPRESSIONS = {
    ("post",): "post_paths",
    ("get",): "get_paths",
    ("get", "delete"): "get_delete_paths",
}


def bindings(contract: FileDescriptorSet) -> Iterator[tuple[str, str, str]]:
    """Yield the service, the method and the path of every binding."""
    for file in contract.file:
        for service in file.service:
            for rpc in service.method:
                rule = rpc.options.Extensions[annotations_pb2.http]
                for bound in (rule, *rule.additional_bindings):
                    method = bound.WhichOneof("pattern")
                    if method in METHODS:
                        yield f"{file.package}.{service.name}", method, getattr(bound, method)


def paths_by_methods(contract: FileDescriptorSet) -> Mapping[tuple[str, ...], list[str]]:
    """Return the paths, as regular expressions, by all methods that they have."""
    methods: defaultdict[str, set[str]] = defaultdict(set)
    for _, method, path in bindings(contract):
        if path != GET_ONLY[0] and not path.startswith(GET_ONLY[1:]):
            methods[_expression(path)].add(method)
    found: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for path in sorted(methods):
        found[tuple(name for name in METHODS if name in methods[path])].append(path)
    return found


def written(config: str, contract: FileDescriptorSet) -> str:
    """Return envoy.yaml with the services and paths of a contract."""
    services = sorted({service for service, _, _ in bindings(contract)})
    config = re.sub(r"(?<= services: )\[.*\]", f"[{', '.join(services)}]", config)
    for methods, paths in paths_by_methods(contract).items():
        # A slash at the end of a path changes nothing.
        expression = f"({'|'.join(paths)})/?"
        config, places = re.subn(
            rf'(?<=&{EXPRESSIONS[methods]} {{ regex: ")[^"]*', expression, config
        )
        if places != 1:
            sys.exit(f"{CONFIG} has {places} expressions {EXPRESSIONS[methods]}")
    return config


def _expression(path: str) -> str:
    path = path.replace("{prefix}", PREFIX)
    return re.sub(r"\{\w+(=\*\*)?\}", lambda found: ".+" if found[1] else "[^/]+", path)


def main() -> None:
    """Write them."""
    contract = FileDescriptorSet.FromString(DESCRIPTOR.read_bytes())
    CONFIG.write_text(written(CONFIG.read_text(), contract))


if __name__ == "__main__":
    main()
