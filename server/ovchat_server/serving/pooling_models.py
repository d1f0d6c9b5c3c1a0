"""Models that make vectors of texts, or scores of pairs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ovchat_server.domain.embeddings import InputType
from ovchat_server.domain.models import EMBEDDING_TYPE, RERANK_TYPE, ModelStatus
from ovchat_server.serving.pair_scorers import BiEncoder

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ovchat_server.engine.contract.pooling_engine import PoolingEngine
    from ovchat_server.serving.pair_scorers import PairScorer
    from ovchat_server.serving.pooling_files import PoolingFiles

# The names that models have for the prompts of each, of which the first one found counts
# (sentence-transformers' encode_query and encode_document).
PROMPT_NAMES: Mapping[InputType, Sequence[str]] = {
    InputType.QUERY: ("query",),
    InputType.DOCUMENT: ("document", "passage", "corpus"),
}


@dataclass(frozen=True, slots=True)
class PoolingModel(ABC):
    """A model that makes a vector of each text; see Model."""

    # All of them can rank; see ModelRegistry.get_as.
    type: ClassVar[str] = RERANK_TYPE

    id: str
    files: PoolingFiles
    engine: PoolingEngine

    @property
    @abstractmethod
    def scorer(self) -> PairScorer:
        """Return how it scores pairs of texts."""

    @property
    def status(self) -> ModelStatus:
        """See Model."""
        engine = self.engine.status
        return ModelStatus(
            id=self.id,
            created=self.files.created,
            context_length=self.files.context_length,
            capabilities=(),
            state=engine.state,
            state_reason=engine.reason,
            load=engine.load,
            type=self.type,
            sampling_control=False,
        )


@dataclass(frozen=True, slots=True)
class EmbeddingModel(PoolingModel):
    """A model that makes embeddings.

    Attributes:
        normalize: Whether its vectors have length 1, unless a request says.
        prompts: Texts to put before others, by name.
        default_prompt: The name of the one that is put before texts of requests that name none.
        matryoshka: The sizes that its vectors may be cut to; None: any; empty: none.
    """

    type: ClassVar[str] = EMBEDDING_TYPE

    normalize: bool
    prompts: Mapping[str, str]
    default_prompt: str | None = None
    matryoshka: Collection[int] | None = ()

    @property
    def scorer(self) -> PairScorer:
        """See PoolingModel."""
        return BiEncoder(self.prompt_for(InputType.QUERY), self.prompt_for(InputType.DOCUMENT))

    def prompt_for(self, input_type: InputType) -> str:
        """Return the text to put before those that are for something; "" if there is none."""
        names = PROMPT_NAMES[input_type]
        return next((self.prompts[name] for name in names if name in self.prompts), "")


@dataclass(frozen=True, slots=True)
class RerankModel(PoolingModel):
    """A model that was made to score pairs of texts."""

    type: ClassVar[str] = RERANK_TYPE

    pair_scorer: PairScorer

    @property
    def scorer(self) -> PairScorer:
        """See PoolingModel."""
        return self.pair_scorer
