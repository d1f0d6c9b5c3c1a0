"""A prompt as the engine reads it, and what the prefix cache tells it from others by."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ovchat_server.engine.contract.prompt import (
    ANSWER_SALTS,
    CACHE_SALTS,
    CALLERS_SALTS,
    SALTED_TOKENS,
    Prompt,
    PromptImage,
    cache_salts,
)
from ovchat_server.engine.scheduling.cached_prefixes import KnownPrefixes
from tests.sequence_requests import sequence_request
from tests.unit.scheduler_tools import BLOCK, FixedBudget, Run

PLACEHOLDER = 9
BUDGET = 2 * BLOCK


def pictured(image: int, *, start: int = 1, length: int = BLOCK, behind: int = 1) -> Prompt:
    """Text, an image, and text."""
    tokens = (*range(10, 10 + start), *(PLACEHOLDER,) * length, *range(30, 30 + behind))
    return Prompt(tokens, (PromptImage(start, length, image),))


def test_the_cache_ids_of_text_are_its_tokens() -> None:
    assert Prompt((1, 2, 3)).cache_ids() == (1, 2, 3)


def test_images_have_cache_ids_that_no_token_has_and_no_other_image() -> None:
    ids = [*pictured(5).cache_ids(), *pictured(5 + BLOCK).cache_ids()]
    in_images = [item for item in ids if item >= 2**32]
    assert len(set(in_images)) == len(in_images) == 2 * BLOCK
    assert max(in_images) < 2**63
    assert pictured(5).cache_ids() == pictured(5).cache_ids()


def test_images_stand_where_they_are() -> None:
    images = (PromptImage(1, 2, 5), PromptImage(4, 1, 6))
    ids = Prompt((1, 9, 9, 2, 9, 3), images).cache_ids()
    assert [item if item < 2**32 else None for item in ids] == [1, None, None, 2, None, 3]


@pytest.mark.parametrize("length", range(BLOCK + 3))
def test_a_beginning_has_the_beginning_of_the_cache_ids(length: int) -> None:
    prompt = pictured(5)
    beginning = prompt.beginning(length)
    assert len(beginning) == length
    assert beginning.cache_ids() == prompt.cache_ids()[:length]
    assert all(image.length >= 1 for image in beginning.images)


def test_what_follows_changes_nothing_before_it() -> None:
    longer = pictured(5).followed_by([7, 8])
    assert longer.cache_ids() == (*pictured(5).cache_ids(), 7, 8)
    assert longer.beginning(len(pictured(5))) == pictured(5)


def test_a_salt_changes_the_first_cache_id_alone() -> None:
    salted = [Prompt((5, 6, 7), cache_salt=salt).cache_ids() for salt in (1, 2, CACHE_SALTS - 1)]
    assert len({ids[0] for ids in salted}) == 3
    for first, *others in salted:
        assert 2**32 <= first < 2**63
        assert (first % 2**32, others) == (5, [6, 7])


def test_a_salt_and_the_first_position_both_change_the_first_cache_id() -> None:
    salts, positions = (0, 1 << 30, (1 << 30) + 1000), (0, 1, 2, 500)
    firsts = {
        Prompt((5, 6), cache_salt=salt, first_position=position).cache_ids()[0]
        for salt in salts
        for position in positions
    }
    assert len(firsts) == len(salts) * len(positions)


LONG = tuple(range(100, 100 + SALTED_TOKENS + 5))


def test_what_follows_leaves_the_answers_salt_where_it_is() -> None:
    salted = Prompt(LONG, answer_salt=7, answer_place=3)
    ids = salted.cache_ids()
    assert salted.followed_by([8]).followed_by([9, 10]).cache_ids() == (*ids, 8, 9, 10)
    # Others may share what is before it.
    assert ids[:3] == LONG[:3]


@pytest.mark.parametrize("salt", [1, 2, 3, 1000, ANSWER_SALTS - 1])
def test_a_salted_token_is_the_same_index_of_logits(salt: int) -> None:
    """Of 4 bytes each, as genai takes them from where a row is in memory."""
    ids = Prompt(LONG, answer_salt=salt, answer_place=3).cache_ids()
    assert np.array(ids, np.int64).tolist() == list(ids)
    assert [number * 4 % 2**64 for number in ids] == [token * 4 for token in LONG]
    assert [number % 2**32 for number in ids] == list(LONG)
    changed = [place for place, number in enumerate(ids) if number != LONG[place]]
    assert changed == list(range(3, 3 + SALTED_TOKENS))


def test_salts_that_follow_each_other_differ_at_once() -> None:
    salts = (1, 2, 3)
    ids = [Prompt(LONG, answer_salt=salt, answer_place=3).cache_ids() for salt in salts]
    assert len({item[3] for item in ids}) == len(ids)


@pytest.mark.parametrize(
    "prompt", [pictured(5), Prompt((5, 6, 7), cache_salt=1), Prompt((5, 6, 7), first_position=1)]
)
def test_any_beginning_of_what_follows_has_cache_ids(prompt: Prompt) -> None:
    longer = prompt.followed_by([8])
    for length in range(1, len(longer) + 1):
        assert longer.beginning(length).cache_ids() == longer.cache_ids()[:length]


def test_no_two_prompts_have_the_same_salt_and_none_has_no_salt() -> None:
    given = list(itertools.islice(cache_salts(), 100))
    assert len(set(given)) == 100
    assert 0 < min(given) <= max(given) < CALLERS_SALTS < CACHE_SALTS


def test_blocks_of_different_images_have_different_names() -> None:
    names = KnownPrefixes(8, BLOCK).names
    one, same, other = (names(pictured(image).cache_ids()) for image in (5, 5, 6))
    assert one == same
    assert set(one).isdisjoint(other)


@pytest.mark.parametrize(("second", "shared"), [(5, 3), (6, 0)], ids=["same", "other"])
def test_prompts_share_the_blocks_of_the_same_image_alone(second: int, shared: int) -> None:
    prompts = [pictured(image, length=3 * BLOCK) for image in (5, second)]
    run = Run(64, FixedBudget(BUDGET))
    requests = [
        sequence_request(number, prompt, 3, ignore_eos=True)
        for number, prompt in enumerate(prompts, 1)
    ]
    run.add(*requests)
    run.finish_all()
    run.right(*requests)
    assert sum(run.pipeline.read_tokens) == 2 * len(prompts[0]) - shared * BLOCK
