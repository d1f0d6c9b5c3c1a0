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
# What a terminal takes for a colour, as the servers' lines have them.
_GREY: Final = "\x1b[90m"
_YELLOW: Final = "\x1b[33m"
_PLAIN: Final = "\x1b[0m"
# What has the level "WARNING" in envoy.yaml.
_FAULT: Final = "response.code >= 500 || response.code_details.contains('upstream')"


@dataclass(frozen=True, slots=True)
class EnvoyLogs:
    """How Envoy logs."""

    log_format: str = "json"
    """"text" or "json"."""
    level: str = "info"
    """The lowest level to log, of the servers' levels."""
    colours: bool = False
    """Whether text is for a terminal with colours."""

    @property
    def process_options(self) -> tuple[str, ...]:
        """Envoy's options for the log of its process."""
        pattern = _PATTERNS[self.log_format]
        if self._coloured:
            pattern = pattern.replace("%T", f"{_GREY}%T{_PLAIN}", 1)
        return ("--log-level", _LEVELS[self.level], "--log-format", pattern)

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
            fields = log["typed_config"]["log_format"]["json_format"]
            time = "%EMIT_TIME_LOCAL(%H:%M:%S)%"
            line = f"{fields['message']} request_id=%REQ(X-REQUEST-ID):128%"
            if self._coloured:
                colour = fields["level"].replace("WARNING", _YELLOW).replace("INFO", _PLAIN)
                time, line = f"{_GREY}{time}{_PLAIN}", f"{colour}{line}{_PLAIN}"
            line = f"{time} {line}\n"
            log["typed_config"]["log_format"] = {"text_format_source": {"inline_string": line}}

    @property
    def _coloured(self) -> bool:
        return self.colours and self.log_format == "text"


JSON_LOGS: Final = EnvoyLogs()
