"""What Envoy logs, and how: as the servers do."""

from __future__ import annotations

from typing import Any, Final

# Envoy's "info" is what it does at its start, in a hundred lines.
_LEVELS: Final = {"debug": "info", "info": "warning", "warning": "warning", "error": "error"}
# spdlog's patterns. %j is the message as JSON has it.
_PATTERNS: Final = {
    "json": '{"timestamp":"%Y-%m-%dT%T.%f%z","level":"%l","logger":"envoy.%n","message":"%j"}',
    "text": "%T Envoy: %v",
}
_FAULT: Final = "response.code >= 500 || response.code_details.contains('upstream')"


def process_log_options(style: str, level: str) -> tuple[str, ...]:
    """Return Envoy's options for the log of the process itself.

    Args:
        style: "text" or "json".
        level: The lowest level to log, of the servers' levels.
    """
    return ("--log-level", _LEVELS[level], "--log-format", _PATTERNS[style])


def set_access_log(manager: dict[str, Any], style: str, level: str) -> None:
    """Have a connection manager of envoy.yaml log in this style what is of this level or above.

    Args:
        manager: The connection manager's configuration.
        style: "text" or "json".
        level: The lowest level to log, of the servers' levels.
    """
    if level == "error":
        del manager["access_log"]
        return
    [log] = manager["access_log"]
    if level == "warning":
        filters = log["filter"]["and_filter"]["filters"]
        typed = {**filters[0]["extension_filter"]["typed_config"], "expression": _FAULT}
        filters.append({"extension_filter": {**filters[0]["extension_filter"], "typed_config": typed}})
    if style == "text":
        message = log["typed_config"]["log_format"]["json_format"]["message"]
        line = f"%EMIT_TIME_LOCAL(%H:%M:%S)% {message} request_id=%REQ(X-REQUEST-ID):128%\n"
        log["typed_config"]["log_format"] = {"text_format_source": {"inline_string": line}}
