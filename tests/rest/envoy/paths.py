"""The paths of the service."""

from __future__ import annotations

CHAT = "/v3/chat/completions"
# Of the scripted server, OpenAI's and the typed ones; in this order, tests take some of them.
DOORS = [CHAT, "/v1/chat/completions", "/ovchat/v1/chat:create", "/ovchat/v1/chat:stream"]
POST_PATHS = [
    *DOORS,
    "/v3/completions",
    "/v1/completions",
    "/ovchat/v1/completion:create",
    "/ovchat/v1/completion:stream",
    *(f"{prefix}/{verb}" for prefix in ("/v3", "/v1", "") for verb in ("tokenize", "detokenize")),
    "/ovchat/v1/tokenizer:tokenize",
    "/ovchat/v1/tokenizer:detokenize",
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
GET_PATHS = [
    *SCRIPTED_GET_PATHS,
    "/version",
    "/ovchat/v1/version",
    *(f"{prefix}/tokenizer_info" for prefix in ("/v3", "/v1", "")),
    "/v2",
    "/v1/config",
]
