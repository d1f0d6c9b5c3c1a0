"""How to serve: what `options` makes of flags, environment and file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path  # noqa: TC003  msgspec reads the annotation
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from ovchat_server.conversion.weight_form import WeightForm  # noqa: TC001  as above
from ovchat_server.engine.contract.generation_spec import GenerationOptions
from ovchat_server.engine.contract.pooling_messages import DEFAULT_BATCH_TOKENS, Pooling
from ovchat_server.engine.contract.spec import Count  # noqa: TC001  as above

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ovchat_server.domain.identity import ApiKey
    from ovchat_server.domain.limits import Limits
    from ovchat_server.provider_settings import ProviderSettings
    from ovchat_server.tls.files import TlsFiles

# The types of domain.models.
Task = Literal["text-generation", "text-embedding", "rerank"]
ModelName = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:-]{0,127}\Z",
        description="made of letters, digits and . _ - / :",
    ),
]


class ModelSettings(GenerationOptions, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A model to serve: a [[models]] table, which holds its engine's options, too.

    Attributes:
        name: The name that requests have in `model`. Required.
        path: The model's folder in OpenVINO's format, or a GGUF file. Required.
        weights: Form of a GGUF file's weights after conversion: `"auto"`, `"int8"` or `"file"`
            (docs/gguf.md).
        tool_parser: How the model writes tool calls: the name of a parser (docs/parsers.md),
            `"none"`, or `"auto"`, which recognises it by the chat template and describes the tools
            to a model whose template has no place for them.
        reasoning_parser: How the model writes its reasoning; as `tool_parser`.
        constrain_tool_calls: Enforce the tools' schemas on calls that the model makes by its own
            choice, too. Forced calls always follow them.
        draft_model: Folder of the smaller model that proposes tokens where `speculation` is
            "draft". It must have the same vocabulary.
        task: What the model is for: `"text-generation"`, `"text-embedding"` or `"rerank"`. By
            default its architecture and its graph tell. Of the options of this table, some are for
            one task only (docs/embeddings.md).
        pooling: How the vectors of a text's tokens become its embedding: `"cls"`, `"lasttoken"`,
            `"max"`, `"mean"`, `"mean_sqrt_len_tokens"` or `"weightedmean"`. By default
            sentence-transformers' files beside the model say (`modules.json`).
        normalize: Whether embeddings have length 1. By default those files say; without them, yes.
        matryoshka: Whether requests may ask for fewer `dimensions`. By default `config.json` says
            (`is_matryoshka`, `matryoshka_dimensions`); without it, no.
        max_model_len: Longest text, or pair of texts, in tokens, of a model that makes embeddings
            or ranks. By default what it was made for.
        max_batch_tokens: Most tokens, padding counted, that a model which makes embeddings or
            ranks reads in one step, of all requests together.
    """

    name: ModelName
    path: Path
    task: Task | None = None
    pooling: Pooling | None = None
    normalize: bool | None = None
    matryoshka: bool | None = None
    max_model_len: Count | None = None
    max_batch_tokens: Count = DEFAULT_BATCH_TOKENS
    weights: WeightForm | None = None
    tool_parser: str = "auto"
    reasoning_parser: str = "auto"
    constrain_tool_calls: bool = True
    draft_model: Path | None = None

    def __post_init__(self) -> None:
        """See GenerationOptions.

        Raises:
            ValueError: Options contradict each other.
        """
        super().__post_init__()
        if self.speculation == "draft" and self.draft_model is None:
            raise ValueError(
                'speculation = "draft" takes a model that drafts: set draft_model to its folder'
            )
        if self.draft_model is not None and self.speculation != "draft":
            raise ValueError(
                'draft_model has no effect: set speculation = "draft", or leave it out'
            )


class RouteSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An id that stands for several models: a [[routes]] table.

    Attributes:
        name: The name that requests have in `model`. Required.
        models: Ids of the models, of this server or of providers (`provider/model`), in the order
            in which they are asked. Required.
        weights: Of each model, how often it is asked first, in proportion to the others. By default
            it is always the first one.
    """

    name: ModelName
    models: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    weights: tuple[Annotated[float, msgspec.Meta(gt=0)], ...] | None = None

    def __post_init__(self) -> None:
        """Check that there is a weight for each model.

        Raises:
            ValueError: There is not, or a model stands there twice.
        """
        if len({*self.models}) < len(self.models):
            raise ValueError("models must not name a model twice")
        if self.weights is not None and len(self.weights) != len(self.models):
            raise ValueError("weights must be as many as models")


class StoredResponsesSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Which responses of the Responses API a server keeps: the [stored_responses] table.

    Attributes:
        max_count: Responses that a server keeps. The oldest of the API key that has most goes
            first, also for the next two bounds. 0: none, and each request has to bring its whole
            conversation.
        max_bytes: Memory that they may take, in bytes, each counted with its whole conversation
            and its images. A response that is larger than that is not kept.
        max_age: Seconds for which a response is kept.
    """

    max_count: Annotated[int, msgspec.Meta(ge=0)] = 1000
    max_bytes: Annotated[int, msgspec.Meta(ge=1)] = 256 << 20
    max_age: Annotated[float, msgspec.Meta(gt=0)] = 86400


