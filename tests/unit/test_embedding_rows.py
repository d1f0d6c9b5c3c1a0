"""Rows of embeddings: what their further columns say, and that the model never sees them."""

from __future__ import annotations

import numpy as np
import pytest

from ovchat_server.engine.contract.prompt import CACHE_SALTS, Prompt, PromptImage
from ovchat_server.engine.genai.embedding_rows import AXES, NAME, OFFSETS, TOLD, RowFormat

# What genai looks at: every 50th number, ten at most.
LOOKED_AT = np.arange(0, 500, 50)
PROMPTS = [
    Prompt((1, 2, 3)),
    Prompt((1, 2, 131071)),
    Prompt((1, 2, 3), cache_salt=1),
    Prompt((1, 2, 3), cache_salt=CACHE_SALTS - 1),
    Prompt((1, 2, 3), (PromptImage(0, 2, 5),)),
    Prompt((1, 2, 3), (PromptImage(0, 2, 2**60 - 9),)),
    Prompt((1, 2, 3), (PromptImage(0, 2, 2**60 - 9),), cache_salt=CACHE_SALTS - 1),
    Prompt((1, 2, 3), (PromptImage(1, 2, 9),), cache_salt=CACHE_SALTS - 1, first_position=7),
]


def rows_of(prompt: Prompt, size: int = 128, axes: int = 1) -> np.ndarray:
    """The rows of a prompt all of whose embeddings are alike."""
    embeddings = np.ones((1, len(prompt), size), np.float32)
    return RowFormat(size, axes).rows(embeddings, prompt.cache_ids())


@pytest.mark.parametrize("size", [8, 128, 350, 2048])
def test_embeddings_come_out_as_they_went_in(size: int) -> None:
    embeddings = np.random.default_rng(0).normal(size=(1, 5, size)).astype(np.float32)
    form = RowFormat(size, 1)
    rows = form.rows(embeddings, range(5))
    assert rows.shape == (1, 5, form.width)
    np.testing.assert_array_equal(form.embeddings(rows), embeddings)
    scaled = RowFormat(size, 1, 12).scaled(embeddings)
    np.testing.assert_array_equal(scaled, embeddings * 12)


@pytest.mark.parametrize("size", [8, 128, 2048])
def test_genai_tells_prompts_apart_that_differ_in_their_cache_ids_alone(size: int) -> None:
    rows = [rows_of(prompt, size) for prompt in PROMPTS]
    looked_at = LOOKED_AT[rows[0].shape[-1] > LOOKED_AT]
    assert len({item[..., looked_at].tobytes() for item in rows}) == len(PROMPTS)


def test_all_that_is_added_is_exact_in_16_bits() -> None:
    columns = np.concatenate([NAME, OFFSETS])
    for prompt in PROMPTS:
        added = rows_of(prompt)[..., columns]
        assert (added == added.astype(np.int64)).all()
        assert 0 <= added.min() <= added.max() < 256


@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_step_tells_the_lowest_digits_of_cache_ids(prompt: Prompt) -> None:
    told = RowFormat(128, 1).told(rows_of(prompt))
    assert told.tolist() == [[number & TOLD for number in prompt.cache_ids()]]


def test_positions_are_plain_but_for_their_offsets() -> None:
    form = RowFormat(16, AXES)
    rows, plain = rows_of(Prompt((1, 2)), 16, AXES), np.array([[700, 800]])
    assert form.positions(rows, plain).tolist() == [[[700, 800]]] * AXES
    offsets = np.array([[[0, 0, 0], [1, 258, -300]]])
    rows = form.rows(form.embeddings(rows), [1, 2], offsets)
    assert form.positions(rows, plain)[:, 0].tolist() == [[700, 801], [700, 1058], [700, 500]]
    assert RowFormat(16, 1).positions(rows, plain) is plain
