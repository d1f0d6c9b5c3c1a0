"""Readers of requests, for the rules that all kinds of completions share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ovchat_server.domain.errors import InvalidRequestError
from tests.unit.readers import READERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.domain.chat import ChatRequest
    from ovchat_server.domain.errors import Violation
    from ovchat_server.domain.text import TextRequest


@pytest.fixture(params=READERS)
def read(request: pytest.FixtureRequest) -> Callable[..., ChatRequest | TextRequest]:
    return READERS[request.param]


@pytest.fixture
def refused(
    read: Callable[..., ChatRequest | TextRequest],
) -> Callable[..., tuple[Violation, ...]]:
    def refused(**fields: Any) -> tuple[Violation, ...]:
        with pytest.raises(InvalidRequestError) as caught:
            read(**fields)
        return caught.value.violations

    return refused
