"""Compiles grammars outside the steps of a pipeline, and bounds what they hold in memory.

genai compiles a grammar inside the step that first needs it, and has no other way in. A pipeline
too small to answer anything, with the same Tokenizer object and the same size of vocabulary,
compiles the same, and leaves the result where the real pipeline finds it: in the tokenizer's
StructuredOutputController, whose cache has no bound (sampler.cpp, xgrammar_backend.cpp, 2026.4.1).

The tokenizer replaces that controller when a pipeline with another size of vocabulary samples its
first token (tokenizer_impl.cpp, get_structured_output_controller). That is how it is emptied here.
Sequences keep the compiled grammars that they follow.
"""

from __future__ import annotations

import re
from pathlib import Path

import openvino as ov
import openvino_genai as genai

from ovchat_server.engine.genai.hooked_model import GRAPH
from ovchat_server.engine.genai.native_heap import NativeHeap
from ovchat_server.engine.genai.vision_folder import LANGUAGE_MODEL
from ovchat_server.engine.genai.weightless_pipeline import one_token, weightless_pipeline

BLOCKS = 4
# A grammar that compiles quickly can still be slow to follow: the first steps show it.
PROBED_TOKENS = 8
MAX_REASON_CHARACTERS = 200
# What compiled grammars may hold: those of some hundred sets of tools.
MAX_BYTES = 128 << 20
# The compiler says where in its source it complains, and which of its conditions failed.
SOURCE = re.compile(r".*\.(?:cc|cpp|h|hpp):\d+:\s*", re.DOTALL)
PREFIXES = re.compile(
    r"(?:Failed to create grammar from structural tag: |Invalid structural tag error: "
    r"|Check failed: \(.*?\) is false: )+",
    re.DOTALL,
)


class GrammarError(Exception):
    """A grammar that does not compile; the message is the compiler's reason, for a caller."""


class GrammarCompiler:
    """Compiles grammars for the pipelines of one tokenizer and vocabulary, one at a time.

    Attributes:
        tokenizer: That one.
        vocabulary_size: How many logits the model has.
    """

    def __init__(
        self, tokenizer: genai.Tokenizer, vocabulary_size: int, max_bytes: int = MAX_BYTES
    ) -> None:
        """Load two pipelines that answer nothing.

        Args:
            tokenizer: Holds the compiled grammars, for all pipelines made with this object.
            vocabulary_size: How many logits the real model has.
            max_bytes: What compiled grammars may hold before `full` asks to clear them.
        """
        self.tokenizer, self.vocabulary_size = tokenizer, vocabulary_size
        self._pipeline = weightless_pipeline(tokenizer, vocabulary_size, BLOCKS)
        self._other_vocabulary = weightless_pipeline(tokenizer, vocabulary_size + 1, BLOCKS)
        self._max_bytes = max_bytes
        # How often `clear` was called.
        self.cleared = 0
        self._heap = NativeHeap()

    @property
    def full(self) -> bool:
        """Whether the process has grown by more than `max_bytes` since the last `clear`.

        Whatever else grew is counted as well: then grammars are cleared too early, once.
        """
        return self._heap.growth > self._max_bytes

    def compile(self, grammar: str) -> None:
        """Compile a grammar, and follow it for a few tokens. Releases the GIL.

        Raises:
            GrammarError: It does not compile.
            MemoryError: It takes more memory than there is.
        """
        try:
            _generate(self._pipeline, PROBED_TOKENS, grammar)
        except RuntimeError as error:
            raise GrammarError(_reason(str(error))) from error

    def clear(self) -> None:
        """Free all compiled grammars that no sequence follows.

        No other pipeline of the tokenizer may be stepping, and no grammar be compiling: genai
        replaces the cache without a lock. Takes about 90 ms for `MAX_BYTES`.
        """
        self.cleared += 1
        _generate(self._other_vocabulary, 1)
        # And once more, so that two threads never find the wrong controller at the same time.
        _generate(self._pipeline, 1)
        self._heap.trim()


def load_compiler(directory: str, max_bytes: int = MAX_BYTES) -> GrammarCompiler:
    """Return a compiler for the model in a folder, with a tokenizer of its own."""
    return GrammarCompiler(genai.Tokenizer(directory), vocabulary_size(directory), max_bytes)


def structured(grammar: str) -> genai.StructuredOutputConfig:
    """Return genai's configuration of an answer that follows a grammar."""
    config = genai.StructuredOutputConfig()
    config.structural_tags_config = grammar
    return config


def vocabulary_size(directory: str) -> int:
    """Return how many logits the model in a folder has."""
    graphs = (Path(directory) / name for name in (LANGUAGE_MODEL, GRAPH))
    model = ov.Core().read_model(next(graph for graph in graphs if graph.is_file()))
    return int(model.output("logits").partial_shape[-1].get_length())


def _generate(
    pipeline: genai.ContinuousBatchingPipeline, max_tokens: int, grammar: str = ""
) -> None:
    config = genai.GenerationConfig()
    config.max_new_tokens = max_tokens
    if grammar:
        config.structured_output_config = structured(grammar)
    pipeline.generate([one_token()], [config])


def _reason(text: str) -> str:
    """Return the compiler's complaint without places in its source."""
    text = PREFIXES.sub("", SOURCE.sub("", text.strip())).strip()
    line = "".join(filter(str.isprintable, text.partition("\n")[0])).rstrip(" .")
    if len(line) > MAX_REASON_CHARACTERS:
        line = line[:MAX_REASON_CHARACTERS] + "..."
    return line or "it does not compile"
