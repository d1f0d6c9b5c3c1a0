"""Texts that need not be tokenized whole: too long ones, and those of which a part is kept."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from tokenizers import pre_tokenizers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import tokenizers

# Characters. Of most texts four are a token.
PER_TOKEN: Final = 8
SHORTEST_PART: Final = 1 << 10
# Characters. Tokenizing so many takes up to a second and, where each is a token, 0.4 GB.
MAX_UNCUT: Final = 1 << 20
# Tokenizers that drop spaces, or read a whole word as unknown, may lose so many characters.
MAX_LOST: Final = 1 << 20

# Characters.
BATCH: Final = 1 << 16

# Where every tokenizer separates words that has no token of two words. No blank or sign is near,
# of which many may be taken together.
BETWEEN_WORDS: Final = re.compile(r"(?<=[^\W\d_]) (?=[^\W\d_])")
SPACES: Final = str.maketrans({"Ġ": " ", "▁": " "})
# Characters that are searched for a place to cut, and what is tokenized to try it.
SEARCHED: Final = 1 << 12
TRIED: Final = 64

COMPOSED: Final[dict[str, Literal["NFC", "NFKC"]]] = {"NFC": "NFC", "NFKC": "NFKC"}
LOSSLESS_NORMALIZERS: Final = {"ByteLevel", "Lowercase", "NFD", "NFKD", "Prepend", *COMPOSED}
LOSSLESS_PRE_TOKENIZERS: Final = {"ByteLevel", "Digits", "Metaspace", "Punctuation"}
BYTES: Final = {
    "ByteLevel": pre_tokenizers.ByteLevel.alphabet(),
    "fallback": [f"<0x{byte:02X}>" for byte in range(256)],
}


def batches(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield texts in batches that take a tenth of a second; a longer text is one by itself.

    All threads of a process tokenize batches in the same few threads, one after the other, but a
    single text in their own.
    """
    begin = size = 0
    for end, text in enumerate(texts):
        size += len(text)
        if size > BATCH and end > begin:
            yield texts[begin:end]
            begin, size = end, len(text)
    if texts:
        yield texts[begin:]


class LongTextError(Exception):
    """A text is too long to be tokenized whole, and no place was found to cut it.

    Attributes:
        index: Which of those that were to be tokenized.
        characters: How many it has.
    """

    def __init__(self, index: int, characters: int) -> None:
        """Say which text it is, and how long."""
        super().__init__(f"text {index} has {characters} characters and cannot be cut")
        self.index = index
        self.characters = characters


class _Model(msgspec.Struct):
    """The part of a model that is read here; the vocabulary is skipped."""

    byte_fallback: bool = False


class _Description(msgspec.Struct):
    """The part of a `tokenizer.json` that is read here."""

    model: _Model
    normalizer: dict[str, Any] | None = None
    pre_tokenizer: dict[str, Any] | None = None
    added_tokens: list[dict[str, Any]] = []


class LongTexts:
    """What is known of texts of one tokenizer before they are tokenized."""

    def __init__(self, tokenizer: tokenizers.Tokenizer, description: str | bytes) -> None:
        """Read what a tokenizer does with texts.

        Args:
            tokenizer: It.
            description: Its `tokenizer.json`.
        """
        self._tokenizer = tokenizer
        vocabulary = tokenizer.get_vocab(with_added_tokens=True)
        self._longest_token = max(map(len, vocabulary))
        self._joins_words = any(
            BETWEEN_WORDS.search(token.translate(SPACES)) for token in vocabulary
        )
        read = msgspec.json.decode(description, type=_Description)
        normalizers = [*_steps(read.normalizer, "normalizers")]
        self._composed = next(
            (COMPOSED[item["type"]] for item in normalizers if item["type"] in COMPOSED), None
        )
        self._max_lost = 0 if _keeps_all(read, normalizers, vocabulary) else MAX_LOST

    def fewest_tokens(self, text: str) -> int:
        """Return a lower bound of the number of tokens of `text`, without tokenizing it.

        Where the tokenizer loses characters, some may be lost. A text that loses more than
        MAX_LOST of them counts nevertheless: to know better, it would have to be tokenized.
        """
        fewest = max(len(text) - self._max_lost, 0) // self._longest_token
        if fewest and self._composed and not text.isascii():
            composed = unicodedata.normalize(self._composed, text)
            fewest = max(len(composed) - self._max_lost, 0) // self._longest_token
        return fewest

    def part(self, text: str, characters: int, *, cut_left: bool) -> str:
        """Return the beginning of a text, whose tokens are the first ones of the whole text.

        Args:
            text: Any text.
            characters: How many it has at least.
            cut_left: Return the end instead, whose tokens are the last ones.

        Returns:
            The whole text if there is no such part.
        """
        if len(text) <= characters + SEARCHED or self._joins_words:
            return text
        start = len(text) - characters - SEARCHED if cut_left else characters
        for found in BETWEEN_WORDS.finditer(text, start, start + SEARCHED):
            if self._splits(text, found.start(), cut_left=cut_left):
                return text[found.start() :] if cut_left else text[: found.start()]
        return text

    def _splits(self, text: str, place: int, *, cut_left: bool) -> bool:
        """Return whether the tokens of a part are among those of the text around the cut."""
        around = self._ids(text[place - TRIED : place + TRIED])
        if cut_left:
            part = self._ids(text[place : place + TRIED])
            return around[len(around) - len(part) :] == part
        part = self._ids(text[place - TRIED : place])
        return around[: len(part)] == part

    def _ids(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False).ids


def _steps(step: Mapping[str, Any] | None, nested: str) -> Iterator[Mapping[str, Any]]:
    """Yield the steps of a normalizer or pre-tokenizer, those of sequences one by one."""
    if step is None:
        return
    if step["type"] == "Sequence":
        for inner in step[nested]:
            yield from _steps(inner, nested)
    else:
        yield step


def _keeps_all(
    read: _Description, normalizers: list[Mapping[str, Any]], vocabulary: Mapping[str, int]
) -> bool:
    """Return whether every character of a text is a part of some token."""
    splitters = [*_steps(read.pre_tokenizer, "pretokenizers")]
    byte_level = any(item["type"] == "ByteLevel" for item in (*normalizers, *splitters))
    fallback = read.model.byte_fallback
    letters = BYTES["ByteLevel" if byte_level else "fallback"]
    return (
        (byte_level or fallback)
        and all(letter in vocabulary for letter in letters)
        and not any(token["lstrip"] or token["rstrip"] for token in read.added_tokens)
        and all(map(_normalizes_all, normalizers))
        and all(map(_splits_all, splitters))
    )


def _normalizes_all(step: Mapping[str, Any]) -> bool:
    replaces = step["type"] == "Replace" and step["pattern"] == {"String": " "} and step["content"]
    return bool(replaces) or step["type"] in LOSSLESS_NORMALIZERS


def _splits_all(step: Mapping[str, Any]) -> bool:
    splits = step["type"] == "Split" and step["behavior"] != "Removed"
    return splits or step["type"] in LOSSLESS_PRE_TOKENIZERS
