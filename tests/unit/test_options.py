"""Options: one declaration, four sources, and words that help where a value is wrong."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from ovchat_server.cli import main
from ovchat_server.commands import ServerCommand
from ovchat_server.configuration import settings_from
from ovchat_server.domain.limits import Limits
from ovchat_server.option_types import Switch
from ovchat_server.options import SETTINGS, arguments_of
from ovchat_server.provider_settings import ProviderSettings
from ovchat_server.settings import ModelSettings, StoredResponsesSettings
from tests.conftest import ROOT
from tests.keys import api_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ovchat_server.settings import Settings

MODEL = ("--model", "demo=models/demo")
CATCH: dict[str, Any] = {}


def catch(**options: Any) -> None:
    CATCH["options"] = options
    CATCH["settings"] = settings_from(options)


def run(*arguments: str, env: dict[str, str] | None = None, command: str = "up") -> Settings:
    made = ServerCommand(command, callback=catch)
    result = CliRunner().invoke(made, arguments, env=env)
    assert result.exit_code == 0, result.output
    settings: Settings = CATCH["settings"]
    return settings


@pytest.fixture
def config(tmp_path: Path) -> Callable[[str], str]:
    """Writes a config file; gives its path."""

    def write(text: str) -> str:
        path = tmp_path / "ovchat.toml"
        path.write_text(text)
        return str(path)

    return write


@pytest.fixture
def values(tmp_path: Path) -> dict[str, tuple[str, str, str]]:
    """Of every option three values, none of them its default."""
    for name in ("x", "y", "z"):
        (tmp_path / name).touch()
    return {
        "host": ("127.0.0.2", "::1", "0.0.0.0"),
        "grpc_port": ("1", "2", "3"),
        "grpc_socket": ("@1", "@2", "/3"),
        "egress": ("@1", "[::1]:2", "./3"),
        "rest_port": ("4", "5", "6"),
        "admin_port": ("7", "8", "9"),
        "envoy_path": (str(tmp_path / "x"), str(tmp_path / "y"), str(tmp_path / "z")),
        "replicas": ("2", "3", "4"),
        "drain_timeout": ("1.5", "2.5", "0.0"),
        "liveness_timeout": ("1.5", "2.5", "0.0"),
        "request_timeout": ("1.5", "2.5", "0.0"),
        "idle_timeout": ("1.5", "2.5", "0.0"),
        "max_request_bytes": ("1024", "2048", "4096"),
        "max_concurrent_streams": ("1", "2", "3"),
        "cache_dir": (str(tmp_path / "x1"), str(tmp_path / "y1"), str(tmp_path / "z1")),
        "allowed_local_media_path": (str(tmp_path), str(tmp_path / "y1"), str(tmp_path / "z1")),
        "log_level": ("debug", "warning", "error"),
        "log_format": ("json", "text", "json"),
        "metrics_host": ("127.0.0.2", "::1", "0.0.0.0"),
        "metrics_port": ("1", "2", "3"),
        "otlp_traces_endpoint": ("http://a:4317", "https://b", "http://c"),
    }


DECLARED = sorted(option.name or "" for option in SETTINGS)
# These have tests of their own.
OTHERS = {"config", "model", "api_key_file", "allowed_media_domains", "allowed_origins"}
OTHERS |= {"tls_cert", "tls_key", "tls_client_ca"}
SINGLE = [name for name in DECLARED if name not in OTHERS]
# Of `ovchat serve` alone.
OF_SERVE = {"grpc_socket", "egress"}
SWITCHES = ["strict_parameters", "keep_billing_header", "trace_content"]
VALUED = [name for name in SINGLE if name not in SWITCHES]


def written(value: str) -> str:
    """As it is in TOML."""
    return value if re.fullmatch(r"[0-9.]+", value) and value.count(".") < 2 else repr(value)


@pytest.mark.parametrize("name", VALUED)
def test_a_flag_wins_over_the_environment_over_the_file_over_the_default(
    name: str, values: dict[str, tuple[str, str, str]], config: Callable[[str], str]
) -> None:
    flag, environment, file = values[name]
    flags = [f"--{name.replace('_', '-')}", flag]
    env = {f"OVCHAT_{name.upper()}": environment}
    path = ["--config", config(f"[server]\n{name} = {written(file)}")]

    def found(*arguments: str, env: dict[str, str] | None = None) -> str:
        command = "serve" if name in OF_SERVE else "up"
        return str(getattr(run(*MODEL, *arguments, env=env, command=command), name))

    assert found() not in values[name]
    assert found(*path) == file
    assert found(*path, env=env) == environment
    assert found(*path, *flags, env=env) == flag
    assert found(*flags, *path) == flag


@pytest.mark.parametrize("name", SWITCHES)
def test_a_switch_turns_on_and_off_from_every_source(
    name: str, config: Callable[[str], str]
) -> None:
    flag = name.replace("_", "-")
    variable = f"OVCHAT_{name.upper()}"
    path = ["--config", config(f"[server]\n{name} = true")]
    assert getattr(run(*MODEL), name) is False
    assert getattr(run(*MODEL, *path), name) is True
    assert getattr(run(*MODEL, *path, env={variable: "false"}), name) is False
    assert getattr(run(*MODEL, env={variable: "true"}), name) is True
    assert getattr(run(*MODEL, env={variable: "1"}), name) is True
    assert getattr(run(*MODEL, f"--{flag}"), name) is True
    assert getattr(run(*MODEL, f"--no-{flag}", *path, env={variable: "true"}), name) is False
    off = config(f"[server]\n{name} = false")
    assert getattr(run(*MODEL, "--config", off), name) is False


def test_without_anything_the_defaults_hold() -> None:
    settings = run(*MODEL, env={"XDG_CACHE_HOME": "/var/cache"})
    assert {name: getattr(settings, name) for name in SINGLE} == {
        "host": "127.0.0.1",
        "grpc_port": 9000,
        "grpc_socket": None,
        "egress": None,
        "rest_port": 8000,
        "admin_port": 0,
        "envoy_path": None,
        "replicas": 1,
        "drain_timeout": 30.0,
        "liveness_timeout": 15.0,
        "request_timeout": 3600.0,
        "idle_timeout": 300.0,
        "max_request_bytes": 8 << 20,
        "max_concurrent_streams": 1000,
        "strict_parameters": False,
        "keep_billing_header": False,
        "allowed_local_media_path": None,
        "cache_dir": Path("/var/cache/ovchat"),
        "log_level": "info",
        "log_format": "auto",
        "metrics_host": "127.0.0.1",
        "metrics_port": 9464,
        "otlp_traces_endpoint": None,
        "trace_content": False,
    }


def test_a_vision_model_leaves_room_for_images_unless_the_bound_is_given() -> None:
    sees = ("--model", f"sees={ROOT / 'models/demo-vision'}")
    assert run(*MODEL, *sees).max_request_bytes == 32 << 20
    assert run(*MODEL, *sees, "--max-request-bytes=1024").max_request_bytes == 1024


def test_numbers_in_the_file_are_numbers(config: Callable[[str], str]) -> None:
    path = config("[server]\ngrpc_port = 7\ndrain_timeout = 1\n")
    settings = run(*MODEL, "--config", path)
    assert (settings.grpc_port, settings.drain_timeout) == (7, 1.0)


def test_the_config_file_may_come_from_the_environment(config: Callable[[str], str]) -> None:
    path = config("[server]\ngrpc_port = 7\n")
    assert run(*MODEL, env={"OVCHAT_CONFIG": path}).grpc_port == 7


def test_models_come_from_flags_and_the_environment() -> None:
    settings = run("--model", "a=x", "--model", "org/b=y=z")
    assert [(model.name, model.path) for model in settings.models] == [
        ("a", Path("x")),
        ("org/b", Path("y=z")),
    ]
    assert [model.name for model in run(env={"OVCHAT_MODEL": "a=x b=y"}).models] == ["a", "b"]


def test_a_table_says_all_about_a_model(config: Callable[[str], str]) -> None:
    path = config(
        """
        [[models]]
        name = "a"
        path = "m/a"
        device = "GPU.0"
        kv_cache_gb = 2
        max_num_batched_tokens = 256
        max_step_seconds = 0.5
        properties = { INFERENCE_PRECISION_HINT = "f32", X = 1, Y = true }
        [[models]]
        name = "b"
        path = "/m/b"
        kv_blocks = 4
        """
    )
    assert run("--config", path).models == (
        ModelSettings(
            name="a",
            path=Path(path).parent / "m/a",
            device="GPU.0",
            kv_cache_gb=2,
            max_num_batched_tokens=256,
            max_step_seconds=0.5,
            properties={"INFERENCE_PRECISION_HINT": "f32", "X": 1, "Y": True},
        ),
        ModelSettings(name="b", path=Path("/m/b"), kv_blocks=4),
    )


def test_a_flag_replaces_the_files_model_of_that_name(config: Callable[[str], str]) -> None:
    path = config('[[models]]\nname = "a"\npath = "x"\nkv_blocks = 9\n')
    settings = run("--config", path, "--model", "a=y", "--model", "b=z")
    assert settings.models == (
        ModelSettings(name="a", path=Path("y")),
        ModelSettings(name="b", path=Path("z")),
    )


def test_a_path_in_the_file_is_relative_to_the_file(
    config: Callable[[str], str], tmp_path: Path
) -> None:
    (tmp_path / "envoy").touch()
    path = config('[server]\nenvoy_path = "envoy"\n[[models]]\nname = "a"\npath = "m"\n')
    settings = run("--config", path)
    assert settings.envoy_path == tmp_path / "envoy"
    assert settings.models[0].path == tmp_path / "m"


def server(arguments: Sequence[str], **env: str) -> Settings:
    return run(*arguments, env=env, command="serve")


@pytest.mark.parametrize("source", ["flags", "environment", "file"])
def test_arguments_give_a_server_the_same_settings(
    source: str, values: dict[str, tuple[str, str, str]], config: Callable[[str], str]
) -> None:
    # It names its own egress listener, if there are providers.
    del values["egress"]
    table = [f"{name} = {written(given[2])}\n" for name, given in values.items()]
    if source != "file":
        table = []
    path = config(
        "".join(["[server]\n", *table, '[[models]]\nname = "a"\npath = "m"\nkv_blocks = 9\n'])
    )
    flags = [
        f"--{name.replace('_', '-')}={given[0]}"
        for name, given in values.items()
        if name != "grpc_socket"
    ]
    env = {f"OVCHAT_{name.upper()}": given[1] for name, given in values.items()}
    given = run(
        *("--config", path, "--model", "b=x=y"),
        *(flags if source == "flags" else []),
        env=env if source == "environment" else None,
    )
    arguments = arguments_of(CATCH["options"])
    of_up: dict[str, Any] = {"rest_port": 0, "admin_port": 0, "liveness_timeout": 0}
    first = dataclasses.replace(given, envoy_path=None, **of_up)
    assert server(arguments) == first
    # Nothing else may change what was decided once.
    assert server(arguments, OVCHAT_GRPC_PORT="55", OVCHAT_GRPC_SOCKET="@x") == first
    # One of several has a socket.
    assert server([*arguments, "--grpc-socket=@1"]).grpc_socket == "@1"


def test_a_flag_for_the_port_wins_over_a_socket(config: Callable[[str], str]) -> None:
    path = config('[server]\ngrpc_socket = "@x"\n')
    for socket in ({"OVCHAT_GRPC_SOCKET": "@x"}, {"OVCHAT_CONFIG": path}):
        assert server(MODEL, **socket).grpc_socket == "@x"
        assert server([*MODEL, "--grpc-port=1"], **socket).grpc_socket is None


@pytest.mark.parametrize("given", [["--strict-parameters"], ["--no-strict-parameters"], []])
def test_arguments_give_a_server_the_same_switches(given: list[str]) -> None:
    first = run(*MODEL, *given)
    arguments = arguments_of(CATCH["options"])
    for value in ("true", "false"):
        found = server(arguments, OVCHAT_STRICT_PARAMETERS=value)
        assert found.strict_parameters == first.strict_parameters


@pytest.mark.parametrize("name", ["up", "serve"])
def test_help_shows_the_options_of_a_command_with_the_word_for_a_value(name: str) -> None:
    output = CliRunner().invoke(main, [name, "--help"]).output
    for setting in SETTINGS:
        switch = isinstance(setting.kind, Switch)
        line = setting.opts[0] if switch else f"{setting.opts[0]} {setting.kind.name}"
        assert (line in output) == (name in setting.commands)
    assert "--servers" not in output


@pytest.mark.parametrize(
    ("line", "completions"),
    [
        ("ovchat ser", ["plain,serve"]),
        ("ovchat up --rest", ["plain,--rest-port"]),
        ("ovchat up unexpected --rest", ["plain,--rest-port"]),
        ("ovchat serve --log-level w", ["plain,warning"]),
        ("ovchat serve --config x", ["file,x"]),
        ("ovchat to", ["plain,top"]),
        ("ovchat top 127.0.0.1:9000 --in", ["plain,--interval"]),
    ],
)
def test_a_shell_completes_commands_options_and_values(line: str, completions: list[str]) -> None:
    env = {"_OVCHAT_COMPLETE": "bash_complete", "COMP_WORDS": line}
    env["COMP_CWORD"] = str(len(line.split()) - 1)
    result = CliRunner().invoke(main, env=env, prog_name="ovchat")
    assert result.output.splitlines() == completions


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_the_script_of_a_shell(shell: str) -> None:
    result = CliRunner().invoke(main, ["completion", shell])
    assert f"_OVCHAT_COMPLETE={shell}_complete" in result.output


@pytest.mark.parametrize(("model", "demo"), [([], True), (MODEL, False)])
def test_up_without_a_model_serves_the_demo(model: Sequence[str], *, demo: bool) -> None:
    # It says so before it finds the port wrong, and nothing is started.
    command = [sys.executable, "-m", "ovchat_server", "up", "--grpc-port=0", *model]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "--grpc-port 0 is for" in ended.stderr
    assert ("no model is given: serving the demo model" in ended.stderr) == demo


def test_the_version_is_told_with_the_name_of_the_program() -> None:
    result = CliRunner().invoke(main, ["--version"], prog_name="python -m ovchat_server")
    assert result.output == f"ovchat, version {version('ovchat')}\n"


def test_help_cuts_no_command_off() -> None:
    output = CliRunner().invoke(main, ["--help"]).output
    assert "..." not in output.partition("Commands:")[2]


def test_the_tests_know_every_option(values: dict[str, Any]) -> None:
    assert sorted([*values, *SWITCHES]) == SINGLE


def test_api_keys_are_the_lines_of_a_file(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("# ours\nsk-1\n\n  sk-2 \n")
    assert run(*MODEL).api_keys == ()
    assert run(*MODEL, "--api-key-file", str(keys)).api_keys == api_keys("sk-1", "sk-2")
    assert run(*MODEL, env={"OVCHAT_API_KEY_FILE": str(keys)}).api_keys == api_keys("sk-1", "sk-2")


def test_domains_are_separated_by_commas_or_an_array(config: Callable[[str], str]) -> None:
    def found(*arguments: str, **env: str) -> tuple[str, ...]:
        return run(*MODEL, *arguments, env=env).allowed_media_domains

    variable = {"OVCHAT_ALLOWED_MEDIA_DOMAINS": "c.example"}
    path = ["--config", config('[server]\nallowed_media_domains = ["a.example", "[::1]:1"]')]
    assert found() == ()
    assert found(*path) == ("a.example", "[::1]:1")
    assert found(*path, **variable) == ("c.example",)
    assert found("--allowed-media-domains", "d.example, e.example:8443", **variable) == (
        "d.example",
        "e.example:8443",
    )
    told = arguments_of(CATCH["options"])
    assert server(told, **variable).allowed_media_domains == ("d.example", "e.example:8443")
    found("--allowed-media-domains=", **variable)
    assert server(arguments_of(CATCH["options"]), **variable).allowed_media_domains == ()


def test_origins_are_as_browsers_send_them(config: Callable[[str], str]) -> None:
    path = ["--config", config('[server]\nallowed_origins = ["https://a.example", "app://b"]')]
    assert run(*MODEL).allowed_origins == ()
    assert run(*MODEL, *path).allowed_origins == ("https://a.example", "app://b")
    given = "http://localhost:3000, http://[::1]:8080,*"
    found = run(*MODEL, "--allowed-origins", given).allowed_origins
    assert found == ("http://localhost:3000", "http://[::1]:8080", "*")


@pytest.mark.parametrize(
    "wrong",
    [
        "a.example",
        "https://a.example/",
        "https://A.example",
        "https://a.example:443",
        "http://a.example:80",
        "https://*.example",
        "https://a.example\n",
        "null",
    ],
)
def test_an_origin_that_no_browser_sends_is_refused_by_name(
    wrong: str, config: Callable[[str], str]
) -> None:
    made = ServerCommand("up", callback=catch)
    path = config(f"[server]\nallowed_origins = [{wrong!r}]".replace("'", '"'))
    result = CliRunner().invoke(made, [*MODEL, "--config", path])
    assert result.exit_code == 2
    assert "allowed_origins" in result.output
    assert "as browsers send them" in result.output


def test_the_limits_table_moves_bounds_and_keeps_the_others(config: Callable[[str], str]) -> None:
    path = config("[limits]\nmax_messages = 5\nmax_json_depth = 20\n")

    limits = run(*MODEL, "--config", path).limits

    assert limits == Limits(max_messages=5, max_json_depth=20)
    assert run(*MODEL).limits == Limits()


def test_a_table_bounds_the_stored_responses(config: Callable[[str], str]) -> None:
    path = config("[stored_responses]\nmax_count = 0\nmax_age = 60\n")

    stored = run(*MODEL, "--config", path).stored_responses

    assert stored == StoredResponsesSettings(max_count=0, max_age=60)
    assert run(*MODEL).stored_responses == StoredResponsesSettings()


def test_a_provider_has_what_its_name_stands_for_and_what_the_file_says(
    config: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    path = config(
        """
        [[providers]]
        name = "openai"
        models = ["gpt-*"]
        [[providers]]
        name = "ollama"
        base_url = "https://ollama.example/v1"
        ca_file = "ovchat.toml"
        """
    )
    settings = run("--config", path)
    assert settings.models == ()
    # As with a vision model.
    assert settings.max_request_bytes == 32 << 20
    assert settings.providers == (
        ProviderSettings(
            name="openai",
            base_url="https://api.openai.com/v1",
            api_key_env="OPENAI_API_KEY",
            max_tokens_field="max_completion_tokens",
            models=("gpt-*",),
        ),
        ProviderSettings(name="ollama", base_url="https://ollama.example/v1", ca_file=Path(path)),
    )
    served = server([*arguments_of(CATCH["options"]), "--egress=@x"])
    assert (served.providers, served.egress) == (settings.providers, "@x")
