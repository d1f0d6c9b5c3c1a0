"""What Envoy logs, and how: as the servers do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

# Envoy's "info" is what it does at its start, in a hundred lines.
_LEVELS: Final = {"debug": "info", "info": "warning", "warning": "warning", "error": "error"}
# spdlog's patterns. %j is the message as JSON has it.
_PATTERNS: Final = {
    "json": '{"timestamp":"%Y-%m-%dT%T.%f%z","level":"%l","logger":"envoy.%n","message":"%j"}',
    "text": "%T Envoy: %v",
}
# What has the level "WARNING" in envoy.yaml.
_FAULT: Final = "response.code >= 500 || response.code_details.contains('upstream')"


@dataclass(frozen=True, slots=True)
class EnvoyLogs:
    """How Envoy logs."""

    log_format: str = "json"
    """"text" or "json"."""
    level: str = "info"
    """The lowest level to log, of the servers' levels."""

    @property
    def process_options(self) -> tuple[str, ...]:
        """Envoy's options for the log of its process."""
        return ("--log-level", _LEVELS[self.level], "--log-format", _PATTERNS[self.log_format])

    def set_access_log(self, manager: dict[str, Any]) -> None:
        """Adapt the access log of a connection manager of envoy.yaml."""
        if self.level == "error":
            # It has none.
            del manager["access_log"]
            return
        [log] = manager["access_log"]
        if self.level == "warning":
            filters = log["filter"]["and_filter"]["filters"]
            cel = filters[0]["extension_filter"]
            typed = {**cel["typed_config"], "expression": _FAULT}
            filters.append({"extension_filter": {**cel, "typed_config": typed}})
        if self.log_format == "text":
            message = log["typed_config"]["log_format"]["json_format"]["message"]
            line = f"%EMIT_TIME_LOCAL(%H:%M:%S)% {message} request_id=%REQ(X-REQUEST-ID):128%\n"
            log["typed_config"]["log_format"] = {"text_format_source": {"inline_string": line}}


JSON_LOGS: Final = EnvoyLogs()
