"""What followed the last tokens before is proposed, and how often that comes is learnt."""

from __future__ import annotations

import pytest

from ovchat_server.engine.scheduling.prompt_lookup import PromptLookup


def lookup(text: str, answer: str = "", size: int = 2, prediction: str = "") -> PromptLookup:
    """A text of letters, and an answer that followed."""
    found = PromptLookup(map(ord, text), size, prediction=[*map(ord, prediction)])
    for letter in answer:
        found.append(ord(letter))
    return found


@pytest.mark.parametrize(
    ("text", "answer", "size", "expected"),
    [
        pytest.param("", "", 2, "", id="no text"),
        pytest.param("a", "", 2, "", id="shorter than what is looked up"),
        pytest.param("abcdef", "", 2, "", id="nothing repeats"),
        pytest.param("abcdeab", "", 2, "cdeab", id="at the end of the text"),
        pytest.param("abcde", "ab", 2, "cdeab", id="in the answer"),
        pytest.param("abXabYab", "", 2, "Yab", id="the last place"),
        pytest.param("abcdeb", "", 2, "", id="one token is not enough for two"),
        pytest.param("abcdeb", "", 1, "cdeb", id="but for one"),
        pytest.param("abcdeXbc", "", 3, "", id="nor two for three"),
        pytest.param("aaa", "", 2, "a", id="up to the end"),
        # "bc" was last before Y, but "abc" before X.
        pytest.param("abcXdbcY", "abc", 2, "XdbcYabc", id="a match is followed on"),
        pytest.param("abcXdbcY", "zbc", 2, "Yzbc", id="or begins where it was last"),
        pytest.param("abcXdeY", "abde", 2, "Yabde", id="another one, behind what differs"),
    ],
)
def test_what_followed_before_is_proposed(text: str, answer: str, size: int, expected: str) -> None:
    found = lookup(text, answer, size)
    assert "".join(map(chr, found.proposal(99))) == expected
    assert "".join(map(chr, found.proposal(2))) == expected[:2]
    assert not found.proposal(0)


@pytest.mark.parametrize(
    ("text", "answer", "size", "expected"),
    [
        pytest.param("abc", "", 2, "stuvw", id="from the first token on"),
        pytest.param("abc", "st", 2, "uvw", id="it is followed on"),
        pytest.param("a", "", 2, "stuvw", id="behind a text shorter than what is looked up"),
        pytest.param("a", "sX", 2, "", id="where the answer leaves it"),
        pytest.param("a", "sXuv", 2, "w", id="and comes back to it"),
        pytest.param("bc", "stuvw", 2, "", id="up to its end"),
        pytest.param("bc", "stuvwXbc", 2, "stuvwXbc", id="behind it what followed before"),
        pytest.param("bcXbc", "", 2, "stuvw", id="rather than what followed in the text"),
        pytest.param("abcstu", "", 2, "vw", id="in the middle of it, after a preemption"),
        pytest.param("abcX", "", 2, "stuvw", id="or outside of it"),
    ],
)
def test_a_prediction_is_proposed(text: str, answer: str, size: int, expected: str) -> None:
    found = lookup(text, answer, size, "stuvw")
    assert "".join(map(chr, found.proposal(99))) == expected


def test_what_is_proposed_ends_before_a_stop_token() -> None:
    found = PromptLookup(map(ord, "abcdeab"), 2, [ord("e")])
    assert "".join(map(chr, found.proposal(9))) == "cd"
    assert len(found.chances(9)) == 2


TEXT = "abcdefghijklmnopqrst"


def chance(found: PromptLookup) -> float:
    """That of the next token."""
    return found.chances(1)[0]


def test_what_comes_as_expected_makes_the_next_likelier() -> None:
    """First of all the tokens behind one that was right."""
    one, two = lookup(TEXT, "ab"), lookup(TEXT, "abc")
    first = chance(one)
    assert chance(two) > first
    last = chance(two)
    for letter in "defgh":
        two.append(ord(letter))
        assert last < (last := chance(two)) < 1


def test_what_does_not_makes_it_less_likely() -> None:
    """The first token of a match, where that differs each time."""
    found = lookup(TEXT)
    last = 1.0
    # Each match begins anew and is wrong at once.
    for number, pair in enumerate(["ab", "ef", "ij", "mn"]):
        for letter in pair:
            found.append(ord(letter))
        assert 0 < chance(found) < last
        last = chance(found)
        found.append(1000 + number)
    assert not found.proposal(1)


def test_what_is_far_off_is_less_likely_by_each_token_before_it() -> None:
    found = lookup(TEXT, "abc")
    chances = found.chances(5)
    assert chances == pytest.approx([chance(found) ** number for number in range(1, 6)])
    # Behind a match that is new, the first one has a chance of its own.
    new = lookup(TEXT, "ab")
    assert new.chances(2)[1] / chance(new) == pytest.approx(chances[0], rel=0.1)
    assert chance(new) != pytest.approx(chances[0], rel=0.1)
