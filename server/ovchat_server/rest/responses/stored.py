"""Responses that are kept: got, deleted, and what they were made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ovchat_server.domain.errors import InvalidRequestError
from ovchat_server.responses.objects import response_object

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat.v1 import rest_service_pb2
    from ovchat_server.domain.json_value import JsonObject
    from ovchat_server.serving.responses import Responses

# OpenAI's.
DEFAULT_LIMIT = 20
MAX_LIMIT = 100


@dataclass(frozen=True, slots=True)
class StoredResponsesInfo:
    """Answers what is asked of a response that is kept."""

    responses: Responses

    def get(
        self, request: rest_service_pb2.RestServiceGetResponseRequest
    ) -> Callable[[], JsonObject]:
        """Return what makes a response.

        Raises:
            ResponseNotFoundError: The caller has none of that id.
            InvalidRequestError: It is to be streamed.
        """
        if request.stream:
            complaint = "is not supported where a response is kept; leave it out."
            raise InvalidRequestError.about("stream", complaint, "unsupported_parameter")
        stored = self.responses.get(request.id)
        return partial(response_object, stored.request, stored.completion)

    def delete(self, request: rest_service_pb2.RestServiceDeleteResponseRequest) -> JsonObject:
        """Delete a response, and say so.

        Raises:
            ResponseNotFoundError: The caller has none of that id.
        """
        self.responses.delete(request.id)
        return {"id": request.id, "object": "response", "deleted": True}

    def input_items(
        self, request: rest_service_pb2.RestServiceListResponseInputItemsRequest
    ) -> Callable[[], JsonObject]:
        """Return what makes a page of the items of a response's input.

        Raises:
            ResponseNotFoundError: The caller has none of that id.
            InvalidRequestError: The page is none.
        """
        items = list(self.responses.get(request.id).request.input_items)
        limit = request.limit if request.HasField("limit") else DEFAULT_LIMIT
        if not 1 <= limit <= MAX_LIMIT:
            complaint = f"must be between 1 and {MAX_LIMIT}, got {limit}."
            raise InvalidRequestError.about("limit", complaint)
        if request.order not in ("", "asc", "desc"):
            raise InvalidRequestError.about("order", "must be one of 'asc', 'desc'.")
        if request.order != "asc":
            items.reverse()
        ids = [item["id"] for item in items]
        if request.after and request.after not in ids:
            raise InvalidRequestError.about("after", "must be the id of an item of this response.")
        begin = ids.index(request.after) + 1 if request.after else 0
        page = items[begin : begin + limit]
        return lambda: {
            "object": "list",
            "data": [*page],
            "first_id": page[0]["id"] if page else None,
            "last_id": page[-1]["id"] if page else None,
            "has_more": begin + len(page) < len(items),
        }
