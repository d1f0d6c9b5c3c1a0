from __future__ import annotations

import pytest

from ovchat_server.engine.scheduling.cached_prefixes import KnownPrefixes
from ovchat_server.engine.scheduling.partial_blocks import PartialBlocks

NAMES = KnownPrefixes(64, 4).names
TEXT = (1, 2, 3, 4, 5, 6)


def noted(*texts: tuple[int, ...], capacity: int = 8) -> PartialBlocks:
    blocks = PartialBlocks(capacity, 4)
    for text in texts:
        blocks.note(text, NAMES(text))
    return blocks


def found(blocks: PartialBlocks, prompt: tuple[int, ...]) -> set[tuple[int, ...]]:
    return {end for _, end in blocks.of(prompt, NAMES(prompt))}


@pytest.mark.parametrize("prompt", [TEXT, (*TEXT, 7), (*TEXT, 7, 8), (*TEXT, 9, 9, 9, 9)])
def test_a_prompt_that_begins_with_a_text_goes_on_in_its_last_block(
    prompt: tuple[int, ...],
) -> None:
    assert found(noted(TEXT), prompt) == {(5, 6)}


@pytest.mark.parametrize(
    "prompt", [(1, 2, 3, 4, 5), (1, 2, 3, 4, 5, 7), (9, 2, 3, 4, 5, 6), (5, 6)]
)
def test_one_that_differs_inside_the_text_does_not(prompt: tuple[int, ...]) -> None:
    assert found(noted(TEXT), prompt) == set()


def test_a_text_of_full_blocks_leaves_none_open() -> None:
    assert found(noted((1, 2, 3, 4)), (1, 2, 3, 4, 5)) == set()


def test_a_prompt_may_go_on_in_several() -> None:
    assert found(noted((1,), (1, 2), TEXT), (*TEXT, 7)) == {(1,), (1, 2), (5, 6)}


def test_the_same_end_behind_another_beginning_is_another_block() -> None:
    blocks = noted(TEXT, (4, 3, 2, 1, 5, 6))
    assert blocks.of(TEXT, NAMES(TEXT)).isdisjoint(
        blocks.of((4, 3, 2, 1, 5, 6), NAMES((4, 3, 2, 1)))
    )


def test_names_may_be_those_of_a_longer_text() -> None:
    whole = (*TEXT, 7, 8, 9)
    blocks = PartialBlocks(8, 4)
    blocks.note(TEXT, NAMES(whole))
    assert blocks.of(TEXT, NAMES(whole)) == noted(TEXT).of(TEXT, NAMES(TEXT)) != set()


def test_texts_that_were_noted_the_longest_ago_are_forgotten_first() -> None:
    blocks = noted((1,), (2,), (1,), (3,), capacity=2)
    assert [found(blocks, (token, 9)) for token in (1, 2, 3)] == [{(1,)}, set(), {(3,)}]
