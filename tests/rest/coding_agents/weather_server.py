"""The agents' tools as a server of the Model Context Protocol, over standard input and output."""

from __future__ import annotations

import json
import sys
from typing import Any

from tests.rest.agents.weather import TOOLS, run


def answer(method: str, given: dict[str, Any]) -> dict[str, Any]:
    """The result of a request."""
    match method:
        case "initialize":
            version = given["protocolVersion"]
            about = {"name": "weather", "version": "1"}
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
        case "tools/list":
            return {"tools": [described(tool["function"]) for tool in TOOLS]}
        case "tools/call":
            text = run(given["name"], json.dumps(given["arguments"]))
            return {"content": [{"type": "text", "text": text}]}
        case _:
            return {}


def described(function: Any) -> dict[str, Any]:
    """A tool as the protocol has it."""
    return {
        "name": function["name"],
        "description": function["description"],
        "inputSchema": function["parameters"],
        # Or somebody has to approve of its calls.
        "annotations": {"readOnlyHint": True},
    }


if __name__ == "__main__":
    for line in sys.stdin:
        message = json.loads(line)
        # Notifications have none.
        if "id" in message:
            result = answer(message["method"], message.get("params", {}))
            response = {"jsonrpc": "2.0", "id": message["id"], "result": result}
            sys.stdout.write(json.dumps(response) + "\n")
            sys.stdout.flush()
