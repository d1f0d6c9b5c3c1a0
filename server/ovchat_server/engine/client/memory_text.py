"""What a loaded model takes of the machine's memory, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ovchat_server.engine.contract.messages import EngineMemory

MIB = 1 << 20
# Callers at once whose share of the KV cache is told.
CALLERS = 8


def memory_text(memory: EngineMemory, replicas: int) -> str:
    """Describe the memory of a model.

    Args:
        memory: What each of its engines takes.
        replicas: Servers that load it.
    """
    text = f"weights {_mib(memory.weights)}"
    if memory.kv_cache:
        text += (
            f", KV cache {_mib(memory.kv_cache)} for {memory.kv_tokens} tokens ({_room(memory)})"
        )
    if replicas > 1:
        total = replicas * (memory.weights + memory.kv_cache)
        text += f"; {_mib(total)} in {replicas} replicas"
    return text


def _room(memory: EngineMemory) -> str:
    each = min(memory.kv_tokens // CALLERS, memory.max_length)
    cut = memory.max_length < memory.context_length
    limit = (
        f"{memory.max_length} of the model's {memory.context_length}" if cut else memory.max_length
    )
    return f"up to {limit} for one caller, {each} each for {CALLERS}"


def _mib(size: int) -> str:
    return f"{-(-size // MIB)} MiB"
