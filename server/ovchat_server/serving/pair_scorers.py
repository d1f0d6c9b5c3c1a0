"""How models score pairs of texts: read together, or by the likeness of their embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from ovchat_server.domain.errors import InvalidRequestError
from ovchat_server.engine.contract.pooling_engine import TokenizedText
from ovchat_server.serving.pooling import check_length, check_lengths
from ovchat_server.serving.text_sizes import check_sizes, cutting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.domain.field_path import FieldPath
    from ovchat_server.serving.pairs import PairTemplate
    from ovchat_server.serving.pooling_files import PoolingFiles
    from ovchat_server.serving.scores import Activation


@dataclass(frozen=True, slots=True)
class Pairs:
    """A text that makes a pair with each of some others.

    Attributes:
        first: Such as a query.
        seconds: Such as documents.
        fields: The paths of these.
        first_field: The path of `first`.
    """

    first: str
    seconds: Sequence[str]
    fields: Sequence[FieldPath]
    first_field: FieldPath


@dataclass(frozen=True, slots=True)
class PairBounds:
    """How many tokens of pairs are kept. The second text is cut at its end; None: it is not.

    Attributes:
        tokens: Of a pair, with all that stands around the texts.
        second_tokens: Of the second text.
    """

    tokens: int | None = None
    second_tokens: int | None = None

    def room(self, around: int) -> int | None:
        """Return how many tokens of a second text are kept, with so many around it; None: all.

        Raises:
            InvalidRequestError: None would be.
        """
        if self.tokens is None:
            return self.second_tokens
        left = self.tokens - around
        if left < 1:
            complaint = (
                "leaves no room for a text: what stands around it, such as the query, has "
                f"{around} tokens."
            )
            raise InvalidRequestError.about("truncate_prompt_tokens", complaint)
        return left if self.second_tokens is None else min(left, self.second_tokens)


class PairScorer(Protocol):
    """Scores pairs with the vectors that a model makes.

    Attributes:
        normalize: Whether these must have length 1.
    """

    normalize: ClassVar[bool]

    def tokenize(
        self, files: PoolingFiles, pairs: Pairs, bounds: PairBounds
    ) -> list[TokenizedText]:
        """Return what the model has to read.

        Raises:
            InvalidRequestError: Something is too long, or nothing.
        """
        ...

    def scores(self, vectors: Sequence[bytes]) -> list[float]:
        """Return the score of each pair, given the vectors of all that was returned for them."""
        ...


@dataclass(frozen=True, slots=True)
class CrossEncoder:
    """Reads both texts of a pair together.

    Attributes:
        template: What stands around the texts of a pair.
        activation: Makes a score of what the model returns for a pair.
    """

    normalize: ClassVar[bool] = False

    template: PairTemplate
    activation: Activation

    def tokenize(
        self, files: PoolingFiles, pairs: Pairs, bounds: PairBounds
    ) -> list[TokenizedText]:
        """See PairScorer."""
        check_sizes(files, [(pairs.first_field, pairs.first)])
        frame = self.template.frame(files.tokenizer, pairs.first)
        # Before it is copied for each pair.
        check_length(files, pairs.first_field, frame.count)
        most = bounds.room(frame.count)
        second = len(frame.before) if frame.typed else 0
        if most is None:
            check_sizes(files, zip(pairs.fields, pairs.seconds, strict=True))
        texts = [self.template.lead + text for text in pairs.seconds]
        with cutting(pairs.fields):
            tokenized = files.tokenizer.encode_batch(texts, most_tokens=most)
        found = [
            TokenizedText.of([*frame.before, *tokens, *frame.behind], second)
            for tokens in tokenized
        ]
        check_lengths(files, pairs.fields, found, frame.count)
        return found

    def scores(self, vectors: Sequence[bytes]) -> list[float]:
        """See PairScorer."""
        return [self.activation(np.frombuffer(vector, "<f4").tolist()) for vector in vectors]


@dataclass(frozen=True, slots=True)
class BiEncoder:
    """Compares the embeddings of both texts, by the cosine of the angle between them (vLLM).

    Attributes:
        before_first: The model's prompt for queries.
        before_second: The model's prompt for documents.
    """

    normalize: ClassVar[bool] = True

    before_first: str = ""
    before_second: str = ""

    def tokenize(
        self, files: PoolingFiles, pairs: Pairs, bounds: PairBounds
    ) -> list[TokenizedText]:
        """See PairScorer. The first text comes before the second ones."""
        tokenizer = files.tokenizer
        check_sizes(files, [(pairs.first_field, pairs.first)])
        first = tokenizer.encode(self.before_first + pairs.first, special_tokens=True)
        around = tokenizer.frame.count + len(tokenizer.encode(self.before_second))
        room = bounds.room(around)
        if room is None:
            check_sizes(files, zip(pairs.fields, pairs.seconds, strict=True))
        with cutting(pairs.fields):
            seconds = tokenizer.encode_batch(
                [self.before_second + second for second in pairs.seconds],
                special_tokens=True,
                most_tokens=None if room is None else around + room,
            )
        found = [TokenizedText.of(first), *map(TokenizedText.of, seconds)]
        check_lengths(files, [pairs.first_field, *pairs.fields], found)
        return found

    def scores(self, vectors: Sequence[bytes]) -> list[float]:
        """See PairScorer."""
        first, *seconds = (np.frombuffer(vector, "<f4") for vector in vectors)
        found: list[float] = (np.stack(seconds) @ first).tolist()
        return found
