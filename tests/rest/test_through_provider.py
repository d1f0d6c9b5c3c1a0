"""Another ovchat as a provider: each parameter gives the same answer as directly, on both doors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import grpc.aio
import httpx
import pytest

from tests.grpc.conftest import Client
from tests.grpc.test_parameters import EFFECTS as GRPC_EFFECTS
from tests.parameters import checks
from tests.parameters.doors import GrpcDoor, RestDoor
from tests.parameters.library import make_library
from tests.rest.conftest import Stack, running_stack

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tests.parameters.case import Effect
    from tests.parameters.doors import Door

# By the kind of provider that the other ovchat is.
PROVIDERS = {
    "openai": """
[[providers]]
name = "{name}-openai"
base_url = "{server.url}/v1"
vllm_parameters = true
""",
    "ovchat": """
[[providers]]
name = "{name}-ovchat"
kind = "ovchat"
base_url = "http://127.0.0.1:{server.grpc_port}"
""",
}
# What a provider generates, and not this server; the others count tokens here.
GENERATED = ("chat", "text", "responses")
# What Chat Completions cannot say.
REFUSED = {("responses", "truncation")}
# Enough of the table for the gate to see that it goes through; the rest takes a minute.
EACH = 12


@pytest.fixture(scope="module")
def router(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    directory = tmp_path_factory.mktemp("library")
    with running_stack(directory, make_library(directory)) as library:
        tables = "".join(
            table.format(name=name, server=server)
            for table in PROVIDERS.values()
            for name, server in {"house": stack, "library": library}.items()
        )
        with running_stack(tmp_path_factory.mktemp("router"), tables=tables) as router:
            yield router


@dataclass
class ThroughProvider:
    """A door, with models of the providers' in the place of its own."""

    door: Door
    kind: str

    async def ask(self, endpoint: str, fields: dict[str, Any]) -> Any:
        model = fields["model"]
        provider = "library" if model == "library" else "house"
        return await self.door.ask(endpoint, {**fields, "model": f"{provider}-{self.kind}/{model}"})


@pytest.fixture(scope="module")
async def rest(router: Stack) -> AsyncIterator[Door]:
    async with httpx.AsyncClient(base_url=router.url, timeout=None) as http:
        yield RestDoor(http, http)


@pytest.fixture(scope="module")
async def typed(router: Stack) -> AsyncIterator[Door]:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{router.grpc_port}") as channel:
        client = Client(None, channel)  # type: ignore[arg-type]
        yield GrpcDoor(client, client)


def cases(effects: list[Effect]) -> list[Any]:
    generated = [
        effect
        for effect in effects
        if effect.endpoint in GENERATED and (effect.endpoint, effect.name) not in REFUSED
    ]
    return [
        pytest.param(effect, marks=[pytest.mark.slow] if number % EACH else [], id=str(effect))
        for number, effect in enumerate(generated)
    ]


@pytest.mark.parametrize("kind", PROVIDERS)
@pytest.mark.parametrize("effect", cases(checks.EFFECTS))
async def test_a_parameter_changes_the_answer_as_documented(
    rest: Door, kind: str, effect: Effect
) -> None:
    await checks.check_effect(ThroughProvider(rest, kind), effect)


@pytest.mark.parametrize("kind", PROVIDERS)
@pytest.mark.parametrize("effect", cases(GRPC_EFFECTS))
async def test_a_typed_parameter_changes_the_answer_too(
    typed: Door, kind: str, effect: Effect
) -> None:
    await checks.check_effect(ThroughProvider(typed, kind), effect)
