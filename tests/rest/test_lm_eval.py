"""lm-eval with the server's tokenizer, in an environment of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.rest.conftest import running_stack
from tests.rest.programs import python_of, what_it_saw

if TYPE_CHECKING:
    from ovchat_server.settings import ModelSettings

# The first time, it is installed.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory, demo: ModelSettings) -> Any:
    """The metrics of its tasks; its tokenizer names no model, so there is one."""
    python_of("lmeval")
    with running_stack(tmp_path_factory.mktemp("stack"), demo) as stack:
        return what_it_saw("lmeval", stack)


def test_it_has_texts_tokenized_and_continued(seen: Any) -> None:
    assert seen["written"] == 1


def test_it_compares_how_likely_ends_of_a_text_are(seen: Any) -> None:
    assert seen["chosen"] == 1
