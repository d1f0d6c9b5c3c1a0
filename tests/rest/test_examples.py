"""The examples of the README and of docs/ run as they stand.

Examples that cannot run here have no language, or `text`.
"""

from __future__ import annotations

import re
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import ROOT, model_settings
from tests.pooling_folders import folder_settings
from tests.rest.conftest import running_stack
from tests.rest.examples import likeliest, run, run_commands, run_python

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ovchat_server.settings import ModelSettings
    from tests.rest.conftest import Stack

SCRIPTS = Path(sysconfig.get_path("scripts"))
# What the examples of each page say, in their order.
EXPECTED = {
    "README.md": [
        "Paris",
        "A red square.",
        "1, 2, 3",
        "Tokyo",
        "For Rome, the temperature is 21",
        "name='Anna' age=31",
    ],
    "docs/clients.md": [
        "42",
        "1, 2, 3",
        "2 ",
        "For Rome, the temperature is 21",
        "I",
        "For Rome, the temperature is 21",
    ],
    "docs/embeddings.md": [
        "A feline rests on a rug.",
        '"object":"embedding"',
        '"promptTokens": 3',
        # Two vectors, of as many numbers as the model has that is asked here.
        "[32, 32] 18",
        "2 vectors as long as the query's: True",
        "Paris is the capital of France.",
        '"score":',
        '"max_model_len":',
    ],
    "docs/grpc.md": [
        "1, 2, 3",
        "FINISH_REASON_STOP",
        "Tokyo",
        "A red square.\n65 tokens of the image",
        '"totalKvBlocks": ',
        "0 0 of ",
        "tokens generated",
    ],
    "docs/messages.md": ["Paris", '"input_tokens":'],
    "docs/metrics.md": ["vllm:num_requests_waiting{"],
    "docs/operations.md": ['"total_kv_blocks":'],
    "docs/responses.md": ["Paris", '"input_tokens":'],
    "docs/rest.md": [
        "data: [DONE]",
        "A red square.",
        '"openvino_genai":',
        '"model":"openvino/demo"',
        '{"prompt":"Hello there"}',
        "MODEL_STATE_READY",
    ],
    "docs/start.md": ["Rome"],
    "docs/structured-output.md": ["name='Anna' age=31", r"\"age\": 31}", '"content":"Rome"'],
    "docs/tools.md": [r'"arguments":"{\"city\": \"Paris\"}"'],
}
# Of a server of its own: test_tls_examples.py.
OTHERS = {"docs/tls.md"}
DOCS = {str(path.relative_to(ROOT)) for path in ROOT.glob("docs/*.md")}
PAGES = ["README.md", *sorted(DOCS - OTHERS)]
BLOCKS = {
    page: re.findall(
        r"^```(bash|python|javascript)\n(.*?)^```",
        (ROOT / page).read_text(),
        re.MULTILINE | re.DOTALL,
    )
    for page in PAGES
}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, demo: ModelSettings) -> Iterator[Stack]:
    """What `make run` serves, but for chance: the examples leave the temperature out."""
    folder = tmp_path_factory.mktemp("models")
    models = [likeliest(item, folder / item.name) for item in (demo, model_settings("demo-vision"))]
    # In place of the real one, which may not be there.
    minilm = folder_settings("bert", "minilm")
    with running_stack(tmp_path_factory.mktemp("stack"), *models, minilm) as it:
        yield it


def examples(*languages: str) -> list[Any]:
    return [
        pytest.param(page, number, id=f"{page}-{number}")
        for page, blocks in BLOCKS.items()
        for number, (language, _) in enumerate(blocks)
        if language in languages
    ]


def adapted(code: str, stack: Stack) -> str:
    code = code.replace(":8000", f":{stack.rest_port}").replace(":9000", f":{stack.grpc_port}")
    code = code.replace(":9464", f":{stack.metrics_port}")
    code = code.replace(".venv/bin", str(SCRIPTS))
    # A model that takes longer to load; tests/launch/test_gguf.py asks it the same.
    return code.replace('"smollm2"', '"demo"')


@pytest.mark.parametrize("page", PAGES)
def test_every_example_has_an_expectation(page: str) -> None:
    assert len(BLOCKS[page]) == len(EXPECTED.get(page, []))


@pytest.mark.parametrize(("page", "number"), examples("bash"))
def test_a_command_works_as_typed(stack: Stack, page: str, number: int) -> None:
    code = adapted(BLOCKS[page][number][1], stack)

    assert EXPECTED[page][number] in run_commands(code)


@pytest.fixture(scope="module")
def python_outputs(stack: Stack) -> dict[tuple[str, int], tuple[str, str]]:
    """What each Python example prints, and its traceback."""
    keys = [tuple(param.values) for param in examples("python")]
    ended = run_python([adapted(BLOCKS[page][number][1], stack) for page, number in keys])
    return dict(zip(keys, ended, strict=True))


@pytest.mark.parametrize(("page", "number"), examples("python"))
def test_a_python_program_works_as_typed(
    python_outputs: dict[tuple[str, int], tuple[str, str]], page: str, number: int
) -> None:
    output, error = python_outputs[page, number]

    assert not error, error
    assert EXPECTED[page][number] in output


# Needs the SDK for Node, which only `make test-all` installs.
@pytest.mark.slow
@pytest.mark.parametrize(("page", "number"), examples("javascript"))
def test_a_node_program_works_as_typed(
    stack: Stack, tmp_path: Path, page: str, number: int
) -> None:
    (tmp_path / "node_modules").symlink_to(ROOT / "tests/rest/node/node_modules")
    file = tmp_path / "x.mjs"
    file.write_text(adapted(BLOCKS[page][number][1], stack))

    assert EXPECTED[page][number] in run(SCRIPTS / "node", file)
