"""Collecting the parameters of a request: those that are sent, and those that cannot be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.domain.errors import InvalidRequestError, Violation
from ovchat_server.domain.field_path import FieldPath, field_path
from ovchat_server.providers.kind import WireRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ovchat_server.domain.field_path import Field
    from ovchat_server.domain.json_value import JsonObject, JsonValue


class Body:
    """The body of a request to one provider."""

    def __init__(self, provider: str, model: str, *, vllm_parameters: bool = False) -> None:
        """Begin with the model.

        Args:
            provider: The provider's name, for errors.
            model: The id that it knows the model by.
            vllm_parameters: Whether it knows vLLM's parameters.
        """
        self.vllm_parameters = vllm_parameters
        self._provider = provider
        self._fields: JsonObject = {"model": model}
        self._ignored: list[str] = []
        # Several may come of one that the caller sent.
        self._refused: dict[FieldPath, Violation] = {}

    def add(self, parameters: Mapping[str, JsonValue]) -> None:
        """Add parameters. None: it is not set, so that the provider's default holds."""
        self._fields |= {name: value for name, value in parameters.items() if value is not None}

    def add_vllm(self, parameters: Mapping[str, JsonValue], asked_by: Field | None = None) -> None:
        """Add parameters of vLLM's, as `add`; refuse them where the provider does not know them.

        Args:
            parameters: Their values by their names.
            asked_by: What the caller called them, if not the same.
        """
        if self.vllm_parameters:
            self.add(parameters)
        else:
            self.refuse_all(parameters, asked_by)

    def refuse_all(self, parameters: Mapping[str, object], asked_by: Field | None = None) -> None:
        """Refuse those parameters that are set; see `add_vllm`."""
        for name, value in parameters.items():
            if value is not None:
                self.refuse(asked_by or name)

    def ignore(self, parameters: Mapping[str, object]) -> None:
        """Leave out parameters that cannot change the answer. None: it is not set."""
        self._ignored += [name for name, value in parameters.items() if value is not None]

    def refuse(
        self, field: Field, complaint: str = "is not supported", code: str = "unsupported_parameter"
    ) -> None:
        """Note that the provider cannot do what a field asks for.

        Args:
            field: What the caller called it.
            complaint: Completes "<field> ... by the provider 'name'.".
            code: OpenAI's word for the kind of fault.
        """
        path = field_path(field)
        whole = f"{complaint} by the provider {self._provider!r}."
        self._refused[path] = Violation.of(path, whole, code)

    def request(self, path: str) -> WireRequest:
        """Return the request.

        Args:
            path: Where it is posted to.

        Raises:
            InvalidRequestError: The provider cannot do what the request asks for.
        """
        if self._refused:
            raise InvalidRequestError.of(list(self._refused.values()))
        return WireRequest(path, self._fields, self._ignored)
