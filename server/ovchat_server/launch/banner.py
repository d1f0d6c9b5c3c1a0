"""The text that `ovchat up` prints when it is ready: addresses, and requests to copy."""

from __future__ import annotations

import json

from ovchat_server.launch.ports import authority


def banner(host: str, *, rest_port: int, grpc_port: int, model: str) -> str:
    """Render the banner for the address that clients on this machine use."""
    rest = f"http://{authority(host, rest_port)}"
    target = authority(host, grpc_port)
    name = json.dumps(model)
    question = "What is the capital of France?"
    message = f'{{"role": "user", "content": "{question}"}}'
    chat = f'"model": {name}, "messages": [{message}], "temperature": 0'
    turn = f'{{"role": "ROLE_USER", "content": [{{"text": "{question}"}}]}}'
    typed = f'"model": {name}, "messages": [{turn}]'
    return f"""\
ovchat is ready.  REST {rest}/v3   gRPC {target} (also on the REST port)

  An answer:
    curl {rest}/v3/chat/completions -H 'content-type: application/json' \\
      -d '{_shell(f"{{{chat}}}")}'

  The same as a stream:
    curl -N {rest}/v3/chat/completions -H 'content-type: application/json' \\
      -d '{_shell(f'{{{chat}, "stream": true}}')}'

  The OpenAI SDK:
    from openai import OpenAI
    client = OpenAI(base_url="{rest}/v3", api_key="unused")
    answer = client.chat.completions.create(
        model={name}, messages=[{message}], temperature=0
    )

  gRPC, by reflection:
    buf curl --protocol grpc --http2-prior-knowledge \\
      http://{target}/ovchat.v1.ChatService/CreateChatCompletion \\
      -d '{_shell(f"{{{typed}}}")}'
    grpcurl -plaintext {target} list

Ctrl-C ends it, after the answers that are under way; a second one at once.
"""


def _shell(text: str) -> str:
    """Escape `text` for a shell's single quotes."""
    return text.replace("'", "'\\''")
