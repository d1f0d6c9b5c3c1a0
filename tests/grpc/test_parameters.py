"""Every parameter of the contract, from the table of cases in tests/parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.protobuf import json_format

from ovchat_server.app import Server
from tests.grpc.conftest import Client, running
from tests.parameters import checks, pooling, values
from tests.parameters.doors import GrpcDoor
from tests.parameters.library import make_library
from tests.parameters.message import contract_names, message

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from ovchat_server.settings import Settings
    from tests.parameters.case import Bound, Effect

# `stream` is a choice of the RPC here.
SERVED, ACCEPTED, REFUSED = (
    [named for named in names if named[1] in contract_names(named[0])]
    for names in (checks.SERVED, checks.ACCEPTED, checks.REFUSED)
)
# JSON as text, numbers of an enum, messages that may be empty: the contract takes more than
# it means, and the server refuses it.
SAYABLE = (
    "chat_template_kwargs",
    "documents",
    "input",
    "input_type",
    "padding_side",
    "prompt",
    "response_format",
    "structured_outputs",
    "tool_choice",
)


def sayable(endpoint: str, request: Iterable[str]) -> bool:
    """Whether the contract has all fields of a request."""
    return {*request} <= contract_names(endpoint) | {"stream"}


def fields_of(bound: Bound) -> set[str]:
    return {*bound.base, bound.name}


EFFECTS = [
    effect for effect in checks.EFFECTS if sayable(effect.endpoint, effect.base | effect.given)
]
INSIDE, OUTSIDE = (
    [case for case in cases if sayable(case.values[0].endpoint, fields_of(case.values[0]))]
    for cases in (checks.INSIDE, checks.OUTSIDE)
)


@pytest.fixture(scope="module")
async def door(
    client: Client,
    make_settings: Callable[..., Settings],
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[GrpcDoor]:
    library_model = make_library(tmp_path_factory.mktemp("library"))
    server = Server(make_settings(library_model, *pooling.MODELS))
    async with running(server) as library:
        yield GrpcDoor(client, library)


@pytest.mark.parametrize("effect", EFFECTS, ids=str)
async def test_it_changes_the_answer_as_documented(door: GrpcDoor, effect: Effect) -> None:
    await checks.check_effect(door, effect)


@pytest.mark.parametrize(("bound", "value"), INSIDE, ids=checks.shown)
async def test_its_bounds_are_accepted(door: GrpcDoor, bound: Bound, value: Any) -> None:
    assert await door.ask(bound.endpoint, {**bound.base, bound.name: value})


@pytest.mark.parametrize(("bound", "value"), OUTSIDE, ids=checks.shown)
async def test_what_is_outside_is_refused(door: GrpcDoor, bound: Bound, value: Any) -> None:
    request = {**bound.base, bound.name: value}
    await checks.check_refused(door, bound.endpoint, bound.name, request)


@pytest.mark.parametrize(("endpoint", "name"), SERVED)
async def test_a_wrong_type_is_refused(door: GrpcDoor, endpoint: str, name: str) -> None:
    for value in checks.wrong_types(endpoint, name):
        request = checks.request_with(endpoint, name, value)
        if name in SAYABLE:
            await checks.check_refused(door, endpoint, name, request)
        else:
            with pytest.raises(json_format.ParseError):
                message(endpoint, request)


@pytest.mark.parametrize(("endpoint", "name"), [*SERVED, *ACCEPTED, *REFUSED])
async def test_null_is_as_if_it_were_absent(door: GrpcDoor, endpoint: str, name: str) -> None:
    request = checks.request_with(endpoint, name, None)
    if name in values.REQUIRED[endpoint] and name != "tokens":
        code = "missing_required_parameter"
        await checks.check_refused(door, endpoint, name, request, code)
    else:
        await checks.check_same_without(door, endpoint, name, request)
    absent = {key: value for key, value in request.items() if key != name}
    assert message(endpoint, request) == message(endpoint, absent)


@pytest.mark.parametrize(("endpoint", "name"), ACCEPTED)
async def test_it_is_accepted_without_effect(door: GrpcDoor, endpoint: str, name: str) -> None:
    request = checks.request_with(endpoint, name, values.ACCEPTED[name][0])
    await checks.check_same_without(door, endpoint, name, request)


@pytest.mark.parametrize(("endpoint", "name"), REFUSED)
async def test_it_is_refused_unless_neutral(door: GrpcDoor, endpoint: str, name: str) -> None:
    refused, neutral = values.REFUSED[name]
    for value in refused:
        request = checks.request_with(endpoint, name, value)
        await checks.check_refused(door, endpoint, name, request, "unsupported_parameter")
    for value in neutral:
        request = checks.request_with(endpoint, name, value)
        await checks.check_same_without(door, endpoint, name, request)
