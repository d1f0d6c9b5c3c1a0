"""Finding the models that requests name: those of this server, and those of providers."""

from __future__ import annotations

import contextlib
import dataclasses
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from ovchat_server.domain.errors import (
    InvalidRequestError,
    ModelNotFoundError,
    Violation,
    shortened,
)
from ovchat_server.domain.field_path import ErrorText, FieldPath
from ovchat_server.domain.models import PROVIDER, ProviderStatus
from ovchat_server.serving.record import current_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ovchat_server.domain.models import ModelStatus
    from ovchat_server.serving.models import Model, ModelT


NO_ALIASES: Mapping[str, str] = MappingProxyType({})


class Provider(Protocol):
    """Something that has models elsewhere."""

    @property
    def name(self) -> str:
        """Return the name that its models' ids begin with, before a slash."""
        ...

    @property
    def status(self) -> ProviderStatus:
        """Return how it is doing, as far as is known; at once."""
        ...

    def models(self) -> Sequence[ModelStatus]:
        """Return the models that it is known to have, ids with its name; at once."""
        ...

    def model(self, identifier: str, field: str) -> Model:
        """Return the model of an id, which is without its name.

        Raises:
            ModelNotFoundError: It has none, or it is not to be served.
        """
        ...


class ModelRegistry:
    """Finds models by id. Models may come and go while it is used."""

    def __init__(
        self,
        models: Iterable[Model] = (),
        on_change: Callable[[], None] = lambda: None,
        providers: Iterable[Provider] = (),
        aliases: Mapping[str, str] = NO_ALIASES,
    ) -> None:
        """Serve some models.

        Args:
            models: Those of this server.
            on_change: Called after one was added or removed.
            providers: Those of models that run elsewhere.
            aliases: Further ids, each with that of the model that it stands for.
        """
        self._models: dict[str, Model] = {}
        self._on_change = on_change
        self._providers = {provider.name: provider for provider in providers}
        # Models of this server go without its name.
        self._aliases = {
            alias: model.removeprefix(f"{PROVIDER}/") for alias, model in aliases.items()
        }
        self._routes: dict[str, Model] = {}
        for model in models:
            self.add(model)

    def add(self, model: Model) -> None:
        """Serve a model from now on.

        Raises:
            ValueError: There is one of that id.
        """
        if model.id in self._models:
            raise ValueError(f"there is a model {model.id!r} already")
        self._models = dict(sorted([*self._models.items(), (model.id, model)]))
        self._on_change()

    def add_route(self, route: Model) -> None:
        """Have what stands for several models by its id, before any model of that id."""
        self._routes[route.id] = route

    def remove(self, identifier: str) -> None:
        """Stop serving a model; requests in flight keep it, and its engine keeps running.

        Raises:
            ModelNotFoundError: There is none of that id.
        """
        del self._models[self.local(identifier).id]
        self._on_change()

    def get(self, identifier: str, field: str = "model") -> Model:
        """Return the model of an id.

        Args:
            identifier: The id.
            field: The field of the request that names it.

        Raises:
            ModelNotFoundError: There is none.
        """
        identifier = self._visible(identifier, field)
        if identifier in self._routes:
            return self._routes[identifier]
        return self.routed(identifier, field)

    def status(self, identifier: str, field: str = "model") -> ModelStatus:
        """Return how the model of an id is doing, by that id; see get."""
        return self._by_alias(identifier, self.get(identifier, field))

    def local_status(self, identifier: str) -> ModelStatus:
        """Return how the model of this server of an id is doing, by that id; see get."""
        return self._by_alias(identifier, self.local(self._visible(identifier, "model")))

    def _by_alias(self, identifier: str, model: Model) -> ModelStatus:
        alias = identifier.removeprefix(f"{PROVIDER}/")
        status = model.status
        return dataclasses.replace(status, id=alias) if alias in self._aliases else status

    def routed(self, identifier: str, field: str = "model") -> Model:
        """Return the model of an id, which is no route: what routes lead to; see get."""
        name, slash, rest = identifier.partition("/")
        # A local model's id may have a slash, too.
        if slash and name in self._providers and identifier not in self._models:
            return self._providers[name].model(rest, field)
        return self.local(identifier, field)

    def local(self, identifier: str, field: str = "model") -> Model:
        """Return the model of this server of an id; see get."""
        identifier = self._unaliased(identifier)
        for name in (identifier, identifier.removeprefix(f"{PROVIDER}/")):
            if name in self._models:
                return self._models[name]
        raise not_found(field, self._not_found(identifier))

    def _unaliased(self, identifier: str) -> str:
        return self._aliases.get(identifier.removeprefix(f"{PROVIDER}/"), identifier)

    def _visible(self, identifier: str, field: str) -> str:
        """Return the id without alias of a model that the current request's caller may use."""
        if not self._allowed(identifier):
            raise not_found(field, self._not_found(identifier))
        return self._unaliased(identifier)

    def _allowed(self, identifier: str) -> bool:
        """Return whether the caller may use a model: by the id given, or by the model's own."""
        own = (identifier, self._unaliased(identifier))
        rules = current_record().caller.rules
        return rules.allow(*(name.removeprefix(f"{PROVIDER}/") for name in own))

    def _not_found(self, identifier: str) -> str:
        ids = {*self._models, *self._routes, *self._aliases}
        known = sorted(filter(self._allowed, ids))
        message = (
            f"The model {shortened(identifier)!r} does not exist. "
            f"Available models: {', '.join(known) or 'none'}."
        )
        if self._providers:
            message += f" Providers: {', '.join((PROVIDER, *self._providers))}."
        return message

    def get_as(self, kind: type[ModelT], identifier: str) -> ModelT:
        """Return the model of an id, checking its kind.

        Args:
            kind: The kind that the request is for.
            identifier: The id; "" for the only model of that kind.

        Raises:
            ModelNotFoundError: There is none.
            InvalidRequestError: It is of another kind, or there are several to choose from.
        """
        model = self.get(identifier) if identifier else self._only(kind)
        return self._checked(kind, identifier, model)

    def asked(self, kind: type[ModelT], operation: str, identifier: str) -> ModelT:
        """Return the model that the current request asks for, which is noted in its record.

        Args:
            kind: See get_as.
            operation: What is asked of it; see RequestRecord.
            identifier: See get_as.

        Raises:
            ModelNotFoundError: See get_as.
            InvalidRequestError: See get_as.
        """
        record = current_record()
        record.operation, record.requested_model = operation, identifier
        model = self.get_as(kind, identifier)
        record.ask(model.id)
        return model

    def routed_as(self, kind: type[ModelT], identifier: str) -> ModelT:
        """Return the model of an id, which is no route, checking its kind; see get_as."""
        return self._checked(kind, identifier, self.routed(identifier))

    def _checked(self, kind: type[ModelT], identifier: str, model: Model) -> ModelT:
        if isinstance(model, kind):
            return model
        complaint = f"names {identifier!r}, a model for {model.type}, not for {kind.type}."
        if self._unaliased(identifier) in self._routes:
            complaint = f"names {identifier!r}, a route, which cannot do this: name its model."
            raise InvalidRequestError.about("model", complaint)
        if model.type == kind.type:
            complaint = f"names {identifier!r}, which runs at a provider: it cannot do this."
        raise InvalidRequestError.about("model", complaint)

    def _only(self, kind: type[ModelT]) -> ModelT:
        able = [
            model
            for model in self._models.values()
            if isinstance(model, kind) and self._allowed(model.id)
        ]
        # Beside those that are made for it nobody means others, which can do it, too.
        models = [model for model in able if model.type == kind.type] or able
        if len(models) == 1:
            return models[0]
        served = ", ".join(model.id for model in models)
        complaint = (
            f"is required unless a single model is served. Available models: {served}."
            if served
            else f"cannot be left out: no model for {kind.type} is served."
        )
        raise InvalidRequestError.about("model", complaint, "missing_required_parameter")

    def statuses(self) -> tuple[ModelStatus, ...]:
        """Return how the models of this server are doing, by id."""
        models = self._models.values()
        return tuple(model.status for model in models if self._allowed(model.id))

    def named(self) -> tuple[ModelStatus, ...]:
        """Return how the models of this server are doing, by each of their ids."""
        own = [alias for alias, model in self._aliases.items() if model in self._models]
        return (*self.statuses(), *map(self.local_status, own))

    def listed(self) -> tuple[ModelStatus, ...]:
        """Return what can be asked for: models of this server and of providers, routes, aliases.

        Of providers those are listed that they are known to have.
        """
        found = {status.id: status for status in self.statuses()}
        for provider in self._providers.values():
            found |= {status.id: status for status in provider.models()}
        found |= {route.id: route.status for route in self._routes.values()}
        for alias in self._aliases:
            # A model may have been removed.
            with contextlib.suppress(ModelNotFoundError):
                found[alias] = self.status(alias)
        return tuple(status for name, status in found.items() if self._allowed(name))

    def providers(self) -> tuple[ProviderStatus, ...]:
        """Return this server and the other providers."""
        count = sum(map(self._allowed, {*self._models, *self._routes, *self._aliases}))
        own = ProviderStatus(
            PROVIDER, available=True, model_count=count, description="Models of this server."
        )
        return (own, *(provider.status for provider in self._providers.values()))

    def check_provider(self, name: str) -> None:
        """Refuse what is no provider of these models.

        Raises:
            ModelNotFoundError: It is none.
        """
        if name not in (PROVIDER, *self._providers):
            message = (
                f"There is no provider {shortened(name)!r}. "
                f"Providers: {', '.join((PROVIDER, *self._providers))}. "
                "Paths without one, such as /v1/chat/completions, are for the models of all."
            )
            raise ModelNotFoundError(message)

    def unready(self) -> str:
        """Return which models are not ready, and why; "" if all are."""
        return "; ".join(filter(None, (status.unavailable_reason for status in self.statuses())))


def not_found(field: str, message: str) -> ModelNotFoundError:
    """Return the error of a model that is not there; `field` is what names it."""
    code = ModelNotFoundError.code
    violation = Violation(FieldPath.of(field), ErrorText.of(message), code)
    return ModelNotFoundError(message, violations=[violation])
