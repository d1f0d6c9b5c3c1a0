"""The RPCs behind Envoy's REST paths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import grpc

from ovchat_server.header_text import ascii_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ovchat_server.domain.errors import ApiError
    from ovchat_server.rest.apis import Api
    from ovchat_server.rest.codec import ErrorEncoder
    from ovchat_server.rest.request_body import BodyReader


class RestDoor(grpc.GenericRpcHandler):
    """Serves public APIs, each as the RPC that Envoy binds its path to."""

    def __init__(
        self, apis: Mapping[str, Api], bodies: BodyReader, default_errors: ErrorEncoder
    ) -> None:
        """Serve `apis`.

        Args:
            apis: By the full name of their RPC, such as "/ovchat.v1.RestService/CreateCompletion".
            bodies: Reads their requests.
            default_errors: What errors of other RPCs look like to REST callers.
        """
        self._handlers = {method: api.handler(bodies) for method, api in apis.items()}
        self._errors = {method: api.errors for method, api in apis.items()}
        self._default_errors = default_errors

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:  # noqa: ANN401
        """Return the handler of an RPC; None where it is none of these."""
        return self._handlers.get(handler_call_details.method)

    def error(self, method: str, error: ApiError) -> tuple[str, int | None]:
        """Encode an error of an RPC for REST callers.

        Returns:
            The body, in ASCII: it travels as a header. And the HTTP status where it is not what
            Envoy makes of the gRPC status.
        """
        encoded = self._errors.get(method, self._default_errors)(error)
        return ascii_json(encoded.body), encoded.http_status
