"""A prompt as the engine reads it: tokens, and the images that stand among them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

TOKEN_BITS: Final = 32
IMAGE_BIT: Final = 1 << 60
# A salt and the token below it are 64 bits with a sign. It is long before a salt comes again.
CACHE_SALTS: Final = 1 << (63 - TOKEN_BITS)
CALLERS_SALTS: Final = CACHE_SALTS >> 1
# What numbers of 64 bits with a sign have in their two highest.
HIGHEST_BITS: Final = (1 << 62, -(1 << 63), -(1 << 62))
# As few as tell those apart that run at once: what is salted is read anew for each prompt.
SALTED_TOKENS: Final = 8
ANSWER_SALTS: Final = len(HIGHEST_BITS) ** SALTED_TOKENS


@dataclass(frozen=True, slots=True)
class PromptImage:
    """The place of an encoded image in a prompt.

    Attributes:
        start: The position of its first token.
        length: How many tokens it takes, at least 1.
        hash: Of the image, from 0 to below 2^60: images with the same one are the same to the
            model.
        rows: The path of the file with its encoded rows.
    """

    start: int
    length: int
    hash: int
    rows: str = ""

    @property
    def end(self) -> int:
        """The position after its last token."""
        return self.start + self.length


@dataclass(frozen=True, slots=True)
class Prompt:
    """What an engine reads before it generates.

    Attributes:
        tokens: Tokens of the model's vocabulary; those of an image are its placeholder, as in vLLM.
        images: The images, in the order of their places, which do not overlap.
        cache_salt: Prompts with different salts share nothing in the prefix cache, though they
            read the same. From 0, for none, to below CACHE_SALTS. Those from CALLERS_SALTS on tell
            callers apart, those below prompts of which nothing must be found.
        answer_salt: Prompts with different ones share nothing from one of their tokens on. From 0,
            for none, to below ANSWER_SALTS.
        answer_place: The place of that token, which SALTED_TOKENS - 1 others follow.
        first_position: The position of its first token. Where images take fewer positions than
            tokens, as in Qwen's vision models, it is what they take less: so the tokens behind the
            last image have the positions that they would have in a text.
    """

    tokens: tuple[int, ...]
    images: tuple[PromptImage, ...] = ()
    cache_salt: int = 0
    answer_salt: int = 0
    answer_place: int = 0
    first_position: int = 0

    def __len__(self) -> int:
        """Return how many tokens it has, those of images included."""
        return len(self.tokens)

    @property
    def image_tokens(self) -> int:
        """How many of its tokens are those of images."""
        return sum(image.length for image in self.images)

    def beginning(self, length: int) -> Prompt:
        """Return its first `length` tokens; an image may be cut there, an answer's salt not."""
        if length >= len(self.tokens):
            return self
        images = (
            dataclasses.replace(image, length=min(image.end, length) - image.start)
            for image in self.images
            if image.start < length
        )
        return dataclasses.replace(self, tokens=self.tokens[:length], images=tuple(images))

    def followed_by(self, tokens: Iterable[int]) -> Prompt:
        """Return it with more tokens at its end; what is salted stays so."""
        return dataclasses.replace(self, tokens=(*self.tokens, *tokens))

    def cache_ids(self) -> tuple[int, ...]:
        """Return what the prefix cache tells its tokens apart by: a number of 64 bits for each.

        In text that is the token itself, in an image a number that no token has. The first one has
        the salt in its upper half, and the first position, too: what is read at other positions is
        something else.

        The answer's salt stands in the two highest bits of several tokens. Where a prompt is
        echoed genai takes all but its first token for an index of 4-byte logits (2026.4.1,
        pipeline_impl.cpp, _fill_prompt_log_probs): those bits are beyond an address.
        """
        above = self.cache_salt ^ self.first_position
        if not (self.images or above or self.answer_salt):
            return self.tokens
        ids = [*self.tokens]
        for image in self.images:
            first = IMAGE_BIT + image.hash
            ids[image.start : image.end] = range(first, first + image.length)
        # Of an image the number may be as high as the sum has room for.
        ids[0] ^= above << TOKEN_BITS
        digits = self.answer_salt
        for place in range(self.answer_place, self.answer_place + SALTED_TOKENS):
            if not self.answer_salt:
                break
            # The lowest first, and none is 0: so prompts differ from the first of these tokens on.
            digits, digit = divmod(digits, len(HIGHEST_BITS))
            ids[place] += HIGHEST_BITS[digit]
        return tuple(ids)


def cache_salts() -> Iterator[int]:
    """Yield salts, each different from those before it for as long as there are others."""
    while True:
        yield from range(1, CALLERS_SALTS)
