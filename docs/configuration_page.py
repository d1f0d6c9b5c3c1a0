"""Generate docs/configuration.md from the declarations of all options."""  # noqa: INP001

from __future__ import annotations

import dataclasses
import inspect
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ovchat_server.domain.limits import Limits
from ovchat_server.engine.contract.generation_spec import DEFAULT_KV_BLOCKS
from ovchat_server.option_types import Switch
from ovchat_server.options import CONFIG, MODEL, SETTINGS
from ovchat_server.provider_settings import ProviderSettings
from ovchat_server.settings import ModelSettings, RouteSettings, StoredResponsesSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ovchat_server.option_types import Setting

PAGE = Path(__file__).with_name("configuration.md")
# Of keys without a default in TOML, a value for the sample.
EXAMPLES = {
    "grpc_socket": "@ovchat",
    "egress": "@egress",
    "api_key_file": "keys",
    "tls_cert": "cert.pem",
    "tls_key": "key.pem",
    "tls_client_ca": "ca.pem",
    "otlp_traces_endpoint": "http://127.0.0.1:4317",
    "envoy_path": "envoy",
    "cache_dir": "cache",
    "max_request_bytes": 33554432,
    "allowed_media_domains": ["images.example.com"],
    "allowed_origins": ["https://app.example.com"],
    "allowed_local_media_path": "images",
    "max_model_len": 512,
    "weights": "auto",
    "task": "rerank",
    "pooling": "mean",
    "normalize": True,
    "matryoshka": True,
    "kv_cache_gb": 1,
    "kv_cache_precision": "u8",
    "speculation": "lookup",
    "draft_model": "models/smaller",
    "properties": {"INFERENCE_PRECISION_HINT": "f32"},
    "api_key_env": "VLLM_API_KEY",
    "models": ["qwen-*"],
    "ca_file": "ca.pem",
    # Those of a model are its files.
    "[[routes]] weights": [3, 1],
    "claude-sonnet-4-5": "demo",
}
# The same, for the tables.
DEFAULTS = {"cache_dir": "`~/.cache/ovchat`", "max_request_bytes": "`8388608` or `33554432`"}
REQUIRED = {"name": None, "path": None}
REQUIRED_OF_PROVIDERS = {"name": None, "base_url": None}
REQUIRED_OF_ROUTES = {"name": None, "models": None}
OWN = ModelSettings.__annotations__
TEXT = """\
<!-- `make gen` writes this page, from docs/configuration_page.py. -->
# Configuration

An option of the server is a flag (`--rest-port`), an environment variable (`OVCHAT_REST_PORT`) and
a key in the `[server]` table of the TOML file that `--config` names. A flag takes precedence over
the environment, which takes precedence over the file. Limits of requests, those of stored
responses, options of a model, providers, routes and aliases are in the file alone.

`--model` adds a model, or replaces the file's of the same name with all of its options.
`OVCHAT_MODEL` may hold several models, separated by spaces. Paths in the file are relative to the
file. A wrong value ends the start with a message that names the option, and the line of the file. A
variable that looks like a misspelt option is warned of. The flag
`--grpc-port` takes precedence over a `grpc_socket` from the environment or the file.

## The server: `[server]`

{server}

## Limits of a request: `[limits]`

A request beyond a limit gets 400 (INVALID_ARGUMENT), and the error names the field.

{limits}

## Stored responses: `[stored_responses]`

A response of `/v1/responses` is kept in memory, unless its request has `store: false`. Only the API
key that it was made with can get, delete or continue it; where a server has no keys, everybody can.
Each of several servers (`--replicas`) keeps its own.

{stored}

## A model: `[[models]]`

One table for each model. [Models and memory](models.md) says how to choose `kv_blocks`. Some
options are for models of one task: `pooling`, `normalize` and `matryoshka` for those that make
[embeddings](embeddings.md), `max_batch_tokens` for these and for those that rank, those from
`kv_blocks` to `assistant_confidence_threshold` for those that generate text. An option of another
task ends the start with an error.

{models}

## A provider: `[[providers]]`

One table for each provider of models that run elsewhere ([providers](providers.md)).

{providers}

## A route: `[[routes]]`

One table for each id that stands for several models ([providers](providers.md#routes)).

{routes}

## Aliases: `[aliases]`

Further ids, each with that of a model which it stands for: one of this server, a provider's, or a
route. Requests may have them wherever they may have a model's id; lists show them, and answers name
the id that was asked for, or of a route the model that answered. An alias is a whole id, without
patterns; with a dot or a slash it stands in quotes: `"org/gpt-4.1" = "demo"`.

## All keys with their defaults

Commented out is what has no default; the value is an example.

```toml
{sample}```
"""


