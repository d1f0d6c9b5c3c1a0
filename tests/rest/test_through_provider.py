"""Another ovchat as a provider: each parameter gives the same answer as directly, on both doors."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import grpc.aio
import httpx
import pytest

from ovchat_server.domain.anthropic.reading import read_messages_request
from ovchat_server.domain.chat_request import read_chat_request
from ovchat_server.domain.errors import InvalidRequestError
from ovchat_server.domain.responses.reading import read_responses_request
from ovchat_server.domain.text_request import read_text_request
from ovchat_server.providers.anthropic.kind import AnthropicKind
from tests.certificates import Authority
from tests.grpc.conftest import Client
from tests.grpc.test_parameters import EFFECTS as GRPC_EFFECTS
from tests.parameters import checks
from tests.parameters.doors import GrpcDoor, RestDoor
from tests.parameters.library import make_library
from tests.rest.conftest import Stack, running_stack
from tests.tls_front import tls_front

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ovchat_server.domain.chat import ChatRequest
    from ovchat_server.domain.text import TextRequest
    from tests.parameters.case import Effect
    from tests.parameters.doors import Door

# By the kind of provider that the other ovchat is.
PROVIDERS = {
    "openai": """
[[providers]]
name = "{name}-openai"
base_url = "https://localhost:{rest}/v1"
ca_file = "{authority}"
vllm_parameters = true
""",
    "ovchat": """
[[providers]]
name = "{name}-ovchat"
kind = "ovchat"
base_url = "https://localhost:{grpc}"
ca_file = "{authority}"
""",
    "anthropic": """
[[providers]]
name = "{name}-anthropic"
kind = "anthropic"
base_url = "https://localhost:{rest}/v1"
ca_file = "{authority}"
""",
}
# What a provider generates, and not this server; the others count tokens here.
READ: dict[str, Callable[[dict[str, Any]], ChatRequest | TextRequest]] = {
    "chat": read_chat_request,
    "text": read_text_request,
    "responses": lambda fields: read_responses_request(fields).chat,
    "messages": lambda fields: read_messages_request(fields).chat,
}
# What Chat Completions cannot say.
REFUSED = {("responses", "truncation")}
# What expects reasoning that nobody asked for: with Anthropic, an effort asks for it.
UNREASONED = {
    "chat stop is not looked for in reasoning",
    "chat include_reasoning",
    "chat reasoning_effort",
    "responses stop is not looked for in reasoning",
    "responses reasoning",
}
# Enough of the table for the gate to see that it goes through; the rest takes a minute.
EACH = 12


@pytest.fixture(scope="module")
async def router(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    """A server whose providers are two others, behind TLS with certificates of an own authority."""
    directory = tmp_path_factory.mktemp("library")
    authority = Authority.new(tmp_path_factory.mktemp("authority"))
    with running_stack(directory, make_library(directory)) as library:
        async with (
            behind_tls(stack, authority) as house_ports,
            behind_tls(library, authority) as library_ports,
        ):
            tables = [
                table.format(name=name, authority=authority.file, **ports)
                for table in PROVIDERS.values()
                for name, ports in {"house": house_ports, "library": library_ports}.items()
            ]
            router = tmp_path_factory.mktemp("router")
            with running_stack(router, tables="".join(tables)) as running:
                yield running


@contextlib.asynccontextmanager
async def behind_tls(server: Stack, authority: Authority) -> AsyncIterator[dict[str, int]]:
    """The ports of TLS before a server's, by what they speak."""
    async with (
        tls_front(server.rest_port, authority.server("localhost"), "http/1.1") as rest,
        tls_front(server.grpc_port, authority.server("localhost"), "h2") as grpc_port,
    ):
        yield {"rest": rest, "grpc": grpc_port}


@dataclass
class ThroughProvider:
    """A door, with models of the providers' in the place of its own."""

    door: Door
    kind: str

    async def ask(self, endpoint: str, fields: dict[str, Any]) -> Any:
        model = fields["model"]
        provider = "library" if model == "library" else "house"
        answer = await self.door.ask(
            endpoint, {**fields, "model": f"{provider}-{self.kind}/{model}"}
        )
        if self.kind == "anthropic":
            # Messages have them as objects, and events as text: white space differs.
            for choice in answer.choices:
                choice.calls = [[name, json.dumps(json.loads(text))] for name, text in choice.calls]
        return answer


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
    """The effects with each kind of provider that can say them."""
    generated = [
        effect
        for effect in effects
        if effect.endpoint in READ and (effect.endpoint, effect.name) not in REFUSED
    ]
    by_kind = dict.fromkeys(PROVIDERS, generated)
    by_kind["anthropic"] = [
        effect for effect in generated if sayable(effect) and str(effect) not in UNREASONED
    ]
    return [
        pytest.param(
            kind,
            effect,
            marks=[pytest.mark.slow] if number % EACH else [],
            id=f"{effect}-{kind}",
        )
        for kind, found in by_kind.items()
        for number, effect in enumerate(found)
    ]


def sayable(effect: Effect) -> bool:
    """Whether the kind `anthropic` can say a request; docs/anthropic.md lists what it refuses."""
    kind = AnthropicKind("a provider", default_max_tokens=4096)
    try:
        for fields in (effect.base, effect.base | effect.given):
            kind.request(READ[effect.endpoint](fields), "a model")
    except InvalidRequestError:
        return False
    return True


@pytest.mark.parametrize(("kind", "effect"), cases(checks.EFFECTS))
async def test_a_parameter_changes_the_answer_as_documented(
    rest: Door, kind: str, effect: Effect
) -> None:
    await checks.check_effect(ThroughProvider(rest, kind), effect)


@pytest.mark.parametrize(("kind", "effect"), cases(GRPC_EFFECTS))
async def test_a_typed_parameter_changes_the_answer_too(
    typed: Door, kind: str, effect: Effect
) -> None:
    await checks.check_effect(ThroughProvider(typed, kind), effect)
