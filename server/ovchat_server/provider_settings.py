"""Providers of models that run elsewhere: what the config file says of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

ProviderName = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(?!(openvino|ovchat|v[0-9]+)\Z)[a-z0-9][a-z0-9_-]{0,63}\Z",
        description="made of small letters, digits, - and _; not openvino, which this server is, "
        "nor ovchat, v1, v2 or v3",
    ),
]
BaseUrl = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^https?://[A-Za-z0-9.\[\]:_-]+(/[A-Za-z0-9._~/-]*)?\Z",
        description="a URL such as https://api.example.com/v1",
    ),
]
VariableName = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*\Z",
        description="the name of an environment variable, not a key itself",
    ),
]
Seconds = Annotated[float, msgspec.Meta(gt=0)]


class ProviderSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A provider: a [[providers]] table.

    Attributes:
        name: The name that its models' ids begin with, as in `name/model`. Required. With a
            ready-made name (`openai`, `ollama`, `lmstudio`, `huggingface`, `anthropic`) nothing
            else is.
        kind: The API that it speaks: `"openai"` for Chat Completions, as OpenAI, vLLM, Ollama,
            LM Studio, llama.cpp, OVMS and others do; `"anthropic"` for Anthropic's Messages;
            `"ovchat"` for another ovchat over gRPC.
        base_url: The URL that its paths are below, such as `https://api.example.com/v1`; of an
            ovchat that of its gRPC port, such as `http://10.0.0.1:9000`.
        api_key_env: Environment variable that holds the API key. Without it none is sent.
        models: Ids of the models to serve, or patterns such as `"gpt-*"`. By default all; those
            that it lists are listed here.
        ca_file: Certificates (PEM) of the authorities to trust; by default those of the system.
        max_tokens_field: Of the kind `"openai"`: name of the parameter that bounds an answer.
            OpenAI's newer models know only `"max_completion_tokens"`, many other servers only
            `"max_tokens"`.
        vllm_parameters: Of the kind `"openai"`: whether it knows vLLM's parameters beside
            OpenAI's, such as `top_k` and `structured_outputs`. Otherwise requests that have them
            are refused.
        default_max_tokens: Of the kind `"anthropic"`: tokens that an answer may have where the
            request does not say, because that API has to be told. Reasoning counts.
        connect_timeout: Seconds to connect, TLS included.
        timeout: Seconds without a byte of an answer after which it is given up. No less than
            `--idle-timeout`, or answers break off whose callers read slowly.
        max_requests: Requests at once, from all servers; further ones are refused.
    """

    name: ProviderName
    kind: Literal["openai", "anthropic", "ovchat"] = "openai"
    base_url: BaseUrl
    api_key_env: VariableName | None = None
    models: tuple[str, ...] | None = None
    ca_file: Path | None = None
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    vllm_parameters: bool = False
    default_max_tokens: Annotated[int, msgspec.Meta(ge=1)] = 4096
    connect_timeout: Seconds = 5
    timeout: Seconds = 600
    max_requests: Annotated[int, msgspec.Meta(ge=1)] = 128

    def __post_init__(self) -> None:
        """Check that no option is given which is for another kind.

        Raises:
            ValueError: One is, or an ovchat's URL has a path; the message names it.
        """
        for field in msgspec.structs.fields(self):
            kind = KIND_OPTIONS.get(field.name, self.kind)
            if kind != self.kind and getattr(self, field.name) != field.default:
                raise ValueError(f"{field.name} is for providers of the kind {kind!r}")
        if self.kind == "ovchat" and urlsplit(self.base_url).path.strip("/"):
            raise ValueError('base_url must have no path with kind = "ovchat": gRPC has none')


# Options that one kind has, and no other.
KIND_OPTIONS: Mapping[str, str] = {
    "max_tokens_field": "openai",
    "vllm_parameters": "openai",
    "default_max_tokens": "anthropic",
}
# What the names alone stand for.
READY_MADE: Mapping[str, Mapping[str, Any]] = {
    "openai": {
        "base_url": "https://api.openai.com/v1",
        "api_key_env": "OPENAI_API_KEY",
        "max_tokens_field": "max_completion_tokens",
    },
    "ollama": {"base_url": "http://127.0.0.1:11434/v1"},
    "lmstudio": {"base_url": "http://127.0.0.1:1234/v1"},
    "huggingface": {"base_url": "https://router.huggingface.co/v1", "api_key_env": "HF_TOKEN"},
    "anthropic": {
        "kind": "anthropic",
        "base_url": "https://api.anthropic.com/v1",
        "api_key_env": "ANTHROPIC_API_KEY",
    },
}
