"""A model's tokenizer, from Hugging Face's `tokenizer.json`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
import tokenizers

from ovchat_server.tokenizer.freed_memory import return_freed_memory
from ovchat_server.tokenizer.long_texts import (
    MAX_UNCUT,
    PER_TOKEN,
    SHORTEST_PART,
    LongTextError,
    LongTexts,
    batches,
)
from ovchat_server.tokenizer.token_bytes import TokenBytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

# Decoding them holds the GIL for less than a tenth of a millisecond.
FEW_TOKENS = 1000
# What these leave behind is returned to the system, which takes a hundredth of the time.
MANY_CHARACTERS = 1 << 18
# Texts of single tokens.
REMEMBERED_TEXTS = 8192
# Their bytes. With alternatives, each token of an answer needs many.
REMEMBERED_BYTES = 1 << 15


class TokenizerError(Exception):
    """A model's folder has no usable tokenizer."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Special tokens around a text, or a pair.

    Attributes:
        between: Those of a pair between its texts.
        typed: Whether the texts of a pair have types of their own, the second one from its first
            token on.
    """

    before: tuple[int, ...] = ()
    between: tuple[int, ...] = ()
    behind: tuple[int, ...] = ()
    typed: bool = False

    @property
    def count(self) -> int:
        """The number of these tokens."""
        return len(self.before) + len(self.between) + len(self.behind)


NO_FRAME = Frame()


def kept(tokens: Sequence[int], most: int | None, *, cut_left: bool = False) -> Sequence[int]:
    """Return at most so many of some tokens, the first ones or the last ones; None: all."""
    if most is None or len(tokens) <= most:
        return tokens
    return tokens[len(tokens) - most :] if cut_left else tokens[:most]


class _Description(msgspec.Struct):
    """The part of a `tokenizer.json` that is read here; the vocabulary is skipped."""

    decoder: dict[str, Any] | None = None


class Tokenizer:
    """Text to tokens and back."""

    def __init__(self, tokenizer: tokenizers.Tokenizer, pad_token: str | None = None) -> None:
        """Wrap a tokenizer; its truncation and padding are turned off.

        Args:
            tokenizer: Hugging Face's.
            pad_token: The text of the token that fills up sequences.
        """
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        vocabulary = tokenizer.get_vocab(with_added_tokens=True)
        # Half of what is decoded while answers are written.
        self._text_alone = lru_cache(REMEMBERED_TEXTS)(self._decode_one)
        self._bytes_alone = lru_cache(REMEMBERED_BYTES)(self._spell_one)
        # Ids may have gaps: this is what they stay below.
        self.vocabulary_size = max(vocabulary.values()) + 1
        self.pad_token = None if pad_token is None else vocabulary.get(pad_token)
        added = tokenizer.get_added_tokens_decoder()
        self.control_tokens = frozenset(token.content for token in added.values() if token.special)
        self.markup_tokens = frozenset(
            token.content for token in added.values() if not token.special
        )
        description = tokenizer.to_str()
        self._long_texts = LongTexts(tokenizer, description)
        decoder = msgspec.json.decode(description, type=_Description).decoder
        self._bytes_of = TokenBytes.of(decoder)
        # Some are tokens of the model, too, and written in its letters (Gemma's "▁▁").
        known = tokenizer.get_vocab(with_added_tokens=False)
        self._plain = {
            number: token.content.encode()
            for number, token in added.items()
            if token.content not in known
        }

    @classmethod
    def load(cls, directory: Path) -> Tokenizer:
        """Load the tokenizer of a model's folder.

        Raises:
            TokenizerError: There is none, or it cannot be read.
        """
        path = directory / "tokenizer.json"
        if not path.is_file():
            raise TokenizerError("there is no tokenizer.json")
        try:
            tokenizer = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # tokenizers raises bare Exception
            raise TokenizerError(f"tokenizer.json cannot be read: {error}") from error
        return cls(tokenizer, _pad_token(directory / "tokenizer_config.json"))

    @property
    def vocabulary(self) -> dict[int, str]:
        """Every token as the vocabulary writes it."""
        known = self._tokenizer.get_vocab(with_added_tokens=True)
        return {token: text for text, token in known.items()}

    def token(self, text: str) -> int | None:
        """Return the id of the token with this text, or None if there is none."""
        return self._tokenizer.token_to_id(text)

    def token_text(self, token: int) -> str:
        """Return a token as the vocabulary writes it, such as "Ġthe", or "" if there is none."""
        return self._tokenizer.id_to_token(token) or ""

    def token_bytes(self, token: int) -> bytes:
        """Return the bytes that a token stands for, empty for an id without a token.

        A token may be a part of a character. Those of a text, joined, are the text in UTF-8,
        with the space in front that some tokenizers add.
        """
        return self._bytes_alone(token)

    def encode(
        self, text: str, *, special_tokens: bool = False, most_tokens: int | None = None
    ) -> list[int]:
        """Tokenize a text.

        Args:
            text: Any text. That of a special token is read as the token.
            special_tokens: Whether to add the special tokens that the tokenizer puts around a
                text, such as BOS. A chat template writes its own.
            most_tokens: The maximum number of tokens, including special tokens; the end of a
                longer text is cut off. Of a long one only a part is tokenized.

        Raises:
            LongTextError: There is a maximum, and no place to cut a text of megabytes.
        """
        # Unlike `encode`, the batch form leaves the GIL: 8 MB of text take seconds.
        [tokens] = self.encode_batch([text], special_tokens=special_tokens, most_tokens=most_tokens)
        return tokens

    def encode_batch(
        self,
        texts: Sequence[str],
        *,
        special_tokens: bool = False,
        most_tokens: int | None = None,
        cut_left: bool = False,
    ) -> list[list[int]]:
        """Tokenize texts, each by itself; see `encode`.

        Args:
            texts: Any texts.
            special_tokens: As of `encode`.
            most_tokens: As of `encode`.
            cut_left: Whether a longer text loses its beginning instead of its end.

        Raises:
            LongTextError: See `encode`.
        """
        frame = self.frame if special_tokens else NO_FRAME
        if most_tokens is None:
            found, room = self._ids(texts), None
        else:
            room = max(most_tokens - frame.count, 0)
            found = self._ids_of_parts(texts, room, cut_left=cut_left)
        return [
            [*frame.before, *kept(ids, room, cut_left=cut_left), *frame.behind][:most_tokens]
            for ids in found
        ]

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        found: list[list[int]] = []
        for batch in batches(texts):
            encodings = self._tokenizer.encode_batch_fast(batch, add_special_tokens=False)
            found += [encoding.ids for encoding in encodings]
            del encodings
        if sum(map(len, texts)) > MANY_CHARACTERS:
            return_freed_memory()
        return found

    def _ids_of_parts(
        self, texts: Sequence[str], tokens: int, *, cut_left: bool
    ) -> list[list[int]]:
        """Tokenize of each text the part that has so many tokens, and maybe more."""
        found: list[list[int]] = [[] for _ in texts]
        characters = max(PER_TOKEN * tokens, SHORTEST_PART)
        left = dict(enumerate(texts))
        while left:
            parts = {
                index: self._long_texts.part(text, characters, cut_left=cut_left)
                for index, text in left.items()
            }
            for index, part in parts.items():
                if len(part) > max(2 * characters, MAX_UNCUT):
                    raise LongTextError(index, len(part))
            for index, ids in zip(parts, self._ids([*parts.values()]), strict=True):
                found[index] = ids
                if len(ids) >= tokens or len(parts[index]) == len(texts[index]):
                    del left[index]
            characters *= 4
        return found

    @cached_property
    def frame(self) -> Frame:
        """The special tokens that the tokenizer puts around a text."""
        # Cutting an Encoding and joining it with special tokens takes time for each piece that was
        # cut off, so tokens are cut and joined here.
        whole = self._tokenizer.encode("a")
        places = whole.sequence_ids
        first, last = places.index(0), len(places) - places[::-1].index(0)
        return Frame(tuple(whole.ids[:first]), behind=tuple(whole.ids[last:]))

    @cached_property
    def pair_frame(self) -> Frame:
        """The special tokens that the tokenizer puts around the texts of a pair."""
        whole = self._tokenizer.encode("a", "a")
        places, types = whole.sequence_ids, whole.type_ids
        first, second = places.index(0), places.index(1)
        between = len(places[:second]) - places[:second][::-1].index(0)
        last = len(places) - places[::-1].index(1)
        ids = tuple(whole.ids)
        return Frame(
            ids[:first], ids[between:second], ids[last:], typed=types[first] != types[second]
        )

    def fewest_tokens(self, text: str) -> int:
        """See LongTexts.fewest_tokens."""
        return self._long_texts.fewest_tokens(text)

    def decode(self, tokens: Sequence[int], *, special_tokens: bool = False) -> str:
        """Detokenize `tokens`, with U+FFFD for bytes that are not UTF-8.

        Args:
            tokens: Ids of the vocabulary; others have no text.
            special_tokens: Whether the text includes that of special tokens.
        """
        if len(tokens) == 1:
            return self._text_alone(tokens[0], special_tokens)
        if len(tokens) <= FEW_TOKENS:
            return self._tokenizer.decode(tokens, skip_special_tokens=not special_tokens)
        # The batch form leaves the GIL, but costs 20 times as much for a token.
        [text] = self._tokenizer.decode_batch([tokens], skip_special_tokens=not special_tokens)
        return text

    def _decode_one(self, token: int, special_tokens: bool) -> str:  # noqa: FBT001  cached by place
        return self._tokenizer.decode([token], skip_special_tokens=not special_tokens)

    def _spell_one(self, token: int) -> bytes:
        plain = self._plain.get(token)
        return self._bytes_of(self.token_text(token)) if plain is None else plain


def _pad_token(path: Path) -> str | None:
    """Read the `pad_token` of a `tokenizer_config.json`, or None if it has none.

    Raises:
        TokenizerError: It cannot be read.
    """
    if not path.is_file():
        return None
    try:
        config: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise TokenizerError(f"{path.name} is not JSON: {error}") from error
    match config:
        case {"pad_token": str(text)} | {"pad_token": {"content": str(text)}}:
            return text
    return None
