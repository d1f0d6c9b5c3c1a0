"""Environment variables that look like options and are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.config_tables import FILE_ONLY, belongs
from ovchat_server.near_names import did_you_mean
from ovchat_server.option_types import ENVIRONMENT_PREFIX
from ovchat_server.options import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Others' variables are no misspelt ones: Kubernetes makes OVCHAT_PORT and OVCHAT_SERVICE_HOST of a
# Service's name, and callers have an OVCHAT_API_KEY.
_CLOSE = 0.8


def unknown_variables(names: Iterable[str]) -> Iterator[str]:
    """Yield what to say of each variable that is no option, where one is likely to be meant."""
    options = {setting.name or "" for setting in SETTINGS}
    for name in sorted(names):
        key = name.removeprefix(ENVIRONMENT_PREFIX).lower()
        if not name.startswith(ENVIRONMENT_PREFIX) or key in options:
            continue
        if home := belongs(key, FILE_ONLY):
            yield f"{name} is no option: {home} of --config"
        elif meant := did_you_mean(key, options, _variable, cutoff=_CLOSE):
            yield f"{name} is no option{meant}"


def _variable(option: str) -> str:
    return ENVIRONMENT_PREFIX + option.upper()
