"""Every parameter on the REST door, from the table of cases in tests/parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.parameters import checks, pooling, values
from tests.parameters.doors import RestDoor
from tests.parameters.library import make_library
from tests.rest.conftest import running_stack

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.parameters.case import Bound, Effect


@pytest.fixture(scope="module")
async def door(
    http: httpx.AsyncClient, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RestDoor]:
    directory = tmp_path_factory.mktemp("library")
    with running_stack(directory, make_library(directory), *pooling.MODELS) as stack:
        async with httpx.AsyncClient(base_url=stack.url, timeout=None) as library:
            yield RestDoor(http, library)


@pytest.mark.parametrize("effect", checks.EFFECTS, ids=str)
async def test_it_changes_the_answer_as_documented(door: RestDoor, effect: Effect) -> None:
    await checks.check_effect(door, effect)


@pytest.mark.parametrize(("bound", "value"), checks.INSIDE, ids=checks.shown)
async def test_its_bounds_are_accepted(door: RestDoor, bound: Bound, value: Any) -> None:
    assert await door.ask(bound.endpoint, {**bound.base, bound.name: value})


@pytest.mark.parametrize(("bound", "value"), checks.OUTSIDE, ids=checks.shown)
async def test_what_is_outside_is_refused(door: RestDoor, bound: Bound, value: Any) -> None:
    request = {**bound.base, bound.name: value}
    await checks.check_refused(door, bound.endpoint, bound.name, request)


@pytest.mark.parametrize(("endpoint", "name"), checks.SERVED)
async def test_a_wrong_type_is_refused(door: RestDoor, endpoint: str, name: str) -> None:
    for value in checks.wrong_types(endpoint, name):
        request = checks.request_with(endpoint, name, value)
        await checks.check_refused(door, endpoint, name, request, "invalid_type")


@pytest.mark.parametrize(
    ("endpoint", "name"), [named for named in checks.SERVED if named[1] in values.NUMBERS]
)
async def test_true_is_no_number(door: RestDoor, endpoint: str, name: str) -> None:
    # To protobuf's JSON it is 1.
    request = checks.request_with(endpoint, name, value=True)
    await checks.check_refused(door, endpoint, name, request, "invalid_type")


@pytest.mark.parametrize(("endpoint", "name"), [*checks.SERVED, *checks.ACCEPTED, *checks.REFUSED])
async def test_null_is_as_if_it_were_absent(door: RestDoor, endpoint: str, name: str) -> None:
    request = checks.request_with(endpoint, name, None)
    if name in values.REQUIRED[endpoint]:
        code = "missing_required_parameter"
        await checks.check_refused(door, endpoint, name, request, code)
    else:
        await checks.check_same_without(door, endpoint, name, request)


@pytest.mark.parametrize(("endpoint", "name"), checks.ACCEPTED)
async def test_it_is_accepted_without_effect(door: RestDoor, endpoint: str, name: str) -> None:
    for value in values.ACCEPTED[name]:
        request = checks.request_with(endpoint, name, value)
        await checks.check_same_without(door, endpoint, name, request)


@pytest.mark.parametrize(("endpoint", "name"), checks.REFUSED)
async def test_it_is_refused_unless_neutral(door: RestDoor, endpoint: str, name: str) -> None:
    refused, neutral = values.REFUSED[name]
    for value in refused:
        request = checks.request_with(endpoint, name, value)
        await checks.check_refused(door, endpoint, name, request, "unsupported_parameter")
    for value in neutral:
        request = checks.request_with(endpoint, name, value)
        await checks.check_same_without(door, endpoint, name, request)


@pytest.mark.parametrize(("endpoint", "name"), checks.UNKNOWN)
async def test_what_another_endpoint_knows_is_ignored_and_named(
    door: RestDoor, endpoint: str, name: str
) -> None:
    request = {**values.SHORT[endpoint], name: 1}

    response = await door.post(endpoint, request)

    await checks.check_same_without(door, endpoint, name, request)
    assert response.headers["x-ignored-parameters"] == name
