"""Having Envoy ask for the key of a request before it reads its body."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ovchat_server.launch.envoy_config import Config

FILTER: Final = "envoy.filters.http.ext_authz"
# Of the routes whose requests have large bodies; probes, which need no key, have none.
ROUTE: Final = "post"


def check_keys(config: Config) -> None:
    """Turn the filter on that envoy.yaml has for it."""
    turned_on = {"@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig", "config": {}}
    for listener in config["static_resources"]["listeners"]:
        manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
        for host in manager["route_config"]["virtual_hosts"]:
            for route in host["routes"]:
                if route["name"] == ROUTE:
                    filters = route["typed_per_filter_config"]
                    route["typed_per_filter_config"] = filters | {FILTER: turned_on}
