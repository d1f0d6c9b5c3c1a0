from __future__ import annotations

from typing import TYPE_CHECKING

import openai
import pytest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.rest.conftest import Stack


@pytest.fixture
async def fresh_sdk(stack: Stack, only_local: None) -> AsyncIterator[openai.AsyncOpenAI]:  # noqa: ARG001
    """A client without open connections, so that `only_local` sees where it goes."""
    url = f"{stack.url}/v3"
    async with openai.AsyncOpenAI(base_url=url, api_key="unused", max_retries=0) as client:
        yield client
