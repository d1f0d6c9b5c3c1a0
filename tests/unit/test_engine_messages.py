"""The frames between server and engine process."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from typing import TypeAlias

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovchat_server.domain.models import EngineLoad
from ovchat_server.engine.contract.frames import LENGTH, FrameReader, encode
from ovchat_server.engine.contract.generation import BeamSearch, GenerationRequest, Sampling
from ovchat_server.engine.contract.generation_messages import (
    GenerationLimits,
    SequenceOutput,
    SequenceRequest,
    generation_decoder,
)
from ovchat_server.engine.contract.messages import (
    REFUSED,
    Cancel,
    Capabilities,
    Failed,
    IsolatedRun,
    Ready,
    Report,
    Start,
)
from ovchat_server.engine.contract.prompt import CACHE_SALTS, Prompt, PromptImage
from ovchat_server.engine.contract.speculation import Speculation

Command: TypeAlias = Start[SequenceRequest] | Cancel
Event: TypeAlias = Report[SequenceOutput] | Ready[GenerationLimits] | Failed | IsolatedRun

DECODER = generation_decoder()

COUNT = st.integers(0, 2**63 - 1)
TOKEN = st.integers(0, 2**31 - 1)
LOADS = st.builds(EngineLoad, *[COUNT] * len(dataclasses.fields(EngineLoad)))
GENERATIONS = st.builds(
    GenerationRequest,
    prompt=st.builds(
        Prompt,
        st.lists(TOKEN, max_size=8).map(tuple),
        st.lists(st.builds(PromptImage, COUNT, COUNT, st.integers(0, 2**60 - 1)), max_size=2).map(
            tuple
        ),
        st.integers(0, CACHE_SALTS - 1),
    ),
    max_tokens=st.integers(1, 2**32 - 1),
    sampling=st.builds(
        Sampling,
        temperature=st.floats(0, 2),
        top_p=st.floats(0, 1),
        top_k=st.integers(0, 2**31 - 1),
        min_p=st.floats(0, 1),
        repetition_penalty=st.floats(0, 100),
        seed=st.integers(0, 2**32 - 1),
    ),
    beam_search=st.none()
    | st.builds(BeamSearch, st.integers(2, 20), st.integers(1, 20), st.floats(-100, 100)),
    min_tokens=st.integers(0, 2**32 - 1),
    ignore_eos=st.booleans(),
    stop_tokens=st.lists(TOKEN, max_size=4).map(tuple),
    logprobs=st.booleans(),
    speculation=st.builds(Speculation, st.integers(0, 32), st.integers(0, 32), st.floats(0, 1)),
)
REQUESTS = st.builds(
    SequenceRequest,
    COUNT,
    GENERATIONS,
    generated=st.lists(TOKEN, max_size=4).map(tuple),
    suspect=st.booleans(),
    client=st.text(max_size=4),
)
COMMANDS: st.SearchStrategy[Command] = st.one_of(
    st.builds(Start, st.lists(REQUESTS, max_size=3).map(tuple)),
    st.builds(Cancel, COUNT),
)
OUTPUTS = st.builds(
    SequenceOutput,
    COUNT,
    st.integers(0, 127),
    st.lists(TOKEN, max_size=4),
    st.lists(st.floats(-1e9, 0), max_size=4),
    st.sampled_from([None, "stop", "length", REFUSED]),
    accepted=st.integers(0, 32),
    rejected=st.integers(0, 32),
)
EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(
        Ready,
        st.builds(GenerationLimits, COUNT, st.lists(COUNT, max_size=4).map(tuple)),
        LOADS,
        st.builds(Capabilities, st.booleans(), st.booleans()),
    ),
    st.builds(Failed, st.text()),
    st.builds(Report, st.lists(OUTPUTS, max_size=4), LOADS),
)


def cut(draw: st.DrawFn, data: bytes) -> list[bytes]:
    cuts = draw(st.sets(st.integers(0, len(data)), max_size=20))
    return [data[a:b] for a, b in pairwise(sorted({0, len(data)} | cuts))]


def body(frame: bytes) -> bytes:
    return frame[LENGTH.size :]


@given(COMMANDS)
def test_commands_arrive_as_they_were_sent(command: Command) -> None:
    assert DECODER.decode_command(body(encode(command))) == command


@given(EVENTS)
def test_events_arrive_as_they_were_sent(event: Event) -> None:
    assert DECODER.decode_event(body(encode(event))) == event


@given(st.lists(EVENTS, max_size=5), st.data())
def test_frames_may_be_cut_anywhere(events: list[Event], data: st.DataObject) -> None:
    stream = b"".join(map(encode, events))
    reader = FrameReader()
    frames = [
        frame
        for piece in data.draw(st.composite(lambda draw: cut(draw, stream))())
        for frame in reader.feed(piece)
    ]
    assert [DECODER.decode_event(frame) for frame in frames] == events


@given(COMMANDS)
def test_a_frame_comes_with_its_last_byte(command: Command) -> None:
    reader = FrameReader()
    frame = encode(command)
    came = [reader.feed(bytes([byte])) for byte in frame]
    assert came[:-1] == [[]] * (len(frame) - 1)
    assert came[-1] == [body(frame)]


def test_an_empty_frame_is_a_frame() -> None:
    assert FrameReader().feed(LENGTH.pack(0) * 2) == [b"", b""]


@pytest.mark.parametrize("frame", [b"", b"\xc1", b"\x80", body(encode(Failed("x")))])
def test_what_is_no_command_is_told(frame: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        DECODER.decode_command(frame)


def test_a_command_is_no_event() -> None:
    with pytest.raises(msgspec.ValidationError):
        DECODER.decode_event(body(encode(Cancel(1))))
