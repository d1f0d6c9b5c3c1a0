"""Patterns and lengths of strings."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovchat_server.grammar.schema.automata import in_common, inside
from ovchat_server.grammar.schema.formats import BESIDE, SHORT, of_format
from ovchat_server.grammar.schema.nodes import PatternError, fitted, matches, width
from ovchat_server.grammar.schema.patterns import found_in, may_match, read_pattern

PATTERNS = [
    "^[a-z]{2,5}$",
    "^a",
    "b$",
    "^a|b$",
    "[0-9]{2}-a?",
    "^(x|yy)+z?$",
    "^(?:ab|(?P<name>c))*$",
    r"^\w+\s?\W*$",
    r"^[^\d\"]+$",
    r"^[\w.-]+\D\S$",
    "^.*$",
    "",
    "^$",
    r"^\u00e4\x41\t[^\n]\/$",
    "^a{0}b{2,}?$",
    *(rf"^\{kind}+$" for kind in "dDwWsS"),
    *(rf"^[^\{kind}]+$" for kind in "dDwWsS"),
    r"^[\]x-]?$",
]
AHEAD = [
    "^(?=a)[a-z]+$",
    "^(?!.*ab)[abc]*$",
    r"^(?=.*\d)(?=.*[a-z]).{2,}$",
    "^a(?=b|c$)[bc]+$",
    "^(?:a(?!b)|b){0,4}$",
    "^(?:(?!ab)[abc])*$",
    "^(?!^a$)a*",
    "^x?(?:a(?=.b)|c)+b*$",
    "(?!a)[ab]",
    r"^(?!\D)..",
]
texts = st.text(max_size=3) | st.text('ab01xyzc -.A\t\n"\\ä\u00a0٣', max_size=8)


@given(st.sampled_from(PATTERNS + AHEAD), texts | st.text("abc", max_size=6))
def test_what_is_written_for_a_pattern_matches_it(pattern: str, text: str) -> None:
    if matches(read_pattern(pattern), text):
        assert re.search(pattern.replace("$", r"\Z"), text)


@given(st.sampled_from(PATTERNS + AHEAD), texts | st.text("abc", max_size=6))
def test_what_matches_a_pattern_is_known_to_match(pattern: str, text: str) -> None:
    if re.search(pattern.replace("$", r"\Z"), text):
        assert matches(may_match(pattern), text)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^[a-z]+$", "abc"),
        ("^https://", "https://example.com"),
        (r"\.json$", "a.json"),
        ("[0-9]{3}-[0-9]{4}", "123-4567"),
        ("^a|b$", "aß"),
        (r"^\d{4}-\d{2}$", "2024-01"),
        ("^[ -~]+$", 'a "b" \\'),
        ("^[^a]*$", "größe"),
        ("", "anything"),
    ],
)
def test_a_pattern_matches_what_it_is_meant_for(pattern: str, text: str) -> None:
    assert matches(read_pattern(pattern), text)


def test_a_pattern_without_anchors_is_the_whole() -> None:
    assert not matches(read_pattern("[0-9]{3}"), "12345")


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "(?<=a)b",
            "(?i)a",
            r"(a)\1",
            r"\bword",
            r"\p{L}",
            r"\cA",
            r"a\u{41}",
        ),
        *(
            "a^",
            "(a$)",
            "a$b",
            "(",
            ")",
            "[a",
            "[]",
            "*a",
            "a**",
            "a{2",
            "a{3,2}",
            "a{1,2}{3}",
            "\\",
        ),
        *("[z-a]", r"[a-\d]"),
    ],
)
def test_what_is_not_understood_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        read_pattern(pattern)


@given(
    st.sampled_from(
        ["^[a-z]*$", "^[A-Z][a-z]+$", "^a{2,9}$", "^(ab)*$", "^a+b+", "^x?(a|bc){1,4}$", "^a"]
    ),
    st.integers(0, 8),
    st.none() | st.integers(0, 12),
    st.text("abcxA", max_size=14),
)
def test_a_pattern_with_a_length_keeps_both(
    pattern: str, shortest: int, longest: int | None, text: str
) -> None:
    try:
        node = fitted(read_pattern(pattern), shortest, longest)
    except PatternError:
        return
    low, high = width(node)
    assert low >= shortest
    assert longest is None or (high is not None and high <= longest)
    if matches(node, text):
        assert re.search(pattern, text)


@pytest.mark.parametrize(
    ("pattern", "shortest", "longest", "text"),
    [
        ("^[A-Z]{3}$", 3, 3, "EUR"),
        ("^[a-z0-9-]+$", 0, 20, "a" * 20),
        ("^[A-Z][a-z]*$", 2, 5, "Annas"),
        ("^https?://", 10, 30, "http://abc"),
        ("^(a|b+)$", 2, 4, "bbbb"),
        ("^[a-z]+-[a-z]+$", 0, 9, "abcd-efgh"),
        ("^https://[a-z]*", 0, 20, "https://abc"),
    ],
)
def test_lengths_that_people_give(pattern: str, shortest: int, longest: int, text: str) -> None:
    assert matches(fitted(read_pattern(pattern), shortest, longest), text)


@pytest.mark.parametrize("pattern", ["^((a*)*b?)*$", "(a{99999}){99999}", "^(a|a)*$"])
def test_no_pattern_takes_long(pattern: str) -> None:
    assert not matches(read_pattern(pattern), "a" * 3000 + "!")


@given(
    st.sampled_from(PATTERNS + AHEAD),
    st.sampled_from(["", *PATTERNS, *AHEAD]),
    st.lists(texts | st.text("abc", max_size=6), min_size=5, max_size=5),
)
def test_what_two_patterns_have_in_common_is_known(one: str, two: str, tried: list[str]) -> None:
    nodes = [found_in(one), found_in(two)]
    node = in_common(nodes)
    for text in tried:
        both = all(matches(part, text) for part in nodes)
        assert both == (node is not None and matches(node, text))
        if not both and matches(nodes[0], text):
            assert not inside(nodes[0], [nodes[1]])
    if node is not None:
        assert inside(node, nodes)


@pytest.mark.parametrize("name", SHORT)
def test_short_strings_of_a_format_have_it(name: str) -> None:
    whole = read_pattern(f"^({BESIDE[name]})$") if name in BESIDE else of_format(name)
    for pattern in SHORT[name]:
        assert inside(read_pattern(f"^({pattern})$"), [whole]), pattern
