"""The parts that serve requests, as the settings have them: pipelines, services, thread pools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from ovchat_server.grammar.cache import GrammarCache
from ovchat_server.images.sources import ImageSources
from ovchat_server.serving.answer_format import AnswerFormats
from ovchat_server.serving.chat import ChatStages
from ovchat_server.serving.codec_threads import CodecThreads
from ovchat_server.serving.completions import Completions
from ovchat_server.serving.embeddings import TextEmbeddings
from ovchat_server.serving.images import ImagePreparation
from ovchat_server.serving.limits import RequestRules
from ovchat_server.serving.pipeline import GenerationPipeline
from ovchat_server.serving.pooling import Pooler
from ovchat_server.serving.replica import Replica
from ovchat_server.serving.reranking import Reranking
from ovchat_server.serving.responses import Responses
from ovchat_server.serving.services import Services
from ovchat_server.serving.stored_responses import StoredResponses
from ovchat_server.serving.text import TextStages
from ovchat_server.serving.tokenization import Tokenization
from ovchat_server.serving.versions import installed_versions
from ovchat_server.serving.worker_pool import WorkerPool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from prometheus_client import Metric

    from ovchat_server.serving.model_registry import ModelRegistry
    from ovchat_server.settings import Settings

# Threads for reading large requests, writing grammars, and tokenizing for other work than
# generation. Each of these may take seconds: in pools of their own they do not delay chats. One of
# the threads is for another caller.
READ_THREADS = 3
GRAMMAR_THREADS = 3
TOKENIZE_THREADS = 3


@dataclass(frozen=True, slots=True)
class ServingParts:
    """What is needed before there is a model, and the services once there are models.

    Attributes:
        settings: How to serve.
        workers: Threads for rendering and other work that would block the event loop.
        images: Reads and encodes the images of chats.
        pipeline: How models answer whose engine is ours.
    """

    settings: Settings
    workers: WorkerPool
    images: ImagePreparation
    pipeline: GenerationPipeline

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Build the parts of a server."""
        workers = WorkerPool("serve")
        formats = AnswerFormats(GrammarCache(), WorkerPool("grammar", GRAMMAR_THREADS))
        images = ImagePreparation(
            ImageSources(
                settings.allowed_media_domains,
                settings.allowed_local_media_path,
                in_thread=WorkerPool("images").run,
            )
        )
        rules = RequestRules(settings.limits, settings.strict_parameters)
        pipeline = GenerationPipeline(
            ChatStages(formats, images), TextStages(formats), workers, rules
        )
        return cls(settings, workers, images, pipeline)

    def services(self, models: ModelRegistry, collect: Callable[[], Iterable[Metric]]) -> Services:
        """Return the services, which answer with `models`.

        Args:
            models: Those that are served.
            collect: Tells all metrics as they are now.
        """
        settings, kept = self.settings, self.settings.stored_responses
        timeout = settings.request_timeout or None
        tokenizers = WorkerPool("tokenize", TOKENIZE_THREADS)
        tokenization = Tokenization(
            models, self.images, tokenizers, timeout, settings.limits.max_tokenized_bytes
        )
        completions = Completions(models, timeout)
        pooler = Pooler(WorkerPool("pooling", TOKENIZE_THREADS), timeout)
        return Services(
            completions,
            Responses(
                completions,
                tokenization,
                StoredResponses(kept.max_count, kept.max_bytes, kept.max_age, self.workers),
                settings.limits,
                settings.max_request_bytes,
            ),
            tokenization,
            TextEmbeddings(models, pooler),
            Reranking(models, pooler),
            models,
            installed_versions(),
            CodecThreads(WorkerPool("read", READ_THREADS), self.workers),
            Replica(settings.server_number, settings.replicas, collect),
        )
