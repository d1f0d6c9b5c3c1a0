"""What a person sees first after a mistake: where it is, what is allowed, what was given."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from ovchat_server.cli import main
from tests.conftest import ROOT
from tests.unit.mistakes import (
    ALIAS_TABLES,
    FLAGS,
    LIMITS,
    MODEL_KEYS,
    MODEL_TABLES,
    PATHS,
    PROVIDER_TABLES,
    ROUTE_TABLES,
    SERVER,
    TABLE,
    VARIABLES,
    Mistake,
    file,
    flags,
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Has models, and what people take for models."""
    place = tmp_path_factory.mktemp("place")
    for name in ("models/demo", "no-weights", "no-tokenizer", "lfs"):
        shutil.copytree(ROOT / "models/demo", place / name)
    (place / "no-weights/openvino_model.bin").unlink()
    (place / "no-tokenizer/tokenizer.json").unlink()
    (place / "lfs/openvino_model.bin").write_text("version https://git-lfs.github.com/spec/v1\n")
    shutil.copytree(ROOT / "models/demo", place / "no-embeddings")
    for name in ("xml", "bin"):
        graph = place / f"no-embeddings/openvino_model.{name}"
        graph.rename(graph.with_name(f"openvino_language_model.{name}"))
    for name in ("nothing", "hf", "gguf"):
        (place / name).mkdir()
    for name in ("empty", "serve.toml", "hf/model.safetensors", "gguf/x.gguf"):
        (place / name).touch()
    (place / "spaces").write_text("# our keys\nsk-1\nsk-2 is mine\n")
    (place / "only comments").write_text("# none\n\n")
    (place / "binary").write_bytes(b"\xff\xfe")
    return place


@pytest.fixture(autouse=True)
def nothing_starts(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_: object) -> None:
        pytest.fail("it started")

    monkeypatch.chdir(place)
    monkeypatch.setattr("ovchat_server.cli._end_on_ctrl_c", start)


def first_lines(mistake: Mistake) -> list[str]:
    arguments = [mistake.command, *mistake.arguments]
    if mistake.file is not None:
        Path("serve.toml").write_text(mistake.file)
        arguments += ["--config", "serve.toml"]
    result = CliRunner().invoke(main, arguments, env=mistake.environment)
    assert result.exit_code == mistake.code, result.output
    return result.output.splitlines()


@pytest.mark.parametrize(
    "mistake",
    [
        *FLAGS,
        *VARIABLES,
        *SERVER,
        *LIMITS,
        *MODEL_TABLES,
        *PROVIDER_TABLES,
        *ROUTE_TABLES,
        *ALIAS_TABLES,
        *PATHS,
    ],
    ids=lambda mistake: mistake.says,
)
def test_the_first_line_is_the_fault(mistake: Mistake) -> None:
    assert first_lines(mistake)[0] == f"Error: {mistake.says}"


def test_a_key_after_a_value_of_several_lines_has_its_line() -> None:
    text = f'{TABLE}properties = {{}}\n\n[limits]\n[server]\nhost = """\n::\n"""\nport = 1\n'
    [line] = first_lines(file("", text))
    assert line == "Error: serve.toml:11: [server] has no option 'port'; did you mean rest_port?"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            "kv_blocks = 9\nkv_cache_gb = 1",
            "kv_blocks and kv_cache_gb both set the KV cache's size: set one",
        ),
        (
            'speculation = "draft"',
            'speculation = "draft" takes a model that drafts: set draft_model to its folder',
        ),
        (
            'kv_cache_precision = "u8"\nproperties = { KV_CACHE_PRECISION = "u4" }',
            "kv_cache_precision and KV_CACHE_PRECISION in properties are the same: set one",
        ),
        (
            'speculation = "lookup"\ndraft_model = "models/demo"',
            'draft_model has no effect: set speculation = "draft", or leave it out',
        ),
    ],
)
def test_options_that_contradict_are_told_with_the_line_of_their_table(
    options: str, says: str
) -> None:
    [line] = first_lines(file("", f"\n{TABLE}{options}"))
    assert line == f"Error: serve.toml:2: [[models]] 'demo': {says}"


def test_after_a_mistake_in_flags_one_line_tells_where_they_are_listed() -> None:
    assert first_lines(flags("", "--restport=1"))[1:] == ["`main up --help` lists the options."]
    assert first_lines(flags("", command="start"))[1:] == ["`main --help` lists the commands."]


@pytest.mark.parametrize("mistake", [*VARIABLES, *SERVER, *PATHS], ids=lambda mistake: mistake.says)
def test_after_another_mistake_nothing_follows(mistake: Mistake) -> None:
    assert len(first_lines(mistake)) == 1


def test_keys_of_a_file_are_checked_whichever_command_they_are_of() -> None:
    text = f"{TABLE}[server]\nreplicas = 0\n"
    [line] = first_lines(Mistake("", file=text, command="serve"))
    assert "[server]: replicas must be" in line


@pytest.mark.parametrize(("line", "says"), MODEL_KEYS.items())
def test_a_wrong_key_of_a_model_is_told_with_its_line(line: str, says: str) -> None:
    lines = first_lines(file(f":4: [[models]] 'demo'{says}", f"{TABLE}{line}\n"))
    assert lines == [f"Error: serve.toml:4: [[models]] 'demo'{says}"]
