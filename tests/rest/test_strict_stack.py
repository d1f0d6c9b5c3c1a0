"""A server that wants API keys, and knows no mercy for unknown parameters."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import anthropic
import grpc.aio
import httpx
import openai
import pytest
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_status import rpc_status

from ovchat.v1 import model_service_pb2, model_service_pb2_grpc
from tests.rest.conftest import Stack, running_stack

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from ovchat_server.settings import ModelSettings

KEY, OTHER_KEY = "sk-first-key", "sk-other-key"
CHAT = {"model": "successor", "messages": [{"role": "user", "content": "abc"}], "max_tokens": 3}
ALIAS = "claude-opus-5"


@pytest.fixture(scope="module")
def strict(
    tmp_path_factory: pytest.TempPathFactory, demo: ModelSettings, successor: ModelSettings
) -> Iterator[Stack]:
    directory = tmp_path_factory.mktemp("strict")
    keys = directory / "keys"
    keys.write_text(
        f"# of the first team\n{KEY}\n\n  {OTHER_KEY}  \n"
        "one-model k-one models=demo # no aliases\n"
        "limited k-limited requests_per_minute=2 tokens_per_minute=1000\n"
    )
    options = ["--api-key-file", str(keys), "--strict-parameters"]
    tables = f'\n[aliases]\n{ALIAS} = "successor"\n'
    with running_stack(directory, demo, successor, options=options, tables=tables) as stack:
        yield stack


@pytest.fixture
async def client(strict: Stack) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=strict.url, timeout=None) as client:
        yield client


@pytest.mark.parametrize("key", [KEY, OTHER_KEY])
def test_the_sdk_gets_an_answer_with_any_of_the_keys(strict: Stack, key: str) -> None:
    with openai.OpenAI(base_url=f"{strict.url}/v1", api_key=key, max_retries=0) as sdk:
        answer = sdk.chat.completions.create(**CHAT)  # type: ignore[call-overload]
    assert answer.choices[0].message.content == "def"


def test_the_sdk_says_that_a_wrong_key_is_wrong(strict: Stack) -> None:
    with (
        openai.OpenAI(base_url=f"{strict.url}/v1", api_key="sk-no", max_retries=0) as sdk,
        pytest.raises(openai.AuthenticationError) as caught,
    ):
        sdk.chat.completions.create(**CHAT)  # type: ignore[call-overload]
    assert caught.value.status_code == 401
    assert caught.value.code == "invalid_api_key"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": ""},
        {"authorization": "Bearer"},
        {"authorization": f"Basic {KEY}"},
        {"authorization": KEY},
        {"authorization": f"Bearer {KEY}x"},
        {"x-api-key": f"{KEY}x"},
        {"authorization": f"Bearer {KEY}x", "x-api-key": KEY},
        {"authorization": "Bearer # of the first team"},
    ],
    ids=str,
)
async def test_every_way_in_is_closed_without_a_key(
    client: httpx.AsyncClient, headers: dict[str, str]
) -> None:
    for method, path in (
        ("POST", "/v3/chat/completions"),
        ("POST", "/v1/completions"),
        ("POST", "/v1/messages"),
        ("POST", "/v1/messages/count_tokens"),
        ("POST", "/v1/embeddings"),
        ("POST", "/v2/rerank"),
        ("POST", "/score"),
        ("POST", "/v3/tokenize"),
        ("POST", "/ovchat/v1/chat:create"),
        ("POST", "/ovchat/v1/chat:stream"),
        ("GET", "/v3/models"),
        ("GET", "/v1/models/successor"),
        ("GET", "/ovchat/v1/models"),
        ("GET", "/version"),
        # As it may be spelled, too.
        ("POST", "/v3/chat/completions/"),
        ("GET", "/v3/models?key=anything"),
        ("GET", "/v3/models/demo%2F..%2Fhealth"),
        ("GET", "/health/../v3/models"),
        ("GET", "/health/%2e%2e/v3/models"),
        ("HEAD", "/v3/models/"),
    ):
        body: dict[str, object] | None = CHAT if method == "POST" else None
        if "ovchat" in path and body:
            # Envoy itself refuses what is not the contract's.
            body = {"model": "successor"}
        response = await client.request(method, path, json=body, headers=headers)
        assert response.status_code == 401, path
        assert response.headers["www-authenticate"] == "Bearer", path
        if method == "HEAD":
            continue
        error = response.json()["error"]
        # Anthropic's errors have a type alone.
        reason = error.get("code") or error["type"]
        assert reason in {"invalid_api_key", "unauthenticated", "authentication_error"}, path


async def test_a_key_may_be_sent_as_other_sdks_do(client: httpx.AsyncClient) -> None:
    for headers in (
        {"x-api-key": KEY},
        {"api-key": KEY},
        {"x-api-key": "other", "authorization": f"Bearer {KEY}"},
    ):
        response = await client.get("/v3/models", headers=headers)
        assert response.status_code == 200


async def test_a_key_does_not_find_models_that_it_may_not_use(client: httpx.AsyncClient) -> None:
    headers = {"authorization": "Bearer k-one"}
    listed = (await client.get("/v3/models", headers=headers)).json()["data"]
    assert [model["id"] for model in listed] == ["demo"]
    assert list((await client.get("/v1/config", headers=headers)).json()) == ["demo"]
    for model in ("successor", ALIAS, "ovchat/successor", "nobody"):
        for response in (
            await client.get(f"/v3/models/{model}", headers=headers),
            await client.get(f"/v2/models/{model}", headers=headers),
            await client.post(
                "/v3/chat/completions", json=CHAT | {"model": model}, headers=headers
            ),
            await client.post(
                "/v1/tokenize", json={"model": model, "prompt": "a"}, headers=headers
            ),
        ):
            assert response.status_code == 404, response.url
            error = response.json()["error"]
            message = error if isinstance(error, str) else error["message"]
            assert message == (f"The model {model!r} does not exist. Available models: demo.")


def test_the_sdk_is_told_what_is_left_of_its_limits(strict: Stack) -> None:
    with openai.OpenAI(base_url=f"{strict.url}/v1", api_key="k-limited", max_retries=0) as sdk:
        completions = sdk.chat.completions.with_raw_response
        whole = completions.create(**CHAT)  # type: ignore[call-overload]
        used = whole.parse().usage.total_tokens
        assert whole.headers["x-ratelimit-limit-requests"] == "2"
        assert whole.headers["x-ratelimit-remaining-requests"] == "1"
        assert whole.headers["x-ratelimit-reset-requests"]
        stream = completions.create(**CHAT, stream=True)  # type: ignore[call-overload]
        assert "".join(chunk.choices[0].delta.content or "" for chunk in stream.parse()) == "def"
        assert stream.headers["x-ratelimit-remaining-requests"] == "0"
        assert stream.headers["x-ratelimit-limit-tokens"] == "1000"
        assert stream.headers["x-ratelimit-remaining-tokens"] == str(1000 - used)
        with pytest.raises(openai.RateLimitError, match="'limited' may use 2 requests") as caught:
            completions.create(**CHAT)  # type: ignore[call-overload]
        assert caught.value.code == "rate_limit_exceeded"
        assert 0 < int(caught.value.response.headers["retry-after"]) <= 60
        assert caught.value.response.headers["x-ratelimit-remaining-requests"] == "0"
        # Nobody else's matter.
        assert len(sdk.models.list().data) == 3
    with openai.OpenAI(base_url=f"{strict.url}/v1", api_key=KEY, max_retries=0) as sdk:
        other = sdk.chat.completions.with_raw_response.create(**CHAT)  # type: ignore[call-overload]
        assert not [name for name in other.headers if name.startswith("x-ratelimit")]


def test_anthropics_sdk_gets_an_answer_with_a_key_and_by_an_alias(strict: Stack) -> None:
    request = {**CHAT, "model": ALIAS}
    for given in ({"api_key": KEY}, {"auth_token": OTHER_KEY}):
        with anthropic.Anthropic(base_url=strict.url, **given) as sdk:  # type: ignore[arg-type]
            answer = sdk.messages.create(**request)  # type: ignore[call-overload]
        assert (answer.model, answer.content[0].text) == (ALIAS, "def")
    with (
        anthropic.Anthropic(base_url=strict.url, api_key="sk-no", max_retries=0) as sdk,
        pytest.raises(anthropic.AuthenticationError) as caught,
    ):
        sdk.messages.create(**request)  # type: ignore[call-overload]
    assert caught.value.type == "authentication_error"


PROBES = [
    "/health",
    "/v2/health/live",
    "/v2/health/ready",
    "/v2/models/successor/ready",
    "/v2",
    "/",
]


@pytest.mark.parametrize("path", PROBES)
async def test_probes_need_no_key(client: httpx.AsyncClient, path: str) -> None:
    assert (await client.get(path)).status_code == 200


@pytest.mark.parametrize("door", ["grpc_port", "rest_port"])
async def test_grpc_callers_need_the_key_too(strict: Stack, door: str) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{getattr(strict, door)}") as channel:
        models = model_service_pb2_grpc.ModelServiceStub(channel)  # type: ignore[no-untyped-call]
        request = model_service_pb2.ListModelsRequest()
        for metadata in (
            (),
            (("authorization", "Bearer wrong"),),
            (("x-api-key", f"{KEY}x"),),
            # What Envoy and the server know of callers is not theirs to say.
            (("x-envoy-original-path", "/health"), ("x-forwarded-for", "127.0.0.1")),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await models.ListModels(request, metadata=metadata)
            assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
            status = rpc_status.from_call(caught.value)
            info = error_details_pb2.ErrorInfo()
            assert status is not None
            status.details[0].Unpack(info)
            assert info.reason == "INVALID_API_KEY"

        for header in (("authorization", f"Bearer {KEY}"), ("x-api-key", KEY), ("api-key", KEY)):
            response = await models.ListModels(request, metadata=(header,))
            assert [model.id for model in response.models] == ["demo", "successor", ALIAS]

        health = health_pb2_grpc.HealthStub(channel)  # type: ignore[no-untyped-call]
        answer = await health.Check(health_pb2.HealthCheckRequest())
        assert answer.status == health_pb2.HealthCheckResponse.SERVING


BODY = 8 * 2**20 - 1


@pytest.mark.parametrize("header", ["", "authorization: Bearer wrong\r\n"])
@pytest.mark.parametrize("path", ["/v3/chat/completions", "/v1/messages", "/ovchat/v1/chat:create"])
async def test_a_body_without_a_key_is_refused_before_it_arrives(
    strict: Stack, path: str, header: str
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", strict.rest_port)
    writer.write(
        f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n{header}"
        f"content-length: {BODY}\r\n\r\n{{".encode()
    )
    answer = await reader.readuntil(b"}")
    writer.close()
    assert answer.startswith(b"HTTP/1.1 401 ")
    assert b"www-authenticate: Bearer" in answer
    expected = b"An API key is required" if not header else b"The API key is not valid"
    assert expected in answer
    assert (b"authentication_error" if "messages" in path else b"invalid_api_key") in answer


async def test_a_message_without_a_key_is_refused_before_it_arrives(strict: Stack) -> None:
    async def never() -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b""

    async with grpc.aio.insecure_channel(f"127.0.0.1:{strict.grpc_port}") as channel:
        call = channel.stream_unary("/ovchat.v1.ChatService/CreateChatCompletion")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(never(), metadata=(("authorization", "Bearer wrong"),))
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_unknown_parameters_are_refused_by_name(client: httpx.AsyncClient) -> None:
    headers = {"authorization": f"Bearer {KEY}"}
    for path, body in (
        ("/v3/chat/completions", {**CHAT, "max_token": 5, "temprature": 1}),
        ("/v3/completions", {"model": "successor", "prompt": "a", "max_token": 5, "temprature": 1}),
        ("/v3/tokenize", {"model": "successor", "text": "a", "max_token": 5, "temprature": 1}),
        ("/v3/detokenize", {"model": "demo", "tokens": [1], "max_token": 5, "temprature": 1}),
    ):
        response = await client.post(path, json=body, headers=headers)
        assert response.status_code == 400, path
        error = response.json()["error"]
        assert (error["param"], error["code"]) == ("max_token", "unknown_parameter"), path
        assert "temprature is not a known parameter" in error["message"], path


@pytest.mark.parametrize("path", ["/v3/chat/completions", "/ovchat/v1/chat:create"])
async def test_more_tokens_than_the_context_has_left_are_refused_here(
    client: httpx.AsyncClient, path: str
) -> None:
    message = {"role": "user", "content": "abc"}
    if "ovchat" in path:
        message = {"role": "ROLE_USER", "content": [{"text": "abc"}]}  # type: ignore[dict-item]
    response = await client.post(
        path,
        json={"model": "successor", "messages": [message], "max_tokens": 5000},
        headers={"authorization": f"Bearer {KEY}"},
    )
    assert response.status_code == 400
    assert "max_tokens" in response.json()["error"]["message"]
