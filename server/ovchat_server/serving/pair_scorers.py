"""How models score pairs of texts: read together, or by the likeness of their embeddings."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from ovchat_server.engine.contract.pooling_engine import TokenizedText
from ovchat_server.serving.pairs import PairBounds
from ovchat_server.serving.pooling import check_lengths, check_texts

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
            ContextLengthExceededError: Something is too long.
        """
        ...

    def scores(self, vectors: Sequence[bytes]) -> list[float]:
        """Return the score of each pair, given the vectors of all that was returned for them."""
        ...


@dataclass(frozen=True, slots=True)
class CrossEncoder:
    """Reads both texts of a pair together.

    Attributes:
        template: Makes the tokens of a pair.
        activation: Makes a score of what the model returns for a pair.
    """

    normalize: ClassVar[bool] = False

    template: PairTemplate
    activation: Activation

    def tokenize(
        self, files: PoolingFiles, pairs: Pairs, bounds: PairBounds
    ) -> list[TokenizedText]:
        """See PairScorer."""
        if bounds == PairBounds():
            check_texts(files, pairs.fields, pairs.seconds)
        texts = self.template.encode(files.tokenizer, pairs.first, pairs.seconds, bounds)
        check_lengths(files, pairs.fields, texts)
        return texts

    def scores(self, vectors: Sequence[bytes]) -> list[float]:
        """See PairScorer."""
        return [self.activation(array("f", vector)) for vector in vectors]


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
        texts = [self.before_first + pairs.first]
        texts += [self.before_second + second for second in pairs.seconds]
        fields = [pairs.first_field, *pairs.fields]
        if bounds == PairBounds():
            check_texts(files, fields, texts)
        most = min(filter(None, (bounds.tokens, bounds.second_tokens)), default=None)
        [first] = files.tokenizer.encode_batch(texts[:1], special_tokens=True)
        seconds = files.tokenizer.encode_batch(texts[1:], special_tokens=True, most_tokens=most)
        found = [TokenizedText.of(first), *map(TokenizedText.of, seconds)]
        check_lengths(files, fields, found)
        return found

    def scores(self, vectors: Sequence[bytes]) -> list[float]:
        """See PairScorer."""
        first, *seconds = (array("f", vector) for vector in vectors)
        return [sum(map(float.__mul__, first, second)) for second in seconds]
