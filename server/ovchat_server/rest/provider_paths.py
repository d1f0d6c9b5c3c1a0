"""Paths that name a provider, whose models may go without it there (AbstractCore)."""

from __future__ import annotations

import contextlib
import dataclasses
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ovchat.v1 import rest_service_pb2
from ovchat_server.domain.errors import InvalidRequestError
from ovchat_server.domain.models import PROVIDER
from ovchat_server.rest.apis import streaming

if TYPE_CHECKING:
    from ovchat_server.domain.json_value import JsonObject
    from ovchat_server.domain.limits import Limits
    from ovchat_server.rest.apis import Bodies, CallApi, Context, GenerationApi, Handler
    from ovchat_server.rest.codec import ErrorEncoder, RequestReader
    from ovchat_server.rest.request_body import BodyReader
    from ovchat_server.serving.model_registry import ModelRegistry

Request = TypeVar("Request")


@dataclass(frozen=True, slots=True)
class ProviderApi:
    """An API at such a path; see Api.

    Attributes:
        api: The API.
        models: Knows the providers.
    """

    api: GenerationApi[Any] | CallApi[Any, Any]
    models: ModelRegistry

    @property
    def errors(self) -> ErrorEncoder:
        """Encodes its errors."""
        return self.api.errors

    def handler(self, bodies: BodyReader) -> Handler:
        """Return the RPC; see Api."""

        async def serve(
            request: rest_service_pb2.RestServiceProviderBody, context: Context
        ) -> Bodies:
            self.models.check_provider(request.prefix)
            read = partial(_read, self.api.read, request.prefix)
            api = dataclasses.replace(self.api, read=read)
            async with contextlib.aclosing(api.serve(bodies, request.body, context)) as parts:
                async for part in parts:
                    yield part

        return streaming(serve, rest_service_pb2.RestServiceProviderBody)


def provider_model(provider: str, model: str) -> str:
    """Return the id of a provider's model, which may be given without the provider."""
    # Only its own name is one: Qwen/Qwen3-4B begins with an organization.
    return model if model.startswith(f"{provider}/") else f"{provider}/{model}"


def _read(
    read: RequestReader[Request],
    provider: str,
    fields: JsonObject,
    *,
    strict: bool,
    limits: Limits,
) -> Request:
    model = fields.get("model")
    if isinstance(model, str) and model:
        fields = {**fields, "model": provider_model(provider, model)}
    elif not model and provider != PROVIDER:
        complaint = f"is required: the id of a model of {provider}."
        raise InvalidRequestError.about("model", complaint, "missing_required_parameter")
    return read(fields, strict=strict, limits=limits)
