"""The typed tokenizer service: what tokens a model gets, and the text of tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import grpc
import pytest
import tokenizers

from ovchat.v1 import chat_pb2, tokenizer_service_pb2
from tests.conftest import ROOT
from tests.grpc.test_errors import details
from tests.tokenization import REFUSED, SERVED, typed, typed_field

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.engine.contract.generation import GenerationRequest
    from ovchat_server.engine.contract.generation_engine import GenerationStream
    from tests.grpc.conftest import Client

DEMO = tokenizers.Tokenizer.from_file(str(ROOT / "models/demo/tokenizer.json"))
PAD = DEMO.token_to_id("<|endoftext|>")
CONVERSATIONS = [name for name, fields in SERVED.items() if "messages" in fields]
# Fields that a chat request does not have, or refuses.
ONLY_HERE = {"return_token_strs", "add_special_tokens"}


async def tokenize(client: Client, **fields: Any) -> tokenizer_service_pb2.TokenizeResponse:
    return await client.tokenizer.Tokenize(typed(fields))


async def test_texts_become_the_tokenizers_tokens(client: Client) -> None:
    texts = ["Hello there", "", "<|im_end|>é"]
    expected = [DEMO.encode(text).ids for text in texts]

    response = await tokenize(client, text=texts)

    assert [list(sequence.tokens) for sequence in response.sequences] == expected
    assert response.count == sum(map(len, expected))
    assert response.context_length == 4096
    assert not any(sequence.token_strs for sequence in response.sequences)


async def test_a_prompt_is_one_text(client: Client) -> None:
    response = await tokenize(client, prompt="Hello <think>", return_token_strs=True)

    [sequence] = response.sequences
    assert list(sequence.tokens) == DEMO.encode("Hello <think>").ids
    assert list(sequence.token_strs) == DEMO.encode("Hello <think>").tokens


async def test_texts_are_cut_and_filled_up(client: Client) -> None:
    long, short = (DEMO.encode(text).ids for text in ("Hello there, you", "a"))

    response = await tokenize(
        client,
        text=["Hello there, you", "a"],
        max_length=3,
        pad_to_max_length=True,
        padding_side="left",
    )

    assert [list(sequence.tokens) for sequence in response.sequences] == [
        long[:3],
        [PAD, PAD, *short],
    ]


def _set(request: tokenizer_service_pb2.TokenizeRequest, field: str) -> bool | None:
    return getattr(request, field) if request.HasField(field) else None


@pytest.mark.parametrize("name", CONVERSATIONS)
async def test_a_conversation_becomes_the_tokens_that_a_chat_gives_the_model(
    client: Client, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    engine = client.server._models.get("demo").engine
    generate = engine.generate
    prompts: list[tuple[int, ...]] = []

    def spy(requests: Sequence[GenerationRequest], *how: Any) -> GenerationStream:
        prompts.extend(request.prompt.tokens for request in requests)
        return generate(requests, *how)

    monkeypatch.setattr(engine, "generate", spy)
    asked = typed({key: value for key, value in SERVED[name].items() if key not in ONLY_HERE})
    chat = chat_pb2.CreateChatCompletionRequest(
        model="demo",
        messages=asked.messages,
        tools=asked.tools,
        tool_choice=asked.tool_choice if asked.HasField("tool_choice") else None,
        reasoning_effort=asked.reasoning_effort or None,
        chat_template_kwargs=asked.chat_template_kwargs or None,
        add_generation_prompt=_set(asked, "add_generation_prompt"),
        continue_final_message=_set(asked, "continue_final_message"),
        documents=asked.documents,
        max_tokens=1,
    )
    completion = await client.chat.CreateChatCompletion(chat)

    response = await client.tokenizer.Tokenize(typed(SERVED[name]))

    [sequence] = response.sequences
    assert [tuple(sequence.tokens)] == prompts
    assert response.count == completion.usage.prompt_tokens


@pytest.mark.parametrize("name", REFUSED)
async def test_a_bad_request_is_refused_naming_the_field(client: Client, name: str) -> None:
    fields, field = REFUSED[name]

    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await client.tokenizer.Tokenize(typed(fields))

    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert details(caught.value)[1][0] == typed_field(field)


async def test_a_model_is_required_and_must_be_served(client: Client) -> None:
    calls = [
        (client.tokenizer.Tokenize, tokenizer_service_pb2.TokenizeRequest(text=["a"])),
        (client.tokenizer.Detokenize, tokenizer_service_pb2.DetokenizeRequest(tokens=[1])),
    ]
    for call, request in calls:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(request)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert details(caught.value) == ("MISSING_REQUIRED_PARAMETER", ["model"])

        request.model = "nobody"
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(request)
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND
        assert details(caught.value) == ("MODEL_NOT_FOUND", ["model"])


@pytest.mark.parametrize("text", ["", "Hello <|im_end|>\n<think>é😀"])
async def test_tokens_become_their_text_again(client: Client, text: str) -> None:
    [sequence] = (await tokenize(client, prompt=text)).sequences

    response = await client.tokenizer.Detokenize(
        tokenizer_service_pb2.DetokenizeRequest(model="demo", tokens=sequence.tokens)
    )

    assert response.prompt == text


async def test_a_token_of_no_vocabulary_is_refused_by_its_place(client: Client) -> None:
    request = tokenizer_service_pb2.DetokenizeRequest(model="demo", tokens=[0, 1536, 1535])

    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await client.tokenizer.Detokenize(request)

    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert details(caught.value) == ("INVALID_VALUE", ["tokens[1]"])
