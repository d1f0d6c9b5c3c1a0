"""Having Envoy ask for the key of a request before it reads its body."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ovchat_server.launch.envoy_config import http_manager, rest_listener

if TYPE_CHECKING:
    from ovchat_server.launch.envoy_config import Config

FILTER: Final = "envoy.filters.http.ext_authz"
# Of the routes whose requests have large bodies; probes, which need no key, have none.
ROUTE: Final = "post"


def check_keys(config: Config) -> None:
    """Turn the filter on that envoy.yaml has for it."""
    turned_on = {"@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig", "config": {}}
    for host in http_manager(rest_listener(config))["route_config"]["virtual_hosts"]:
        for route in host["routes"]:
            if route["name"] == ROUTE:
                # A new one: other routes share what it has.
                filters = route["typed_per_filter_config"]
                route["typed_per_filter_config"] = filters | {FILTER: turned_on}
