"""Mistakes in flags, variables, files and paths, each with the line that a person sees first."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ovchat_server.chat.dialects.registry import reasoning_parsers, tool_parsers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DEMO = ("--model", "demo=models/demo")
TABLE = '[[models]]\nname = "demo"\npath = "models/demo"\n'
LONG = "x" * 300
NO_MODEL = "no model to serve: give --model NAME=PATH, or [[models]] or [[providers]] in a file"
BELONGS = "belongs to a model: set it in its [[models]] table"


@dataclass(frozen=True)
class Mistake:
    """A command line, a file "serve.toml" or a variable; and the line that is printed first."""

    says: str
    arguments: Sequence[str] = ()
    file: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    command: str = "up"
    code: int = 2


def flags(says: str, *arguments: str, command: str = "up") -> Mistake:
    return Mistake(says, arguments, command=command)


def file(says: str, text: str) -> Mistake:
    return Mistake(f"serve.toml{says}", file=text)


def variable(says: str, **environment: str) -> Mistake:
    return Mistake(says, DEMO, environment=environment)


def model(says: str, path: str) -> Mistake:
    return Mistake(f"the model 'demo': {says}", ("--model", f"demo={path}"), code=1)


FLAGS = [
    flags(NO_MODEL, command="serve"),
    flags('--model must be NAME=PATH, such as demo=models/demo, got "demo"', "--model", "demo"),
    flags('--model must be NAME=PATH, such as demo=models/demo, got "demo="', "--model", "demo="),
    flags(
        '--model NAME=PATH: NAME must be made of letters, digits and . _ - / :, got "a b"',
        *("--model", "a b=models/demo"),
    ),
    flags(
        '--model NAME=PATH: NAME must be made of letters, digits and . _ - / :, got ""',
        *("--model", "=models/demo"),
    ),
    flags("--model: two models are called 'demo'", *DEMO, *DEMO),
    flags(
        '--config must be a file, got "serv.toml", which does not exist; did you mean serve.toml?',
        *("--config", "serv.toml"),
    ),
    flags('--config must be a file, got "models", which is a folder', "--config", "models"),
    flags(
        f'--config must be a file, got "{LONG}", which cannot be read: File name too long',
        *("--config", LONG),
    ),
    flags('--rest-port must be a whole number from 0 to 65535, got "http"', "--rest-port", "http"),
    flags('--grpc-port must be a whole number from 0 to 65535, got "-1"', "--grpc-port", "-1"),
    flags('--replicas must be a whole number from 1 to 32, got "0"', "--replicas", "0"),
    flags('--idle-timeout must be a number of at least 0, got "-5"', "--idle-timeout", "-5"),
    flags('--drain-timeout must be a number of at least 0, got "nan"', "--drain-timeout", "nan"),
    flags('--drain-timeout must be a number of at least 0, got "30s"', "--drain-timeout", "30s"),
    flags(
        '--max-request-bytes must be a whole number of at least 1024, got "8M"',
        *("--max-request-bytes", "8M"),
    ),
    flags(
        '--log-level must be one of debug, error, info, warning, got "warn"; did you mean warning?',
        *("--log-level", "warn"),
    ),
    flags(
        '--cache-dir must be a folder, got "serve.toml", which is a file', "--cache-dir=serve.toml"
    ),
    flags(
        "--allowed-media-domains must be hosts without https:// and path, such as "
        'images.example.com, got ["a.example", "https://b.example"]',
        *("--allowed-media-domains", "a.example,https://b.example"),
    ),
    flags('--envoy-path must be a file, got "no", which does not exist', "--envoy-path=no"),
    # Or the server would be open to everybody.
    flags("--api-key-file empty holds no key", *DEMO, "--api-key-file", "empty"),
    flags("--api-key-file only comments holds no key", *DEMO, "--api-key-file", "only comments"),
    flags(
        "--api-key-file spaces: line 3 has something behind its key that is no setting: there are "
        "models, requests_per_minute, tokens_per_minute, concurrent_requests, priority",
        *DEMO,
        "--api-key-file",
        "spaces",
    ),
    flags("binary is not text in UTF-8", *DEMO, "--api-key-file", "binary"),
    flags("binary is not text in UTF-8", "--config", "binary"),
    flags("Option '--rest-port' requires an argument.", "--rest-port"),
    flags("Option '--strict-parameters' does not take a value.", "--strict-parameters=1"),
    flags("--restport is no option of `ovchat up`; did you mean --rest-port?", "--restport", "1"),
    flags("--rest_port is no option of `ovchat up`; did you mean --rest-port?", "--rest_port", "1"),
    flags(f"--kv-blocks: kv_blocks {BELONGS} of --config", *DEMO, "--kv-blocks", "64"),
    flags(f"--device: device {BELONGS} of --config", *DEMO, "--device=GPU", command="serve"),
    flags(
        f"--kv-block is no option of `ovchat up`; did you mean kv_blocks? It {BELONGS}",
        *DEMO,
        "--kv-block=64",
    ),
    flags(
        "--max-messages: max_messages is a limit of requests: "
        "set it in the [limits] table of --config",
        *("--max-messages", "5"),
    ),
    flags("--replicas is an option of `ovchat up`", "--replicas", "2", command="serve"),
    flags("--rest-port is an option of `ovchat up`", "--rest-port=1", command="serve"),
    flags("--grpc-socket is an option of `ovchat serve`", "--grpc-socket", "@x"),
    flags('--grpc-socket must be a path or @NAME, got ""', "--grpc-socket=", command="serve"),
    flags('--grpc-socket must be a path or @NAME, got "@"', "--grpc-socket=@", command="serve"),
    flags(
        "--grpc-port and --grpc-socket exclude each other",
        *(*DEMO, "--grpc-socket=@x", "--grpc-port=9000"),
        command="serve",
    ),
    flags("models/demo: did you mean --model demo=models/demo?", "models/demo"),
    flags("a=models/demo: did you mean --model a=models/demo?", "a=models/demo", command="serve"),
    flags("gguf/x.gguf: did you mean --model x=gguf/x.gguf?", *DEMO, "gguf/x.gguf"),
    flags("unexpected argument models/dmo", "models/dmo"),
    flags(f"unexpected argument {LONG}", LONG),
    flags("No such command 'start'.", command="start"),
    flags("--model is an option of `ovchat up`", "demo=models/demo", command="--model"),
    flags("--hepl is no option of `ovchat`; did you mean --help?", command="--hepl"),
]
VARIABLES = [
    variable(
        'OVCHAT_REST_PORT must be a whole number from 0 to 65535, got "tcp://1"',
        OVCHAT_REST_PORT="tcp://1",
    ),
    variable(
        'OVCHAT_STRICT_PARAMETERS must be true or false, got "perhaps"',
        OVCHAT_STRICT_PARAMETERS="perhaps",
    ),
    variable('OVCHAT_CONFIG must be a file, got "x", which does not exist', OVCHAT_CONFIG="x"),
    Mistake(
        'OVCHAT_MODEL must be NAME=PATH, such as demo=models/demo, got "b,"',
        environment={"OVCHAT_MODEL": "a=models/demo b,"},
    ),
]
SERVER = [
    file(
        " is not TOML: Expected ']' at the end of a table declaration (at end of document)",
        "[server",
    ),
    file(
        " is not TOML: Expected '=' after a key in a key/value pair (at line 2, column 6)",
        "\nrest port = 1",
    ),
    file(":2: there is no table 'sever'; did you mean server?", "\n[sever]"),
    file(
        ":1: there is no table 'x'; there are server, models, providers, routes, aliases, "
        "limits, stored_responses",
        "x = 1",
    ),
    file(":1: grpc_port belongs to the server: set it in the [server] table", "grpc_port = 1"),
    file(":1: server must be a table, [server], got 5", "server = 5"),
    file(
        ":2: [server] has no option 'grpc-port'; did you mean grpc_port?", "[server]\ngrpc-port = 1"
    ),
    file(f":2: [server]: kv_blocks {BELONGS}", "[server]\nkv_blocks = 64"),
    file(":2: [server]: models have [[models]] tables of their own", '[server]\nmodel = "a=b"'),
    file(":2: [server] has no option 'config'", '[server]\nconfig = "x"'),
    file(
        ':4: [server]: rest_port must be a whole number from 0 to 65535, got "8000"',
        '# Ours.\n[server]\nhost = "::"\nrest_port = "8000"',
    ),
    file(
        ":2: [server]: grpc_port must be a whole number from 0 to 65535, got true",
        "[server]\ngrpc_port = true",
    ),
    file(
        ":2: [server]: replicas must be a whole number from 1 to 32, got 2.5",
        "[server]\nreplicas = 2.5",
    ),
    file(':2: [server]: host must be a string, got ["::"]', '[server]\nhost = ["::"]'),
    file(
        ':2: [server]: strict_parameters must be true or false, got "true"',
        '[server]\nstrict_parameters = "true"',
    ),
    file(
        ":2: [server]: strict_parameters must be true or false, got 1",
        "[server]\nstrict_parameters = 1",
    ),
    file(
        ":2: [server]: request_timeout must be a number of at least 0, got Infinity",
        "[server]\nrequest_timeout = inf",
    ),
    file(
        ':2: [server]: envoy_path must be a file, got "nowhere", which does not exist',
        '[server]\nenvoy_path = "nowhere"',
    ),
]
LIMITS = [
    file(":1: limits must be a table, [limits], got 5", "limits = 5"),
    file(
        ":2: [limits] has no option 'max_message'; did you mean max_messages?",
        "[limits]\nmax_message = 5",
    ),
    file(
        ":2: [limits]: max_messages must be a whole number of at least 1, got 0",
        "[limits]\nmax_messages = 0",
    ),
    file(
        ':2: [limits]: max_tools must be a whole number of at least 1, got "many"',
        '[limits]\nmax_tools = "many"',
    ),
    file(
        ":2: [limits]: max_json_depth must be a whole number from 1 to 256, got 257",
        "[limits]\nmax_json_depth = 257",
    ),
    file(
        ":2: [stored_responses]: max_count must be a whole number of at least 0, got -1",
        "[stored_responses]\nmax_count = -1",
    ),
    file(
        ":2: [stored_responses]: max_age must be a number above 0, got 0",
        "[stored_responses]\nmax_age = 0",
    ),
]
MODEL_TABLES = [
    Mistake(NO_MODEL, file="[server]\n"),
    file(":1: models must be tables, each [[models]]", '[models]\nname = "demo"'),
    file(":2: [[models]] has no name", '\n[[models]]\npath = "models/demo"'),
    file(":1: [[models]] 'demo' has no path", '[[models]]\nname = "demo"'),
    file(":2: [[models]]: path must be a path, got 5", "[[models]]\npath = 5"),
    file(
        ":2: [[models]] 'a b': name must be made of letters, digits and . _ - / :, got \"a b\"",
        '[[models]]\nname = "a b"\npath = "models/demo"',
    ),
    file(":5: [[models]] 'demo': there is a model of this name already", f"{TABLE}\n{TABLE}"),
]
PROVIDER = '[[providers]]\nname = "vllm"\nbase_url = "http://127.0.0.1:8001/v1"\n'
OPENAI = '[[providers]]\nname = "openai"\n'
READY = "openai, ollama, lmstudio, huggingface, anthropic"
ROUTE = '[[routes]]\nname = "fast"\nmodels = ["demo"'
ROUTE_TABLES = [
    file(":4: [[routes]] 'fast' has no models", f'{TABLE}[[routes]]\nname = "fast"'),
    file(":4: [[routes]] 'fast': models must not name a model twice", f'{TABLE}{ROUTE}, "demo"]'),
    file(
        ":6: [[routes]] 'fast': there is no model 'dem'; did you mean demo?",
        f'{TABLE}{ROUTE}, "dem"]',
    ),
    file(
        ":4: [[routes]] 'fast': weights must be as many as models",
        f"{TABLE}{ROUTE}]\nweights = [1, 2]",
    ),
]
ALIASES = f"{TABLE}[aliases]\n"
NO_ID = "the id must be made of letters, digits and . _ - / :, got"
ALIAS_TABLES = [
    file(":1: aliases must be a table, [aliases], got 5", f"aliases = 5\n{TABLE}"),
    file(
        ":5: [aliases] 'gpt-5': there is no model 'dem'; did you mean demo?",
        f'{ALIASES}gpt-5 = "dem"',
    ),
    file(
        ":6: [aliases] 'gpt-6': must be the id of a model, got 6",
        f'{ALIASES}gpt-5 = "demo"\ngpt-6 = 6',
    ),
    file(
        ":5: [aliases] 'demo': there is a model or a route of this name already",
        f'{ALIASES}demo = "demo"',
    ),
    file(":5: [aliases] 'a': must be the id of a model, got [\"demo\"]", f'{ALIASES}a = ["demo"]'),
    file(":5: [aliases] 'gpt-4': an id with a dot stands in quotes", f'{ALIASES}gpt-4.1 = "demo"'),
    file(
        ":5: [aliases] 'a': 'b' is an alias itself: name the model",
        f'{ALIASES}a = "b"\nb = "demo"',
    ),
    file(
        ":5: [aliases] 'openvino/a': leave openvino/ out: models are asked for with and without it",
        f'{ALIASES}"openvino/a" = "demo"',
    ),
    file(f":5: [aliases] 'gpt 5': {NO_ID} \"gpt 5\"", f'{ALIASES}"gpt 5" = "demo"'),
]
PROVIDER_TABLES = [
    Mistake(
        "providers are reached through Envoy: `ovchat up` starts it, or name the egress listener "
        "of yours with --egress",
        file=PROVIDER,
        command="serve",
    ),
    flags(
        '--egress must be HOST:PORT, /PATH, ./PATH or @NAME, got "localhost"',
        *(*DEMO, "--egress=localhost"),
        command="serve",
    ),
    file(":1: providers must be tables, each [[providers]]", '[providers]\nname = "openai"'),
    file(":1: [[providers]] has no name", '[[providers]]\nbase_url = "http://a.example"'),
    file(
        f":1: [[providers]] 'vllm' has no base_url; ready-made, without one, are {READY}",
        '[[providers]]\nname = "vllm"',
    ),
    file(":4: [[providers]] 'vllm': there is a provider of this name already", PROVIDER + PROVIDER),
    Mistake(
        "serve.toml:1: [[providers]] 'openai' takes its API key from the variable OPENAI_API_KEY, "
        "which is not set",
        file=OPENAI,
        environment={"OPENAI_API_KEY": " "},
    ),
    file(
        ":1: [[providers]] 'openai' takes its API key from the variable NO_SUCH_KEY, "
        "which is not set",
        f'{OPENAI}api_key_env = "NO_SUCH_KEY"',
    ),
    *(
        file(
            f":1: [[providers]] 'vllm': {option} is for providers of the kind '{kind}'",
            f'{PROVIDER}{option} = {value}\nkind = "{other}"',
        )
        for option, value, kind, other in (
            ("max_tokens_field", '"max_completion_tokens"', "openai", "anthropic"),
            ("default_max_tokens", "7", "anthropic", "openai"),
        )
    ),
    # Keys are not printed.
    file(
        ":1: [[providers]] 'openai' takes its API key from the variable that its api_key_env "
        "names, which is not set",
        f'{OPENAI}api_key_env = "hf_x"',
    ),
    file(
        ":3: [[providers]] 'openai': api_key_env must be the name of an environment variable, "
        "not a key itself",
        f'{OPENAI}api_key_env = "sk-x"',
    ),
    file(
        ":2: [[providers]] 'v1': name must be made of small letters, digits, - and _; not "
        'openvino, which this server is, nor ovchat, v1, v2 or v3, got "v1"',
        '[[providers]]\nname = "v1"',
    ),
    *(
        file(
            ":2: [[providers]]: base_url must be a URL with a host, "
            f'such as https://api.example.com/v1, got "{url}"',
            f'[[providers]]\nbase_url = "{url}"',
        )
        for url in ("http://a.example:65536", "http://:80", "http://[::1/v1")
    ),
    file(
        ":2: [[providers]]: base_url must be a URL such as https://api.example.com/v1, "
        'got "a.example"',
        '[[providers]]\nbase_url = "a.example"',
    ),
    file(
        ":1: [[providers]] 'vllm': base_url must have no path with kind = \"ovchat\": "
        "gRPC has none",
        f'{PROVIDER}kind = "ovchat"',
    ),
    file(
        ':2: [[providers]]: models must be an array of strings, got "gpt-*"',
        '[[providers]]\nmodels = "gpt-*"',
    ),
    file(
        ':2: [[providers]]: ca_file must be a file, got "emty", which does not exist; '
        "did you mean empty?",
        '[[providers]]\nca_file = "emty"',
    ),
    file(
        ":2: [[providers]]: timeout must be a number above 0, got 0", "[[providers]]\ntimeout = 0"
    ),
    file(
        ":2: [[providers]] has no option 'url'",
        '[[providers]]\nurl = "http://a.example"',
    ),
]
# The fourth line of a model's table.
MODEL_KEYS = {
    "kv_block = 64": " has no option 'kv_block'; did you mean kv_blocks?",
    "color = 1": " has no option 'color'",
    "grpc_port = 1": ": grpc_port belongs to the server: set it in the [server] table",
    "max_tools = 1": ": max_tools is a limit of requests: set it in the [limits] table",
    'kv_blocks = "many"': ': kv_blocks must be a whole number of at least 4, got "many"',
    "kv_blocks = 3": ": kv_blocks must be a whole number of at least 4, got 3",
    "kv_cache_gb = 0": ": kv_cache_gb must be a whole number of at least 1, got 0",
    'kv_cache_precision = "u9"': (
        ': kv_cache_precision must be one of bf16, f16, f32, u4, u8, got "u9"'
    ),
    "max_num_batched_tokens = 0": (
        ": max_num_batched_tokens must be a whole number of at least 1, got 0"
    ),
    "max_step_seconds = -1": ": max_step_seconds must be a number of at least 0, got -1",
    "num_assistant_tokens = 33": (
        ": num_assistant_tokens must be a whole number from 1 to 32, got 33"
    ),
    'speculation = "drafts"': (
        ': speculation must be one of draft, lookup, got "drafts"; did you mean draft?'
    ),
    "assistant_confidence_threshold = 2": (
        ": assistant_confidence_threshold must be a number from 0 to 1, got 2"
    ),
    "max_queue = 0": ": max_queue must be a whole number of at least 1, got 0",
    "max_queue_wait = nan": ": max_queue_wait must be a number above 0, got NaN",
    "step_timeout = 0": ": step_timeout must be a number above 0, got 0",
    "constrain_tool_calls = 1": ": constrain_tool_calls must be true or false, got 1",
    "device = 1": ": device must be a string, got 1",
    "properties = { A = [1] }": (
        ': properties must be a table of strings, numbers and booleans, got {"A": [1]}'
    ),
    'tool_parser = "hermez"': (
        f': tool_parser must be one of {", ".join(tool_parsers())}, got "hermez"; '
        "did you mean hermes?"
    ),
    "reasoning_parser = 5": (
        f": reasoning_parser must be one of {', '.join(reasoning_parsers())}, got 5"
    ),
    'weights = "int4"': (
        ': weights must be one of auto, int8, file, got "int4"; did you mean int8?'
    ),
}
PATHS = [
    model("there is no folder models/dmo; did you mean models/demo?", "models/dmo"),
    model("there is no openvino_model.bin in no-weights", "no-weights"),
    model("there is no tokenizer.json in no-tokenizer", "no-tokenizer"),
    model("there is no openvino_text_embeddings_model.xml in no-embeddings", "no-embeddings"),
    model(
        "lfs/openvino_model.bin is a pointer of Git LFS: `git lfs pull` fetches what it stands for",
        "lfs",
    ),
    model("there is no folder no/such/folder", "no/such/folder"),
    model(f"{LONG} cannot be read: File name too long", LONG),
    model(
        "there is no openvino_model.xml in models; "
        "the models in it have paths of their own: models/demo",
        "models",
    ),
    model(
        "there is no openvino_model.xml in nothing; such a folder is written by: "
        "`optimum-cli export openvino --model ID --weight-format int4 nothing`",
        "nothing",
    ),
    model(
        "there is no openvino_model.xml in hf; hf is a checkpoint of Hugging Face, which is "
        "converted first: `optimum-cli export openvino --model hf "
        "--task text-generation-with-past --weight-format int4 hf-int4`",
        "hf",
    ),
    model(
        "there is no folder Qwen/Qwen3-8B; a model of Hugging Face is converted first: "
        "`optimum-cli export openvino --model Qwen/Qwen3-8B --weight-format int4 models/Qwen3-8B`",
        "Qwen/Qwen3-8B",
    ),
    model(
        "there is no openvino_model.xml in gguf; "
        "the GGUF file in it has a path of its own: gguf/x.gguf",
        "gguf",
    ),
    model("there is no file gguf/y.gguf; did you mean gguf/x.gguf?", "gguf/y.gguf"),
    model("gguf/x.gguf is not a GGUF file", "gguf/x.gguf"),
    model(
        "models/demo/openvino_model.xml is not a GGUF file; give its folder: models/demo",
        "models/demo/openvino_model.xml",
    ),
    Mistake(
        "the model 'demo': weights is for GGUF files, and models/demo is a folder",
        file=f'{TABLE}weights = "int8"',
        code=1,
    ),
]
