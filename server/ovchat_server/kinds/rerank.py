"""Models that rank documents: cross-encoders, and Qwen3's rerankers."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ovchat_server.domain.models import RERANK_TYPE
from ovchat_server.engine.client.pooling_engine import SupervisedPoolingEngine
from ovchat_server.kinds.base import BuiltModel, ModelSettingsError
from ovchat_server.kinds.pooling_spec import pooling_files, pooling_spec
from ovchat_server.serving.model_folder import ModelFilesError
from ovchat_server.serving.model_task import CLASSIFIER, model_task
from ovchat_server.serving.pair_scorers import CrossEncoder
from ovchat_server.serving.pairs import CrossEncoderPairs, Qwen3Pairs
from ovchat_server.serving.pooling_files import read_sentence_transformers
from ovchat_server.serving.pooling_models import RerankModel
from ovchat_server.serving.scores import identity, probability_of_yes, sigmoid

if TYPE_CHECKING:
    from pathlib import Path

    from ovchat_server.kinds.base import EngineHost
    from ovchat_server.serving.pooling_files import PoolingFiles, SentenceTransformersFiles
    from ovchat_server.serving.scores import Activation
    from ovchat_server.settings import ModelSettings

QWEN3 = "Qwen3"


class Rerank:
    """See kinds.base.ModelKind."""

    type: ClassVar[str] = RERANK_TYPE
    options: ClassVar[frozenset[str]] = frozenset({"max_model_len", "max_batch_tokens"})

    def recognises(self, folder: Path) -> bool:
        """Return whether a folder holds a classifier of texts."""
        return model_task(folder) == RERANK_TYPE

    def build(self, settings: ModelSettings, host: EngineHost) -> BuiltModel:
        """Read a model's folder and build what serves it."""
        files = pooling_files(settings)
        architecture = files.architecture
        if architecture.endswith(CLASSIFIER):
            _check_labels(files)
            answers: tuple[int, ...] = ()
            activation = _activation(read_sentence_transformers(settings.path))
        elif architecture.startswith(QWEN3):
            answers = tuple(_answer(files, text) for text in ("no", "yes"))
            activation = probability_of_yes
        else:
            raise ModelSettingsError(
                f"the model {settings.name!r}: the architecture {architecture or '?'} is no "
                'reranker\'s: leave task = "rerank" out. Models of embeddings rank as they are'
            )
        template = Qwen3Pairs() if architecture.startswith(QWEN3) else CrossEncoderPairs()
        spec = pooling_spec(settings, files, host, "graph", answers)
        engine = SupervisedPoolingEngine(
            spec, host.on_change, observer=host.observers.pooling(settings.name)
        )
        model = RerankModel(
            id=settings.name,
            files=files,
            engine=engine,
            pair_scorer=CrossEncoder(template, activation),
        )
        return BuiltModel(model, engine)


def _check_labels(files: PoolingFiles) -> None:
    # transformers writes no labels where there are two, its default.
    labels = files.config.get("id2label", {"0": "", "1": ""})
    if isinstance(labels, dict) and len(labels) != 1:
        raise ModelFilesError(
            f"it sorts texts into {len(labels)} classes, and gives no score: it is no reranker"
        )


def _answer(files: PoolingFiles, text: str) -> int:
    token = files.tokenizer.token(text)
    if token is None:
        raise ModelFilesError(f"its tokenizer has no token {text!r}, with which rerankers answer")
    return token


def _activation(said: SentenceTransformersFiles) -> Activation:
    """Return what sentence-transformers' CrossEncoder does with the model's number."""
    known = {"": sigmoid, "Sigmoid": sigmoid, "Identity": identity}
    if said.activation not in known:
        raise ModelFilesError(f"its files ask for the activation {said.activation} of scores")
    return known[said.activation]
