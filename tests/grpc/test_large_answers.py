"""Answers that are larger than their caller takes."""

from __future__ import annotations

import asyncio
import json
import logging
import struct
from typing import TYPE_CHECKING

import pytest
from google.api import httpbody_pb2

from ovchat.v1 import model_service_pb2, tokenizer_service_pb2
from tests.http2 import DATA, PREFACE, RST, SETTINGS, call, frame, message, until

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from tests.grpc.conftest import Client

TEXT = "x" * 1000
FIELDS = {"model": "successor", "prompt": TEXT, "return_token_strs": True}
CALLS = {
    "/ovchat.v1.TokenizerService/Tokenize": tokenizer_service_pb2.TokenizeRequest(
        model="successor", prompt=TEXT, return_token_strs=True
    ),
    "/ovchat.v1.RestService/Tokenize": httpbody_pb2.HttpBody(data=json.dumps(FIELDS).encode()),
}
# So much of an answer may be sent before its caller reads; less than theirs is.
WINDOW = struct.pack(">HI", 4, 100)
CANCEL = struct.pack(">I", 8)


async def give_up(port: int, method: str, request: Message) -> None:
    """Begin to read an answer, and give it up: what clients do when it is too large."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(PREFACE + frame(SETTINGS, 0, 0, WINDOW))
    writer.write(call(message(request.SerializeToString()), path=method.encode()))
    await until(reader, DATA)
    writer.write(frame(RST, 0, 1, CANCEL))
    await writer.drain()
    writer.close()


@pytest.mark.parametrize("method", CALLS)
async def test_an_answer_that_its_caller_gives_up_is_one_line_in_the_log(
    client: Client, caplog: pytest.LogCaptureFixture, method: str
) -> None:
    caplog.set_level(logging.INFO)

    await give_up(client.server.port, method, CALLS[method])

    def lines() -> list[logging.LogRecord]:
        return [record for record in caplog.records if method == f"/{getattr(record, 'rpc', None)}"]

    # Until gRPC has ended the call, too, whose task it names after the method.
    while not lines() or any(method in task.get_name() for task in asyncio.all_tasks()):
        await client.models.ListModels(model_service_pb2.ListModelsRequest())
    assert len(lines()) == 1
    assert not [record for record in caplog.records if record.exc_info]