def page() -> str:
    """Return the page."""
    server = [item for item in SETTINGS if item not in (CONFIG, MODEL)]
    defaults = {item.name or "": item.default for item in server}
    limits = {field.name: field.default for field in dataclasses.fields(Limits)}
    stored = msgspec.to_builtins(StoredResponsesSettings())
    demo = msgspec.to_builtins(ModelSettings(name="demo", path=Path("models/demo")), enc_hook=str)
    demo["kv_blocks"] = DEFAULT_KV_BLOCKS
    vllm = ProviderSettings(name="vllm", base_url="http://127.0.0.1:8001/v1")
    providers = msgspec.to_builtins(vllm)
    route = RouteSettings(name="fast", models=("demo", "vllm/qwen-3"))
    routes = msgspec.to_builtins(route)
    # What any kind of engine has comes last.
    models = dict(sorted(demo.items(), key=lambda item: item[0] not in OWN))
    return TEXT.format(
        server=table("Flag | Variable | Key | Default | Meaning", map(server_row, SETTINGS)),
        limits=table("Key | Default | Meaning", rows(limits, Limits)),
        stored=table("Key | Default | Meaning", rows(stored, StoredResponsesSettings)),
        models=table("Key | Default | Meaning", rows({**models, **REQUIRED}, ModelSettings)),
        providers=table(
            "Key | Default | Meaning",
            rows({**providers, **REQUIRED_OF_PROVIDERS}, ProviderSettings),
        ),
        routes=table(
            "Key | Default | Meaning",
            rows({**routes, **REQUIRED_OF_ROUTES}, RouteSettings),
        ),
        sample="\n".join(
            [
                *toml("[server]", defaults),
                *toml("\n[limits]", limits),
                *toml("\n[stored_responses]", stored),
                *toml("\n[[models]]", models),
                *toml("\n[[providers]]", providers),
                *toml("\n[[routes]]", routes),
                *toml("\n[aliases]", {"claude-sonnet-4-5": None}),
                "",
            ]
        ),
    )


def table(head: str, lines: Iterable[list[str]]) -> str:
    """Return a table in Markdown."""
    columns = head.split(" | ")
    return "\n".join(
        f"| {' | '.join(cells)} |" for cells in (columns, ["---"] * len(columns), *lines)
    )


def server_row(item: Setting) -> list[str]:
    """Return the cells of an option of the server."""
    flags = [*item.opts, *item.secondary_opts]
    word = "" if isinstance(item.kind, Switch) else f" {item.kind.name}"
    [only] = item.commands if len(item.commands) == 1 else [""]
    key = "—" if item in (CONFIG, MODEL) else f"`{item.name}`"
    return [
        "<br>".join(f"`{flag}{word}`" for flag in flags),
        f"`{item.envvar}`",
        key,
        default_of(item.name or "", item.default),
        meaning(item.help or "") + (f" `ovchat {only}` only." if only else ""),
    ]


def rows(defaults: dict[str, object], declared: type) -> Iterator[list[str]]:
    """Return the cells of each key of a table in the file."""
    said = attributes(declared)
    for key, default in defaults.items():
        yield [f"`{key}`", default_of(key, default), meaning(said[key])]


def attributes(declared: type) -> dict[str, str]:
    """Return what the docstrings of a class and its bases say of its attributes."""
    found = {}
    for base in declared.__mro__:
        _, _, text = (inspect.cleandoc(base.__doc__ or "")).partition("Attributes:\n")
        for name, said in re.findall(r"^    (\w+): (.*\n?(?:     .*\n?)*)", text, re.MULTILINE):
            found.setdefault(name, " ".join(said.split()))
    return found


def meaning(text: str) -> str:
    """Return a description as a cell, in which pages are links."""
    return re.sub(r"docs/((\w+)\.md)", r"[\2](\1)", text)


def default_of(key: str, default: object) -> str:
    """Return a default as a cell."""
    return DEFAULTS.get(key) or (f"`{written(default)}`" if plain(default) else "—")


def plain(value: object) -> bool:
    """Return whether a value can stand in the file as a default."""
    return isinstance(value, str | int | float)


def toml(title: str, defaults: dict[str, object]) -> Iterator[str]:
    """Return the lines of a table of the sample, with examples for keys without a default."""
    yield title
    for key, value in defaults.items():
        if plain(value):
            yield f"{key} = {written(value)}"
        else:
            example = EXAMPLES.get(f"{title.strip()} {key}", EXAMPLES.get(key))
            yield f"# {key} = {written(example)}"


def written(value: object) -> str:
    """Return a value as TOML."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {written(item)}" for key, item in value.items()) + " }"
    return f"{value:g}" if isinstance(value, float) else json.dumps(value)


if __name__ == "__main__":
    PAGE.write_text(page())
