"""The paths of the service."""

from __future__ import annotations

import re

from google.protobuf.descriptor_pb2 import FileDescriptorSet

from ovchat_server.launch.envoy_config import EnvoyFiles
from protos.routes import bindings

CHAT = "/v3/chat/completions"
# Of the scripted server, OpenAI's and the typed ones; in this order, tests take some of them.
PROVIDER_CHAT = "/a-provider/v1/chat/completions"
DOORS = [
    CHAT,
    PROVIDER_CHAT,
    "/ovchat/v1/chat:create",
    "/ovchat/v1/chat:stream",
    "/v1/chat/completions",
]
# Other methods on these are unknown paths.
GET_ONLY_PATHS = ["/", "/v2/models/demo", "/v2/models/demo/ready"]
SCRIPTED_GET_PATHS = [
    "/v3/models",
    "/v1/models",
    "/ovchat/v1/models",
    "/v3/models/demo",
    "/v1/models/demo",
    "/ovchat/v1/models/demo",
    "/health",
    "/v2/health/live",
    "/v2/health/ready",
]
CONTRACT = FileDescriptorSet.FromString(EnvoyFiles.locate().descriptor.read_bytes())


def of_contract(method: str) -> list[str]:
    bound = [path for _, name, path in bindings(CONTRACT) if name == method]
    return [re.sub(r"\{.*?\}", "demo", path) for path in bound]


# Errors of Anthropic's API have its own shape: test_error_formats.
MESSAGES_PATHS = [path for path in of_contract("post") if "/messages" in path]
POST_PATHS = [path for path in of_contract("post") if path not in MESSAGES_PATHS]
GET_DELETE_PATHS = of_contract("delete")
GET_PATHS = [
    path for path in of_contract("get") if path not in (*GET_ONLY_PATHS, *GET_DELETE_PATHS)
]
