"""One Envoy for all tests that change nothing of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.rest.envoy.edge import Edge, edge

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture(scope="package")
async def gate(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Edge]:
    async with edge(tmp_path_factory.mktemp("envoy")) as running:
        yield running
