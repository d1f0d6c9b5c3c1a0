"""Requests as engine processes get them, written in one line."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec

from ovchat_server.engine.contract.generation import GenerationRequest
from ovchat_server.engine.contract.generation_messages import SequenceRequest
from ovchat_server.engine.contract.prompt import Prompt

_OF_THE_SEQUENCE = {"id", "generated", "suspect", "ran", "client", "priority", "own_priority"}


def sequence_request(
    identifier: int, prompt: Prompt | tuple[int, ...], max_tokens: int, **fields: Any
) -> SequenceRequest:
    """Make a request; `fields` are GenerationRequest's and SequenceRequest's."""
    own = {name: fields.pop(name) for name in _OF_THE_SEQUENCE & fields.keys()}
    prompt = prompt if isinstance(prompt, Prompt) else Prompt(prompt)
    return SequenceRequest(identifier, GenerationRequest(prompt, max_tokens, **fields), **own)


def changed(request: SequenceRequest, **fields: Any) -> SequenceRequest:
    """Replace fields of a request; `fields` as of `sequence_request`."""
    own = {name: fields.pop(name) for name in _OF_THE_SEQUENCE & fields.keys()}
    generation = dataclasses.replace(request.generation, **fields)
    return msgspec.structs.replace(request, generation=generation, **own)
