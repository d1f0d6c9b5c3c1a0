"""What `ovchat up` prints when it is ready: addresses, and requests that work as typed."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

from ovchat_server.launch.ports import authority

_QUESTION = "What is the capital of France?"
# What a shell expands, in the callers' own environment: no key is printed.
_HEADER = '-H "authorization: Bearer $OVCHAT_API_KEY" '


def banner(
    host: str, *, rest_port: int, grpc_port: int, model: str, key_file: Path | None = None
) -> str:
    """Render the banner for the address that clients on this machine use.

    Args:
        host: The address.
        rest_port: Of REST.
        grpc_port: Of gRPC.
        model: Who is asked in the requests.
        key_file: Has the keys that callers need, if they need one.
    """
    rest = f"http://{authority(host, rest_port)}"
    target = authority(host, grpc_port)
    # Names of models have no quotes.
    name = f'"{model}"'
    message = f'{{"role": "user", "content": "{_QUESTION}"}}'
    chat = f'{{"model": {name}, "messages": [{message}], "temperature": 0}}'
    header = _HEADER if key_file else ""
    key = 'os.environ["OVCHAT_API_KEY"]' if key_file else '"unused"'
    return f"""\
ovchat is ready.  REST {rest}/v3   gRPC {target} (also on the REST port)
{_key(key_file)}
A request, which "stream": true makes a stream:

curl {rest}/v3/chat/completions {header}\\
  -H 'content-type: application/json' \\
  -d '{chat}'

The OpenAI SDK:

{"import os; " if key_file else ""}from openai import OpenAI
client = OpenAI(base_url="{rest}/v3", api_key={key})
answer = client.chat.completions.create(
    model={name}, messages=[{message}], temperature=0
)
print(answer.choices[0].message.content)

gRPC, by reflection:

{_grpc(target, name, header)}

More is in README.md and docs/. Ctrl-C ends it, after the answers under way; a second one at once.
"""


def _key(file: Path | None) -> str:
    if file is None:
        return ""
    # The first line that is neither empty nor a comment, as the server reads the file.
    first = f"awk 'NF && !/^[ \\t]*#/ {{ print $1; exit }}' {shlex.quote(str(file))}"
    return f"\nA key, for all requests below:\n\nexport OVCHAT_API_KEY=$({first})\n"


def _grpc(target: str, name: str, header: str) -> str:
    turn = f'{{"role": "ROLE_USER", "content": [{{"text": "{_QUESTION}"}}]}}'
    body = f'{{"model": {name}, "messages": [{turn}], "temperature": 0}}'
    method = "ovchat.v1.ChatService/CreateChatCompletion"
    if buf := _program("buf"):
        return (
            f"{buf} curl --protocol grpc --http2-prior-knowledge {header}\\\n"
            f"  http://{target}/{method} \\\n"
            f"  -d '{body}'"
        )
    return f"grpcurl -plaintext {header}-d '{body}' \\\n  {target} {method}"


def _program(name: str) -> str | None:
    """Return what to type for a program: its name, or its path if it is only beside Python."""
    if shutil.which(name):
        return name
    installed = Path(sys.executable).parent / name
    if not os.access(installed, os.X_OK):
        return None
    within = installed.is_relative_to(Path.cwd())
    return shlex.quote(str(installed.relative_to(Path.cwd()) if within else installed))
