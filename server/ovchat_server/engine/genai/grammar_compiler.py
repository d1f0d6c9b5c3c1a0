"""A pipeline too small to answer anything, which compiles grammars for a real one.

genai compiles a grammar inside the step that first needs it, and has no other way in. A
pipeline with the same tokenizer and the same size of vocabulary compiles the same, and leaves
the result where one that shares its Tokenizer object finds it.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import numpy as np
import openvino as ov
import openvino_genai as genai
from openvino import opset13 as op

from ovchat_server.engine.genai.graph_parts import integers, parameter, with_past

HEAD_SIZE = 32
BLOCKS = 4
# A grammar that compiles quickly can still be slow to follow: the first steps show it.
PROBED_TOKENS = 8
MAX_REASON_CHARACTERS = 200
# The compiler says where in its source it complains, and which of its conditions failed.
SOURCE = re.compile(r".*\.(?:cc|cpp|h|hpp):\d+:\s*", re.DOTALL)
PREFIXES = re.compile(
    r"(?:Failed to create grammar from structural tag: |Invalid structural tag error: "
    r"|Check failed: \(.*?\) is false: )+",
    re.DOTALL,
)


class GrammarError(Exception):
    """A grammar that does not compile; the message is the compiler's reason, for a caller."""


class ScratchPipeline:
    """Compiles grammars; one thread at a time."""

    def __init__(self, tokenizer: genai.Tokenizer, vocabulary_size: int) -> None:
        """Compile for a vocabulary.

        Args:
            tokenizer: Shares what is compiled with pipelines made of it.
            vocabulary_size: How many logits the real model has.
        """
        config = genai.SchedulerConfig()
        config.num_kv_blocks = BLOCKS
        with tempfile.TemporaryDirectory() as directory:
            # genai loads models from folders only.
            ov.save_model(_model(vocabulary_size), Path(directory) / "openvino_model.xml")
            self._pipeline = genai.ContinuousBatchingPipeline(directory, tokenizer, config, "CPU")

    def compile(self, grammar: str) -> None:
        """Compile a grammar, and follow it for a few tokens. Leaves the GIL.

        Raises:
            GrammarError: It does not compile.
            MemoryError: It takes more memory than there is.
        """
        config = genai.GenerationConfig()
        config.max_new_tokens = PROBED_TOKENS
        config.structured_output_config = structured(grammar)
        try:
            self._pipeline.generate([ov.Tensor(np.array([[0]], dtype=np.int64))], [config])
        except RuntimeError as error:
            raise GrammarError(_reason(str(error))) from error


class ScratchCompiler:
    """A scratch pipeline with a tokenizer of its own."""

    def __init__(self, directory: str) -> None:
        """Compile for the model in a folder."""
        tokenizer = genai.Tokenizer(directory)
        self._scratch = ScratchPipeline(tokenizer, vocabulary_size(directory))

    def compile(self, grammar: str) -> None:
        """See ScratchPipeline.compile."""
        self._scratch.compile(grammar)


def structured(grammar: str) -> genai.StructuredOutputConfig:
    """The configuration of a pipeline that is to follow a grammar."""
    config = genai.StructuredOutputConfig()
    config.structural_tags_config = grammar
    return config


def vocabulary_size(directory: str) -> int:
    """How many logits the model in a folder has."""
    model = ov.Core().read_model(Path(directory) / "openvino_model.xml")
    return int(model.output("logits").partial_shape[-1].get_length())


def _reason(text: str) -> str:
    """The compiler's complaint without the places in its source."""
    text = PREFIXES.sub("", SOURCE.sub("", text.strip())).strip()
    line = "".join(filter(str.isprintable, text.partition("\n")[0])).rstrip(" .")
    if len(line) > MAX_REASON_CHARACTERS:
        line = line[:MAX_REASON_CHARACTERS] + "..."
    return line or "it does not compile"


def _model(vocabulary_size: int) -> ov.Model:
    """A model whose logits are all 0: one layer of attention, because genai wants one."""
    tokens = parameter("input_ids", [-1, -1], np.int64)
    beams = parameter("beam_idx", [-1], np.int32)
    embedded = op.multiply(
        op.unsqueeze(op.convert(tokens, "f32"), integers(2)),
        op.constant(np.zeros((1, 1, HEAD_SIZE), np.float32)),
    )
    heads = op.transpose(
        op.reshape(embedded, integers(0, 0, 1, HEAD_SIZE), special_zero=True),
        integers(0, 2, 1, 3),
    )
    caches, sinks = with_past(heads, heads, tokens, beams)
    attended = op.scaled_dot_product_attention(heads, *caches, op.constant(np.array(0, np.float32)))
    hidden = op.reshape(
        op.transpose(attended, integers(0, 2, 1, 3)),
        integers(0, 0, HEAD_SIZE),
        special_zero=True,
    )
    mean = op.reduce_mean(hidden, integers(2), keep_dims=True)
    logits = op.tile(mean, integers(1, 1, vocabulary_size))
    logits.output(0).set_names({"logits"})
    return ov.Model([op.result(logits)], sinks, [tokens, beams], "scratch")
