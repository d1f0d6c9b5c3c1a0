"""Options: one declaration, four sources, and words that help where a value is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest
from click.testing import CliRunner

from ovchat_server.api.limits import Limits
from ovchat_server.cli import main
from ovchat_server.options import arguments_of, settings_from, with_options
from ovchat_server.settings import ModelSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.settings import Settings

MODEL = ("--model", "demo=models/demo")
CATCH: dict[str, Any] = {}


@click.command()
@with_options
def command(**options: Any) -> None:
    CATCH["options"] = options
    CATCH["settings"] = settings_from(options)


def run(*arguments: str, env: dict[str, str] | None = None) -> Settings:
    result = CliRunner().invoke(command, arguments, env=env)
    assert result.exit_code == 0, result.output
    settings: Settings = CATCH["settings"]
    return settings


def complaint(*arguments: str, env: dict[str, str] | None = None) -> str:
    result = CliRunner().invoke(command, arguments, env=env)
    assert result.exit_code == 2, result.exception
    return result.output


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
        "rest_port": ("4", "5", "6"),
        "admin_port": ("7", "8", "9"),
        "envoy_path": (str(tmp_path / "x"), str(tmp_path / "y"), str(tmp_path / "z")),
        "replicas": ("2", "3", "4"),
        "drain_timeout": ("1.5", "2.5", "0.0"),
        "request_timeout": ("1.5", "2.5", "0.0"),
        "idle_timeout": ("1.5", "2.5", "0.0"),
        "max_request_bytes": ("1024", "2048", "4096"),
        "max_concurrent_streams": ("1", "2", "3"),
        "cache_dir": (str(tmp_path / "x1"), str(tmp_path / "y1"), str(tmp_path / "z1")),
        "log_level": ("debug", "warning", "error"),
        "log_format": ("json", "text", "json"),
    }


DECLARED = sorted(option.name or "" for option in command.params)
SINGLE = [name for name in DECLARED if name not in {"config", "model", "api_key_file"}]
SWITCHES = ["strict_parameters"]
VALUED = [name for name in SINGLE if name not in SWITCHES]


def shown(settings: Settings, name: str) -> str:
    return str(getattr(settings, name))


@pytest.mark.parametrize("name", VALUED)
def test_a_flag_wins_over_the_environment_over_the_file_over_the_default(
    name: str, values: dict[str, tuple[str, str, str]], config: Callable[[str], str]
) -> None:
    flag, environment, file = values[name]
    flags = [f"--{name.replace('_', '-')}", flag]
    env = {f"OVCHAT_{name.upper()}": environment}
    path = ["--config", config(f"[server]\n{name} = {file!r}")]
    default = shown(run(*MODEL), name)
    assert default not in values[name]
    assert shown(run(*MODEL, *path), name) == file
    assert shown(run(*MODEL, *path, env=env), name) == environment
    assert shown(run(*MODEL, *path, *flags, env=env), name) == flag
    assert shown(run(*MODEL, *flags, *path), name) == flag


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
        "rest_port": 8000,
        "admin_port": 0,
        "envoy_path": None,
        "replicas": 1,
        "drain_timeout": 30.0,
        "request_timeout": 3600.0,
        "idle_timeout": 300.0,
        "max_request_bytes": 8 << 20,
        "max_concurrent_streams": 1000,
        "strict_parameters": False,
        "cache_dir": Path("/var/cache/ovchat"),
        "log_level": "info",
        "log_format": "auto",
    }


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


MODEL_TABLE = '[[models]]\nname = "a"\npath = "m"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[server", ["is not TOML"]),
        ("[sever]", ["'sever'"]),
        ("server = 5", ["server must be a table"]),
        ("models = 5", ["models", "array"]),
        ("[server]\nport = 1", ["[server] has no option 'port'"]),
        ("[server]\ngrpc-port = 1", ["[server] has no option 'grpc-port'"]),
        ('[server]\nmodel = "a=b"', ["[server] has no option 'model'"]),
        ('[server]\nconfig = "x"', ["[server] has no option 'config'"]),
        ('[server]\ngrpc_port = "x"', ["--grpc-port", "'x'"]),
        ("[server]\ngrpc_port = 65536", ["--grpc-port", "65536"]),
        ("[server]\ngrpc_port = true", ["grpc_port", "True"]),
        ('[server]\nhost = ["a"]', ["host", "['a']"]),
        ('[server]\nstrict_parameters = "true"', ["strict_parameters", "true or false", "'true'"]),
        ("[server]\nstrict_parameters = 1", ["strict_parameters", "true or false", "got 1"]),
        ("[server]\ndrain_timeout = -1", ["--drain-timeout", "-1"]),
        ("[server]\ndrain_timeout = nan", ["--drain-timeout", "nan"]),
        ("[server]\nrequest_timeout = nan", ["--request-timeout", "nan"]),
        ("[server]\nidle_timeout = inf", ["--idle-timeout", "inf"]),
        ("[server]\ndrain_timeout = inf", ["--drain-timeout", "inf"]),
        ('[server]\nenvoy_path = "nowhere"', ["--envoy-path", "nowhere"]),
        (MODEL_TABLE + "color = 1", ["models", "`color`"]),
        ('[[models]]\npath = "m"', ["models", "`name`"]),
        ('[[models]]\nname = "a"', ["models", "`path`"]),
        ('[[models]]\nname = "a"\npath = 5', ["models", "path", "5"]),
        ('[[models]]\nname = "a b"\npath = "m"', ["models", "'a b'"]),
        ('[[models]]\nname = ""\npath = "m"', ["models", "''"]),
        (MODEL_TABLE + 'weights = "int4"', ["models", "weights", "int4"]),
        (MODEL_TABLE + "kv_blocks = 3", ["models", "kv_blocks", "3"]),
        (MODEL_TABLE + "kv_cache_gb = 0", ["models", "kv_cache_gb", "0"]),
        (MODEL_TABLE + "kv_blocks = 9\nkv_cache_gb = 1", ["kv_blocks and kv_cache_gb"]),
        (MODEL_TABLE + "max_num_batched_tokens = 0", ["max_num_batched_tokens"]),
        (MODEL_TABLE + "max_step_seconds = -1", ["max_step_seconds", "-1"]),
        (MODEL_TABLE + "max_step_seconds = inf", ["max_step_seconds", "inf"]),
        (MODEL_TABLE + 'kv_blocks = "x"', ["models", "kv_blocks"]),
        (MODEL_TABLE + "properties = { A = [1] }", ["models", "properties"]),
        (MODEL_TABLE + "max_queue = 0", ["max_queue", "at least 1"]),
        (MODEL_TABLE + "max_queue_wait = nan", ["max_queue_wait", "nan"]),
        (MODEL_TABLE + "step_timeout = 0", ["step_timeout", "above 0"]),
        (MODEL_TABLE * 2, ["two models are called 'a'"]),
    ],
)
def test_what_is_wrong_in_the_file_is_named(
    config: Callable[[str], str], text: str, words: list[str]
) -> None:
    output = complaint(*MODEL, "--config", config(text))
    assert all(word in output for word in words), output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["no model to serve", "--model NAME=PATH"]),
        (["--model", "demo"], ["'demo' is not NAME=PATH"]),
        (["--model", "demo="], ["'demo=' is not NAME=PATH"]),
        (["--model", "a b=x"], ["'a b'"]),
        (["--model", "=x"], ["''"]),
        (["--config", "/nowhere.toml"], ["--config", "/nowhere.toml"]),
        ([*MODEL, "--grpc-port", "x"], ["--grpc-port", "x"]),
        ([*MODEL, "--rest-port", "-1"], ["--rest-port", "-1"]),
        ([*MODEL, "--max-request-bytes", "1"], ["--max-request-bytes", "1"]),
        ([*MODEL, "--log-level", "loud"], ["--log-level", "loud"]),
        ([*MODEL, "--prot", "1"], ["--prot"]),
        ([*MODEL, "--strict-parameters=1"], ["--strict-parameters"]),
    ],
)
def test_what_is_wrong_on_the_command_line_is_named(arguments: list[str], words: list[str]) -> None:
    output = complaint(*arguments)
    assert all(word in output for word in words), output


def test_what_is_wrong_in_the_environment_is_named() -> None:
    assert "OVCHAT_GRPC_PORT" in complaint(*MODEL, env={"OVCHAT_GRPC_PORT": "x"})
    output = complaint(*MODEL, env={"OVCHAT_STRICT_PARAMETERS": "perhaps"})
    assert "OVCHAT_STRICT_PARAMETERS" in output


@pytest.mark.parametrize("source", ["flags", "environment", "file"])
def test_arguments_give_another_command_the_same_settings(
    source: str, values: dict[str, tuple[str, str, str]], config: Callable[[str], str]
) -> None:
    path = config(
        "".join(
            ["[server]\n"]
            + [f"{name} = {given[2]!r}\n" for name, given in values.items() if source == "file"]
            + ['[[models]]\nname = "a"\npath = "m"\nkv_blocks = 9\n']
        )
    )
    flags = [f"--{name.replace('_', '-')}={given[0]}" for name, given in values.items()]
    env = {f"OVCHAT_{name.upper()}": given[1] for name, given in values.items()}
    first = run(
        *("--config", path, "--model", "b=x=y"),
        *(flags if source == "flags" else []),
        env=env if source == "environment" else None,
    )
    arguments = arguments_of(CATCH["options"])
    assert run(*arguments) == first
    # Nothing else may change what was decided once.
    assert run(*arguments, env={"OVCHAT_GRPC_PORT": "55", "OVCHAT_HOST": "elsewhere"}) == first


@pytest.mark.parametrize("given", [["--strict-parameters"], ["--no-strict-parameters"], []])
def test_arguments_give_another_command_the_same_switches(given: list[str]) -> None:
    first = run(*MODEL, *given)
    arguments = arguments_of(CATCH["options"])
    assert run(*arguments) == first
    for value in ("true", "false"):
        assert run(*arguments, env={"OVCHAT_STRICT_PARAMETERS": value}) == first


@pytest.mark.parametrize("name", ["up", "serve"])
def test_help_shows_every_option(name: str) -> None:
    output = CliRunner().invoke(main, [name, "--help"]).output
    for option in command.params:
        assert option.opts[0] in output
        assert option.name == "config" or f"OVCHAT_{option.name}".upper() in output


def test_the_tests_know_every_option(values: dict[str, Any]) -> None:
    assert sorted([*values, *SWITCHES]) == SINGLE


def test_api_keys_are_the_lines_of_a_file(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("# ours\nsk-1\n\n  sk-2 \n")
    assert run(*MODEL).api_keys == ()
    assert run(*MODEL, "--api-key-file", str(keys)).api_keys == ("sk-1", "sk-2")
    assert run(*MODEL, env={"OVCHAT_API_KEY_FILE": str(keys)}).api_keys == ("sk-1", "sk-2")


@pytest.mark.parametrize("content", [b"", b"# none\n\n", b"\xff\xfe"])
def test_a_file_without_keys_does_not_open_the_server(tmp_path: Path, content: bytes) -> None:
    keys = tmp_path / "keys"
    keys.write_bytes(content)
    assert "--api-key-file" in complaint(*MODEL, "--api-key-file", str(keys))


def test_the_limits_table_moves_bounds_and_keeps_the_others(config: Callable[[str], str]) -> None:
    path = config("[limits]\nmax_messages = 5\nmax_json_depth = 20\n")

    limits = run(*MODEL, "--config", path).limits

    assert limits == Limits(max_messages=5, max_json_depth=20)
    assert run(*MODEL).limits == Limits()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("max_message = 5", "max_message"),
        ("max_messages = 0", "max_messages must be at least 1"),
        ('max_messages = "many"', "max_messages"),
        ("max_messages = 1.5", "max_messages"),
        ("max_json_depth = 257", "max_json_depth must be at most 256"),
    ],
)
def test_a_limit_that_makes_no_sense_is_named(
    config: Callable[[str], str], text: str, words: str
) -> None:
    assert words in complaint(*MODEL, "--config", config(f"[limits]\n{text}\n"))


def test_limits_are_a_table(config: Callable[[str], str]) -> None:
    assert "limits" in complaint(*MODEL, "--config", config("limits = 5\n"))
