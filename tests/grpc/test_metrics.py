"""What a server counts, beside what was asked of it and what it answered."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from ovchat.v1 import chat_pb2, completion_pb2, embedding_service_pb2, server_service_pb2
from ovchat.v1.embedding_service_pb2_grpc import EmbeddingServiceStub
from ovchat_server.app import Server
from tests.grpc import requests
from tests.grpc.conftest import Client, running
from tests.grpc.engines import engine_of, held, until, until_idle, until_under_way
from tests.keys import api_keys
from tests.pooling_folders import folder_settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ovchat_server.settings import ModelSettings, Settings

MODEL = "successor"


class Scrape:
    """The samples of a server's metrics."""

    def __init__(self, client: Client) -> None:
        text = client.server._metrics.exposition().decode()
        self._samples = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def of(self, name: str, model: str = MODEL, **labels: str) -> float:
        found = {"model_name": model, "server": "1", **labels}
        return self._samples[name, frozenset(found.items())]

    def of_server(self, name: str, **labels: str) -> float:
        return self._samples[name, frozenset({"server": "1", **labels}.items())]

    def finished(self, model: str = MODEL) -> dict[str, float]:
        reasons = ("stop", "length", "abort", "error")
        name = "vllm:request_success_total"
        return {reason: self.of(name, model, finished_reason=reason) for reason in reasons}

    def error_codes(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for (name, labels), value in self._samples.items():
            if name == "ovchat_request_errors_total" and value:
                found[dict(labels)["code"]] += int(value)
        return found


@contextlib.asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[Client]:
    async with running(Server(settings)) as client:
        yield client


@pytest.fixture
async def client(
    make_settings: Callable[..., Settings], successor: ModelSettings
) -> AsyncIterator[Client]:
    async with serving(make_settings(successor, folder_settings("bert"))) as client:
        yield client


def text(prompt: str, max_tokens: int, **fields: Any) -> completion_pb2.CreateCompletionRequest:
    return requests.go_on(prompt, max_tokens=max_tokens, ignore_eos=True, **fields)


async def test_all_is_zero_from_the_start(client: Client) -> None:
    now = Scrape(client)
    known = {name for name, _ in now._samples if name.endswith(("_total", "_count", "_sum"))}
    changing = {name for name in known if name.startswith("ovchat_event_loop_lag_seconds")}
    totals: Counter[str] = Counter()
    for (name, _), value in now._samples.items():
        totals[name] += int(value)
    assert len(known) > len(changing) > 0
    assert {name: totals[name] for name in known - changing} == dict.fromkeys(known - changing, 0)
    assert now.of("ovchat_model_ready") == now.of("ovchat_model_ready", "bert") == 1


async def test_the_numbers_are_those_of_the_answers(client: Client) -> None:
    long = "a b c d e f g h i j k l m n o p q r s t u v w x y z " * 4
    answers = [
        await client.texts.CreateCompletion(text(long, 20)),
        # The prefix cache has most of its prompt.
        await client.texts.CreateCompletion(text(long, 30)),
    ]
    whole = await client.chat.CreateChatCompletion(requests.successor("x", 8))
    usages = [*(answer.usage for answer in answers), whole.usage]
    await until_idle(client, MODEL)
    now = Scrape(client)

    prompts = sum(usage.prompt_tokens for usage in usages)
    generated = sum(usage.completion_tokens for usage in usages)
    cached = sum(usage.prompt_tokens_details.cached_tokens for usage in usages)
    assert cached > 0
    assert now.of("vllm:prompt_tokens_total") == prompts
    assert now.of("vllm:generation_tokens_total") == generated
    assert now.of("vllm:prefix_cache_queries_total") == prompts
    assert now.of("vllm:prefix_cache_hits_total") == cached
    assert now.of("vllm:request_prompt_tokens_sum") == prompts
    assert now.of("vllm:request_generation_tokens_sum") == generated
    ends = Counter(
        "length" if choice.finish_reason == chat_pb2.FINISH_REASON_LENGTH else "stop"
        for answer in (*answers, whole)
        for choice in answer.choices
    )
    assert now.finished() == {
        "stop": ends["stop"],
        "length": ends["length"],
        "abort": 0,
        "error": 0,
    }
    for of_a_request in (
        "vllm:time_to_first_token_seconds",
        "vllm:e2e_request_latency_seconds",
        "vllm:request_queue_time_seconds",
        "vllm:request_prefill_time_seconds",
        "vllm:request_decode_time_seconds",
        "vllm:request_prompt_tokens",
        "vllm:request_generation_tokens",
    ):
        assert now.of(f"{of_a_request}_count") == 3
    # Each token but the first of an answer comes after another one.
    assert now.of("vllm:inter_token_latency_seconds_count") == generated - 3
    assert now.of("ovchat_batch_size_sum") == generated
    assert now.of("ovchat_step_duration_seconds_count") >= generated
    # The times add up: a request waits, is read and generates between its arrival and its end.
    parts = sum(
        now.of(f"vllm:request_{part}_time_seconds_sum") for part in ("queue", "prefill", "decode")
    )
    assert 0 < parts <= now.of("vllm:e2e_request_latency_seconds_sum")
    assert now.of("vllm:time_to_first_token_seconds_sum") < now.of(
        "vllm:e2e_request_latency_seconds_sum"
    )


async def test_each_choice_reads_its_prompt_and_ends(client: Client) -> None:
    answer = await client.texts.CreateCompletion(text("a b c", 5, n=3))
    now = Scrape(client)
    # As vLLM counts: what was read, not what is billed.
    assert now.of("vllm:prompt_tokens_total") == 3 * answer.usage.prompt_tokens
    assert now.of("vllm:generation_tokens_total") == answer.usage.completion_tokens == 15
    assert now.finished()["length"] == 3
    assert now.of("vllm:request_prompt_tokens_sum") == answer.usage.prompt_tokens
    assert now.of("vllm:e2e_request_latency_seconds_count") == 1


async def test_who_runs_and_who_waits_is_told_whenever_it_is_asked(
    make_settings: Callable[..., Settings], successor: ModelSettings
) -> None:
    small = msgspec.structs.replace(successor, kv_blocks=8)
    async with serving(make_settings(small)) as client:
        calls = [client.texts.CreateCompletion(text(name, 150)) for name in "abcd"]
        await until_under_way(client, MODEL, 4)
        with held(client, MODEL):
            now = Scrape(client)
            running, waiting = (
                now.of(f"vllm:num_requests_{state}") for state in ("running", "waiting")
            )
            assert running + waiting == 4
        # Of eight blocks two answers have room at a time.
        await until(lambda: Scrape(client).of("vllm:kv_cache_usage_perc") > 0)
        answers = await asyncio.gather(*calls)
        await until_idle(client, MODEL)
        now = Scrape(client)
        size = client.server._engines[MODEL].supervisor.ready.memory.kv_tokens // 8  # type: ignore[attr-defined]
        assert now.of("vllm:cache_config_info", block_size=str(size), num_gpu_blocks="8") == 1
    assert now.of("vllm:num_requests_running") == now.of("vllm:num_requests_waiting") == 0
    assert now.of("vllm:kv_cache_usage_perc") == 0
    assert now.of("vllm:generation_tokens_total") == sum(
        answer.usage.completion_tokens for answer in answers
    )


async def test_preemptions_are_counted(
    make_settings: Callable[..., Settings], successor: ModelSettings
) -> None:
    small = msgspec.structs.replace(successor, kv_blocks=8)
    async with serving(make_settings(small)) as client:
        # Room is kept for what is asked for, but not where the model decides.
        calls = [requests.successor(name, None) for name in "Ab"]
        streams = [client.chat.StreamChatCompletion(call) for call in calls]
        load = engine_of(client, MODEL)
        await until(lambda: (now := load.status.load) is not None and now.preemptions > 0)
        for stream in streams:
            stream.cancel()
        # A client may know of an end before it is counted.
        await until(lambda: Scrape(client).finished()["abort"] == 2)
        await until_idle(client, MODEL)
        status = load.status.load
        assert status is not None
        now = Scrape(client)
    assert now.of("vllm:num_preemptions_total") == status.preemptions > 0
    assert now.of("vllm:e2e_request_latency_seconds_count") == 0


async def test_a_restart_loses_no_number(client: Client) -> None:
    streams = [client.texts.StreamCompletion(text(name, 100)) for name in "abc"]
    texts = [await stream.read() for stream in streams]
    assert all(texts)
    connection = client.server._engines[MODEL].supervisor._connection  # type: ignore[attr-defined]
    connection.kill()
    for stream in streams:
        while await stream.read() is not grpc.aio.EOF:
            pass
    await until_idle(client, MODEL)
    now = Scrape(client)
    assert now.of("ovchat_engine_restarts_total") == 1
    assert now.of("ovchat_resumed_requests_total") == 3
    assert now.of("vllm:generation_tokens_total") == 300
    assert now.finished() == {"stop": 0, "length": 3, "abort": 0, "error": 0}
    assert now.of("ovchat_engine_restarts_total", "bert") == 0


async def test_refusals_are_counted_by_their_code_and_key(
    make_settings: Callable[..., Settings], successor: ModelSettings
) -> None:
    async with serving(make_settings(successor, api_keys=api_keys("right", "other"))) as client:
        allowed = (("authorization", "Bearer right"),)
        for asked, metadata in (
            (requests.successor("x", 8), (("authorization", "Bearer wrong"),)),
            (requests.successor("x" * 10_000, 8), allowed),
            (requests.ask("x", "nobody"), allowed),
            (requests.ask("x", MODEL, top_p=2), allowed),
        ):
            with contextlib.suppress(grpc.aio.AioRpcError):
                await client.chat.CreateChatCompletion(asked, metadata=metadata)
                pytest.fail("it was answered")
        await until(lambda: Scrape(client).error_codes().total() == 4)
        now = Scrape(client)
    assert now.error_codes() == {
        "invalid_api_key": 1,
        "context_length_exceeded": 1,
        "model_not_found": 1,
        "invalid_value": 1,
    }
    [key] = (key.name for key in api_keys("right"))
    for code, owner in (("invalid_api_key", ""), ("invalid_value", key)):
        assert now.of_server("ovchat_request_errors_total", code=code, key=owner) == 1
    # The engine was not asked.
    assert now.of("vllm:request_queue_time_seconds_count") == 0
    assert sum(now.finished().values()) == 0


async def test_embeddings_are_counted_as_well(client: Client) -> None:
    prompts = [completion_pb2.Prompt(text=text) for text in ("one", "two", "three")]
    asked = embedding_service_pb2.CreateEmbeddingsRequest(model="bert", input=prompts)
    answer = await EmbeddingServiceStub(client.channel).CreateEmbeddings(asked)
    now = Scrape(client)
    assert now.of("vllm:prompt_tokens_total", "bert") == answer.usage.prompt_tokens > 0
    assert now.of("ovchat_batch_size_sum", "bert") == 3
    assert now.finished("bert") == {"stop": 1, "length": 0, "abort": 0, "error": 0}
    assert now.of("vllm:e2e_request_latency_seconds_count", "bert") == 1
    assert now.of("vllm:generation_tokens_total", "bert") == 0


async def test_a_prompt_alone_ends_as_an_answer(client: Client) -> None:
    asked = requests.go_on("a b c", echo=True, max_tokens=0, prompt_logprobs=1)
    answer = await client.texts.CreateCompletion(asked)
    now = Scrape(client)
    assert now.finished() == {"stop": 0, "length": 1, "abort": 0, "error": 0}
    assert now.of("vllm:request_prompt_tokens_sum") == answer.usage.prompt_tokens > 0


async def test_keys_that_nobody_checked_are_in_no_label(
    make_settings: Callable[..., Settings], successor: ModelSettings
) -> None:
    async with serving(make_settings(successor, api_keys=api_keys("right"))) as client:
        before = len(Scrape(client)._samples)
        reflect = client.channel.stream_stream(
            "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
        )
        for number in range(3):
            call = reflect(iter([b"\xff"]), metadata=(("authorization", f"Bearer {number}"),))
            with pytest.raises(grpc.aio.AioRpcError):
                await call.read()
        await until(lambda: Scrape(client).error_codes().total() == 3)
        now = Scrape(client)
        asked = server_service_pb2.GetMetricsRequest()
        with pytest.raises(grpc.aio.AioRpcError):
            await client.server_service.GetMetrics(asked)
        # A probe that is refused is told of, too.
        await until(lambda: Scrape(client).error_codes()["invalid_api_key"] == 1)
    assert len(now._samples) == before
    assert now.of_server("ovchat_request_errors_total", code="malformed_message", key="") == 3
