"""How to serve: what `options` makes of flags, environment and file."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from ovchat_server.api.limits import Limits

MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:-]{0,127}")
DEFAULT_KV_BLOCKS = 512


class ModelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A model to serve: a [[models]] table.

    Attributes:
        name: The id callers ask for.
        path: Its folder in OpenVINO's format; in a config file relative to that file.
        device: OpenVINO's name of a device, such as "CPU" or "GPU.0".
        kv_blocks: Size of the KV cache in blocks (32 tokens on a CPU, 16 on a GPU).
        kv_cache_gb: Its size in GiB instead.
        max_num_batched_tokens: Most tokens of one step.
        max_step_seconds: Seconds that a step should take at the most: it reads so much less of
            prompts, as fast as the machine was lately. Less keeps streams moving and lets short
            prompts overtake long ones, more reads long prompts faster. 0: any time.
        tool_parser: How the model writes tool calls: a parser's name, "none", or "auto", which
            sees it in the chat template.
        reasoning_parser: How it writes reasoning: the same.
        constrain_tool_calls: Hold the calls that it makes of its own accord to the tools'
            schemas. Those that the caller forces are held to them anyway.
        properties: OpenVINO's, such as INFERENCE_PRECISION_HINT.
        grammar_timeout: Seconds that compiling the form of an answer may take.
        load_timeout: Seconds that loading the model may take.
        step_timeout: Seconds after which an engine that says nothing hangs, and is restarted:
            more than reading `max_num_batched_tokens` of prompts ever takes it.
        max_queue: Most choices of requests that may wait for a place in the engine. More are
            refused: those of the client that has most there.
        max_queue_wait: Seconds that each of them may wait.
    """

    name: str
    path: Path
    device: str = "CPU"
    kv_blocks: int | None = None
    kv_cache_gb: int | None = None
    max_num_batched_tokens: int = 2048
    max_step_seconds: float = 0.25
    tool_parser: str = "auto"
    reasoning_parser: str = "auto"
    constrain_tool_calls: bool = True
    properties: dict[str, str | int | float | bool] = {}
    grammar_timeout: float = 1.5
    load_timeout: float = 600.0
    step_timeout: float = 120.0
    max_queue: int = 256
    max_queue_wait: float = 60.0

    def __post_init__(self) -> None:
        """Check what types cannot say.

        Raises:
            ValueError: A value makes no sense; msgspec names the table it stands in.
        """
        if not MODEL_NAME.fullmatch(self.name):
            raise ValueError(f"{self.name!r} is no name for a model: use letters, digits, . _ - /")
        if self.kv_blocks is not None and self.kv_cache_gb is not None:
            raise ValueError("kv_blocks and kv_cache_gb say the same thing: give one")
        if self.kv_blocks is not None and self.kv_blocks < 4:  # noqa: PLR2004
            raise ValueError(f"kv_blocks must be at least 4, got {self.kv_blocks}")
        if self.kv_cache_gb is not None and self.kv_cache_gb < 1:
            raise ValueError(f"kv_cache_gb must be at least 1, got {self.kv_cache_gb}")
        if self.max_num_batched_tokens < 1:
            raise ValueError("max_num_batched_tokens must be at least 1")
        if not 0 <= self.max_step_seconds < math.inf:
            raise ValueError(f"max_step_seconds must be 0 or above, got {self.max_step_seconds}")
        for name in ("grammar_timeout", "load_timeout", "step_timeout", "max_queue_wait"):
            # Not "<= 0", which a NaN is not.
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)}")
        if self.max_queue < 1:
            raise ValueError(f"max_queue must be at least 1, got {self.max_queue}")


@dataclass(frozen=True, slots=True)
class Settings:
    """How to serve.

    Attributes:
        models: At least one.
        host: Address that both ports listen on.
        grpc_port: Of the gRPC server, or of Envoy before several; 0 picks a free one.
        grpc_socket: Unix socket that the gRPC server listens on instead; see `socket_target`.
        rest_port: Of Envoy (`ovchat up` only).
        admin_port: Of Envoy's administration, on loopback; 0 picks a free one.
        envoy_path: Envoy's binary; None finds it.
        replicas: Servers to start (`ovchat up` only).
        drain_timeout: Seconds that running requests get to finish when the server stops.
        request_timeout: Seconds that the work on a request may take; 0: any.
        idle_timeout: Seconds after which a stream whose reader takes nothing ends; 0: never.
        max_request_bytes: Largest request.
        max_concurrent_streams: Calls at once on one connection to the gRPC server.
        limits: How much a request may hold: the file's [limits] table.
        strict_parameters: Refuse parameters that are unknown instead of ignoring them.
        api_keys: Of those who may call; none: everybody may.
        log_level: Python's name of the lowest level that is logged.
    """

    models: tuple[ModelSettings, ...]
    host: str
    grpc_port: int
    grpc_socket: str | None
    rest_port: int
    admin_port: int
    envoy_path: Path | None
    replicas: int
    drain_timeout: float
    request_timeout: float
    idle_timeout: float
    max_request_bytes: int
    max_concurrent_streams: int
    limits: Limits
    strict_parameters: bool
    api_keys: tuple[str, ...]
    log_level: str


def socket_target(socket: str) -> str:
    """What gRPC calls a Unix socket: `socket` is its path, or "@" and an abstract name."""
    if socket.startswith("@"):
        return f"unix-abstract:{socket.removeprefix('@')}"
    return f"unix:{socket}"
