"""What `ovchat up` prints when it is ready: addresses, and requests that work as typed."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ovchat_server.launch.doors import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ovchat_server.launch.doors import Doors

_QUESTION = "What is the capital of France?"
# A red square on white, of 32x32: Qwen's encoders refuse images of less than 28x28.
_IMAGE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAACAAAAAgAQMAAABJtOi3AAAABlBMVEX/////AADrWueTAAAA"
    "GUlEQVR42mNgwAuY//8/wMTAwMBAOwI/AABqkwLoKHaLEgAAAABJRU5ErkJggg=="
)
# Lines are as keys.key_file reads them: comments, a key alone, or a name and its keys.
_FIRST_KEY = (
    r'{ sub(/(^|[ \t])#.*/, "") } NF { split(NF > 1 ? $2 : $1, key, ","); '
    r"if (key[1] !~ /^sha256:/) { print key[1]; exit } }"
)
# Read in the callers' own environment: no key is printed.
_HEADER = '-H "authorization: Bearer $OVCHAT_API_KEY" '
_END = """\
More is in README.md and docs/ of the repository.
Ctrl-C ends it, after the answers under way; a second one at once.
"""
_KEY = 'os.environ["OVCHAT_API_KEY"]'


def banner(
    doors: Doors,
    *,
    models: Mapping[str, bool],
    key_file: Path | None = None,
) -> str:
    """Render the banner for the addresses that clients on this machine use.

    Args:
        doors: The addresses.
        models: Who may be asked to chat, the first one first, and whether they take images.
        key_file: Has the keys that callers need, if they need one.
    """
    rest, target = doors.rest, doors.grpc
    header = doors.flags + (_HEADER if key_file else "")
    title = f"ovchat is ready.  REST {rest}/v3   gRPC {target} (also on the REST port)"
    if not models:
        return f"""\
{title}
{_key(key_file)}
Its models:

curl {rest}/v3/models {header}

{_END}"""
    # Names of models have no quotes.
    name = f'"{next(iter(models))}"'
    sees = next((model for model, takes_images in models.items() if takes_images), None)
    message = f'{{"role": "user", "content": "{_QUESTION}"}}'
    chat = f'{{"model": {name}, "messages": [{message}], "temperature": 0}}'
    key = _KEY if key_file else '"unused"'
    program = _program("buf")
    grpc = (
        _by_reflection(program, doors, name, header) if program else _typed(doors, name, key_file)
    )
    return f"""\
{title}
{_key(key_file)}
A request, which "stream": true makes a stream:

curl {rest}/v3/chat/completions {header}\\
  -H 'content-type: application/json' \\
  -d '{chat}'
{_with_image(rest, sees, header) if sees else ""}
The OpenAI SDK, from `pip install openai`:

{"import os; " if key_file else ""}{doors.tls.sdk if doors.tls else "from openai import OpenAI"}
client = OpenAI(base_url="{rest}/v3", api_key={key}{", http_client=http" if doors.tls else ""})
answer = client.chat.completions.create(
    model={name}, messages=[{message}], temperature=0
)
print(answer.choices[0].message.content)

{grpc}

{_END}"""


def _key(file: Path | None) -> str:
    if file is None:
        return ""
    # Of the first line whose key the file has in clear; if it has hashes alone, what is set stays.
    first = f"awk '{_FIRST_KEY}' {shlex.quote(str(file))}"
    return (
        "\nA key, for all requests below (or the one that `ovchat keys new` printed):\n\n"
        f"found=$({first}); export OVCHAT_API_KEY=${{found:-$OVCHAT_API_KEY}}\n"
    )


def _with_image(rest: str, model: str, header: str) -> str:
    return f"""
A request with an image:

curl {rest}/v3/chat/completions {header}\\
  -H 'content-type: application/json' \\
  -d '{{"model": "{model}", "temperature": 0, "messages": [{{"role": "user", "content": [
    {{"type": "text", "text": "What do you see?"}},
    {{"type": "image_url", "image_url": {{"url":
      "{_IMAGE}"}}}}]}}]}}'
"""


def _by_reflection(buf: str, doors: Doors, name: str, header: str) -> str:
    plain = "" if doors.tls else "--http2-prior-knowledge "
    turn = f'{{"role": "ROLE_USER", "content": [{{"text": "{_QUESTION}"}}]}}'
    return f"""\
gRPC, by reflection:

{buf} curl --protocol grpc {plain}{header}\\
  {doors.grpc_url}/ovchat.v1.ChatService/CreateChatCompletion \\
  -d '{{"model": {name}, "messages": [{turn}], "temperature": 0}}'"""


def _typed(doors: Doors, name: str, key_file: Path | None) -> str:
    channel = f'insecure_channel("{doors.grpc}")'
    if doors.tls:
        channel = f'secure_channel("{doors.grpc}", {doors.tls.credentials})'
    key = f', metadata=[("authorization", "Bearer " + {_KEY})]' if key_file else ""
    return f"""\
gRPC, with the stubs that come with ovchat:

{shown(Path(sys.executable))} - <<'END'
import grpc{", os" if key_file else ""}
from ovchat.v1 import chat_pb2, chat_service_pb2_grpc, message_pb2
content = [message_pb2.ContentPart(text="{_QUESTION}")]
messages = [message_pb2.Message(role=message_pb2.ROLE_USER, content=content)]
request = chat_pb2.CreateChatCompletionRequest(model={name}, messages=messages, temperature=0)
with grpc.{channel} as channel:
    chat = chat_service_pb2_grpc.ChatServiceStub(channel)
    answer = chat.CreateChatCompletion(request{key})
print(answer.choices[0].message.content[0].text)
END"""


def _program(name: str) -> str | None:
    """Return what to type for a program: its name, or its path if it is only beside Python."""
    if shutil.which(name):
        return name
    installed = Path(sys.executable).parent / name
    return shown(installed) if os.access(installed, os.X_OK) else None
