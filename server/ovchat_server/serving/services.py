"""The services, which all doors share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ovchat_server.serving.codec_threads import CodecThreads
    from ovchat_server.serving.completions import Completions
    from ovchat_server.serving.embeddings import TextEmbeddings
    from ovchat_server.serving.model_registry import ModelRegistry
    from ovchat_server.serving.replica import Replica
    from ovchat_server.serving.reranking import Reranking
    from ovchat_server.serving.responses import Responses
    from ovchat_server.serving.tokenization import Tokenization
    from ovchat_server.serving.versions import Versions


@dataclass(frozen=True, slots=True)
class Services:
    """The services, the threads in which doors read and encode, and the server that has them."""

    completions: Completions
    responses: Responses
    tokenization: Tokenization
    embeddings: TextEmbeddings
    reranking: Reranking
    models: ModelRegistry
    versions: Versions
    threads: CodecThreads
    replica: Replica
