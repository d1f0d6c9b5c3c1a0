"""The models of a server, as the settings have them: its own, routes and aliases."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ovchat_server.domain.errors import ApiError
from ovchat_server.kinds.base import ModelSettingsError, kind_of
from ovchat_server.serving.model_folder import ModelFilesError
from ovchat_server.serving.model_registry import ModelRegistry
from ovchat_server.serving.models import GenerativeModel
from ovchat_server.serving.routed_model import RoutedModel
from ovchat_server.start_error import StartError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ovchat_server.kinds.base import BuiltModel, EngineHost, ModelKind
    from ovchat_server.providers.providers import Providers
    from ovchat_server.settings import ModelSettings, RouteSettings, Settings


def built_models(
    settings: Sequence[ModelSettings], kinds: Sequence[ModelKind], host: EngineHost
) -> Sequence[BuiltModel]:
    """Build the models whose engines are ours. Starts nothing.

    Raises:
        ModelFilesError: A model's folder cannot be served.
        StartError: A model's settings do not fit it.
    """
    return [_built(model, kinds, host) for model in settings]


def registered_models(
    settings: Settings,
    built: Sequence[BuiltModel],
    providers: Providers,
    on_change: Callable[[], None],
) -> ModelRegistry:
    """Return the registry of built models, those of providers, routes and aliases.

    Raises:
        StartError: A route or an alias leads nowhere.
    """
    models = ModelRegistry(
        (item.model for item in built), on_change, providers.each, settings.aliases
    )
    for route in settings.routes:
        models.add_route(_routed(route, models))
    # The config file knows the names of providers, but not what they serve.
    for alias in settings.aliases:
        try:
            models.get(alias)
        except ApiError as error:
            raise StartError(f"the alias {alias!r}: {error}") from error
    return models


def _built(settings: ModelSettings, kinds: Sequence[ModelKind], host: EngineHost) -> BuiltModel:
    try:
        return kind_of(settings, kinds).build(settings, host)
    except ModelSettingsError as error:
        raise StartError(str(error)) from error
    except ModelFilesError as error:
        raise ModelFilesError(f"the model {settings.name!r}: {error}") from error


def _routed(settings: RouteSettings, models: ModelRegistry) -> RoutedModel:
    # mypy takes abstract classes for what cannot be asked for: its issue 4717.
    find = partial(models.routed_as, GenerativeModel)  # type: ignore[type-abstract]
    for model in settings.models:
        # The config file knows their names, but not their kinds, nor what providers serve.
        try:
            find(model)
        except ApiError as error:
            raise StartError(f"the route {settings.name!r}: {error}") from error
    return RoutedModel(settings.name, settings.models, find, settings.weights or ())
