"""Models that make embeddings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ovchat_server.domain.models import EMBEDDING_TYPE
from ovchat_server.engine.client.pooling_engine import SupervisedPoolingEngine
from ovchat_server.kinds.base import BuiltModel, ModelSettingsError
from ovchat_server.kinds.pooling_spec import pooling_files, pooling_spec
from ovchat_server.serving.model_task import VECTORS, model_task
from ovchat_server.serving.pooling_files import POOLINGS, read_sentence_transformers
from ovchat_server.serving.pooling_models import EmbeddingModel

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from ovchat_server.engine.contract.pooling_messages import PooledByGraph, Pooling
    from ovchat_server.kinds.base import EngineHost
    from ovchat_server.serving.pooling_files import PoolingFiles, SentenceTransformersFiles
    from ovchat_server.settings import ModelSettings

# Of sentence-transformers' models that were exported whole, with all of their steps.
WHOLE = "sentence_embedding"
_EXPORT = "`optimum-cli export openvino --task feature-extraction --library sentence_transformers`"


class TextEmbedding:
    """See kinds.base.ModelKind."""

    type: ClassVar[str] = EMBEDDING_TYPE
    options: ClassVar[frozenset[str]] = frozenset(
        {"pooling", "normalize", "matryoshka", "max_model_len", "max_batch_tokens"}
    )

    def recognises(self, folder: Path) -> bool:
        """Return whether a folder's graph returns vectors."""
        return model_task(folder) == EMBEDDING_TYPE

    def build(self, settings: ModelSettings, host: EngineHost) -> BuiltModel:
        """Read a model's folder and build what serves it."""
        files = pooling_files(settings)
        if not files.names & VECTORS:
            raise ModelSettingsError(
                f"the model {settings.name!r}: its graph returns no vectors of texts: leave task "
                "out, or export it for feature-extraction"
            )
        said = read_sentence_transformers(settings.path)
        spec = pooling_spec(settings, files, host, _pooling(settings, files, said))
        engine = SupervisedPoolingEngine(
            spec, host.on_change, observer=host.observers.pooling(settings.name)
        )
        # Without the files of sentence-transformers: as vLLM and OVMS have it.
        normalize = said.normalize is not False
        model = EmbeddingModel(
            id=settings.name,
            files=files,
            engine=engine,
            normalize=normalize if settings.normalize is None else settings.normalize,
            prompts=said.prompts,
            default_prompt=said.default_prompt,
            matryoshka=_matryoshka(settings, files.config),
        )
        return BuiltModel(model, engine)


def _pooling(
    settings: ModelSettings, files: PoolingFiles, said: SentenceTransformersFiles
) -> Pooling | PooledByGraph:
    """Return how the vectors of a text's tokens become one.

    Raises:
        ModelSettingsError: Nothing says so.
    """
    if settings.pooling is not None:
        return settings.pooling
    if WHOLE in files.names:
        return "graph"
    if said.unsupported:
        raise ModelSettingsError(
            f"the model {settings.name!r}: its modules.json has {' and '.join(said.unsupported)}, "
            f"which this export lacks; {_EXPORT} has all steps of a model in the graph. Sparse and "
            "multi-vector embeddings are not served"
        )
    if said.pooling is not None:
        return said.pooling
    if files.causal:
        return "lasttoken"
    # A guess would be wrong for half of all models, and nobody would see it.
    raise ModelSettingsError(
        f"the model {settings.name!r}: nothing in {settings.path} says how to pool the vectors of "
        f"its tokens. Put the model's own modules.json and 1_Pooling/ there, or export it with "
        f"{_EXPORT}, or set pooling in its [[models]] table to what its card says, one of "
        f"{', '.join(POOLINGS)}"
    )


def _matryoshka(settings: ModelSettings, config: Mapping[str, Any]) -> Collection[int] | None:
    """Return the sizes that the model's vectors may be cut to; None: any; empty: none."""
    if settings.matryoshka is not None:
        return None if settings.matryoshka else ()
    match config:
        case {"matryoshka_dimensions": [*sizes]}:
            return tuple(size for size in sizes if isinstance(size, int))
        case {"is_matryoshka": True}:
            return None
    return ()
