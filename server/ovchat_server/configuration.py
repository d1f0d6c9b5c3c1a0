"""The settings of a command: what its options say, and the tables of its config file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ovchat_server.config_file import ConfigFile
from ovchat_server.keys.key_file import read_keys
from ovchat_server.options import config_file
from ovchat_server.serving.model_path import is_vision_model
from ovchat_server.settings import ModelSettings, Settings
from ovchat_server.tls_options import take_tls

if TYPE_CHECKING:
    from collections.abc import Mapping

MIB = 1 << 20
# What the other command has.
_OTHERS = {
    "rest_port": 0,
    "admin_port": 0,
    "allowed_origins": (),
    "liveness_timeout": 0.0,
    "envoy_path": None,
    "grpc_socket": None,
    "envoy_socket": None,
    "egress": None,
    "metrics_socket": None,
}


def settings_from(options: Mapping[str, Any]) -> Settings:
    """Build the settings of a command's options.

    Raises:
        click.UsageError: There is nothing to serve, or a setting is wrong.
    """
    given = dict(options)
    path, models = given.pop("config"), given.pop("model")
    file = ConfigFile.empty() if path is None else config_file(path)
    limits, stored_responses = file.limits(), file.stored_responses()
    named = {model.name: model for model in file.models()}
    providers = tuple(file.providers())
    flags: dict[str, ModelSettings] = {}
    for model in models:
        if model.name in flags:
            raise click.UsageError(f"--model: two models are called {model.name!r}")
        flags[model.name] = model
    named.update(flags)
    if not named and not providers:
        raise click.UsageError(
            "no model to serve: give --model NAME=PATH, or [[models]] or [[providers]] in a file"
        )
    if providers and given.get("egress", "") is None:
        raise click.UsageError(
            "providers are reached through Envoy: `ovchat up` starts it, or name the egress "
            "listener of yours with --egress"
        )
    # Images take more room than texts.
    images = providers or any(is_vision_model(model.path) for model in named.values())
    given["max_request_bytes"] = given["max_request_bytes"] or (32 if images else 8) * MIB
    given["server_number"] = given.get("server_number") or 1
    # To one of several servers `ovchat up` tells how many there are.
    given.setdefault("replicas", given.pop("servers", None) or 1)
    routes = tuple(file.routes(named, [provider.name for provider in providers]))
    return Settings(
        models=tuple(named.values()),
        providers=providers,
        routes=routes,
        aliases=file.aliases(
            {*named, *(route.name for route in routes)}, [provider.name for provider in providers]
        ),
        limits=limits,
        stored_responses=stored_responses,
        api_keys=read_keys(key_file) if (key_file := given["api_key_file"]) else (),
        tls=take_tls(given),
        **{**_OTHERS, **given},
    )
