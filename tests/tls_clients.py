"""Callers of both doors over TLS, who try nothing twice."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import grpc.aio
import openai
from cryptography import x509

from ovchat.v1 import chat_pb2, chat_service_pb2_grpc, message_pb2

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.certificates import Authority


# Of those who need one.
KEY = "a-key"


async def ask(client: openai.AsyncOpenAI) -> str:
    """What is answered: the three letters that come next."""
    answer = await client.chat.completions.create(
        model="successor", messages=[{"role": "user", "content": "a"}], max_tokens=3
    )
    return answer.choices[0].message.content or ""


@dataclass(frozen=True)
class Caller:
    """Whom a caller trusts, what it shows, and under which name it calls; nobody: no TLS."""

    authority: Authority | None
    shows: tuple[Path, Path] | None = None
    host: str = "127.0.0.1"
    key: str = KEY

    def at(self, host: str) -> Caller:
        return replace(self, host=host)

    @property
    def context(self) -> ssl.SSLContext:
        assert self.authority
        context = ssl.create_default_context(cafile=self.authority.file)
        if self.shows:
            context.load_cert_chain(*self.shows)
        return context

    @contextlib.asynccontextmanager
    async def rest_client(self, port: int) -> AsyncIterator[openai.AsyncOpenAI]:
        scheme = "https" if self.authority else "http"
        verify = self.context if self.authority else True
        async with (
            openai.DefaultAsyncHttpxClient(verify=verify) as http,
            openai.AsyncOpenAI(
                base_url=f"{scheme}://{self.host}:{port}/v1",
                api_key=self.key,
                max_retries=0,
                http_client=http,
            ) as client,
        ):
            yield client

    async def over_rest(self, port: int) -> str:
        """What a new connection is answered."""
        async with self.rest_client(port) as client:
            return await ask(client)

    @contextlib.asynccontextmanager
    async def channel(self, port: int) -> AsyncIterator[grpc.aio.Channel]:
        target = f"{self.host}:{port}"
        # Or channels to one target share a connection.
        options = [("grpc.use_local_subchannel_pool", 1)]
        if self.authority is None:
            made = grpc.aio.insecure_channel(target, options)
        else:
            certificate, key = self.shows or (None, None)
            credentials = grpc.ssl_channel_credentials(
                self.authority.file.read_bytes(),
                key.read_bytes() if key else None,
                certificate.read_bytes() if certificate else None,
            )
            made = grpc.aio.secure_channel(target, credentials, options)
        async with made:
            yield made

    async def over_grpc(self, port: int) -> str:
        """What a new connection is answered."""
        content = [message_pb2.ContentPart(text="a")]
        request = chat_pb2.CreateChatCompletionRequest(
            model="successor",
            messages=[message_pb2.Message(role=message_pb2.ROLE_USER, content=content)],
            max_completion_tokens=3,
        )
        async with self.channel(port) as channel:
            answer = await chat_service_pb2_grpc.ChatServiceStub(channel).CreateChatCompletion(
                request, metadata=(("authorization", f"Bearer {self.key}"),)
            )
        return answer.choices[0].message.content[0].text

    async def serial(self, port: int) -> int:
        """The number of the certificate that a new connection is shown."""
        context = self.context
        # The gRPC port speaks nothing else.
        context.set_alpn_protocols(["h2"])
        _, writer = await asyncio.open_connection(self.host, port, ssl=context)
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        return x509.load_der_x509_certificate(shown).serial_number