@dataclass(frozen=True, slots=True)
class Settings:
    """How to serve.

    Attributes:
        models: Those that are served here; none if there are providers.
        providers: Of models that run elsewhere.
        routes: Ids that stand for several models.
        aliases: Ids that stand for one model, with its id.
        host: Address that both ports listen on.
        grpc_port: Of the gRPC server, or of Envoy before several; 0 picks a free one.
        grpc_socket: Unix socket that the gRPC server listens on instead; see `socket_target`.
        envoy_socket: Unix socket that Envoy calls it on, besides its port, which of several
            servers none has: it is trusted, and has no TLS.
        egress: Where Envoy takes requests to the providers; see `options` (`ovchat serve` only).
        rest_port: Of Envoy (`ovchat up` only).
        admin_port: Of Envoy's administration, on loopback; 0: it is on a private Unix socket.
        allowed_origins: Of pages that may call, as browsers send them; "*": all.
        envoy_path: Envoy's binary; None finds it.
        replicas: Servers that `ovchat up` starts; to one of them, those on its processors.
        drain_timeout: Seconds that running requests get to finish when the server stops.
        liveness_timeout: Seconds without an answer after which a child of `ovchat up` is replaced;
            0: never.
        request_timeout: Seconds that the work on a request may take; 0: any.
        idle_timeout: Seconds after which a stream whose reader takes nothing ends; 0: never.
        max_request_bytes: Largest request.
        max_concurrent_streams: Calls at once on one connection to the gRPC server.
        limits: How much a request may hold: the file's [limits] table.
        stored_responses: Which responses are kept: the file's [stored_responses] table.
        strict_parameters: Refuse parameters that are unknown instead of ignoring them.
        keep_billing_header: Keep what Claude Code says about itself in prompts.
        api_key_file: What the keys were read from.
        api_keys: Of those who may call; none: everybody may.
        tls: Files of the ports' TLS; None: they have none.
        allowed_media_domains: Hosts that images are fetched from, each `host` or `host:port`.
        allowed_local_media_path: Folder whose files are read as images; None: no file is.
        cache_dir: Where GGUF files are converted to.
        log_level: Python's name of the lowest level that is logged.
        log_format: "text", "json", or "auto": text on a terminal.
        server_number: Which of several servers it is, from 1.
        metrics_host: Address that the port of metrics is on.
        metrics_port: Of metrics for Prometheus; 0 picks a free one.
        metrics_socket: Unix socket on which one of several servers gives its metrics instead.
        otlp_traces_endpoint: URL that traces are sent to; None: the environment may say.
        trace_content: Have prompts and answers in traces.
    """

    models: tuple[ModelSettings, ...]
    providers: tuple[ProviderSettings, ...]
    routes: tuple[RouteSettings, ...]
    aliases: Mapping[str, str]
    host: str
    grpc_port: int
    grpc_socket: str | None
    envoy_socket: str | None
    egress: str | None
    rest_port: int
    admin_port: int
    allowed_origins: tuple[str, ...]
    envoy_path: Path | None
    replicas: int
    drain_timeout: float
    liveness_timeout: float
    request_timeout: float
    idle_timeout: float
    max_request_bytes: int
    max_concurrent_streams: int
    limits: Limits
    stored_responses: StoredResponsesSettings
    strict_parameters: bool
    keep_billing_header: bool
    api_key_file: Path | None
    api_keys: tuple[ApiKey, ...]
    tls: TlsFiles | None
    allowed_media_domains: tuple[str, ...]
    allowed_local_media_path: Path | None
    cache_dir: Path
    log_level: str
    log_format: str
    server_number: int
    metrics_host: str
    metrics_port: int
    metrics_socket: str | None
    otlp_traces_endpoint: str | None
    trace_content: bool

    @property
    def names_certificates(self) -> bool:
        """Whether callers have certificates: by TLS here, or in front of a socket of ours."""
        return bool(self.grpc_socket or (self.tls and self.tls.client_ca))


def socket_target(socket: str) -> str:
    """Return gRPC's name of a Unix socket: `socket` is its path, or "@" and an abstract name."""
    if socket.startswith("@"):
        return f"unix-abstract:{socket.removeprefix('@')}"
    return f"unix:{socket}"
