"""Rows of embeddings that say more than an embedding: what vision models get instead of tokens.

genai takes a prompt as rows of embeddings, too, and so one that holds images. But then

- its prefix cache names a row by every 50th of its numbers, up to ten: prompts that differ
  elsewhere would get each other's KV blocks (openvino.genai 2026.4.1, sequence_group.hpp);
- nobody can tell from a step what it read, and so whose its logits are;
- positions are those of text, which are not those of images in every model.

So rows have more columns than the model knows. Those that name a row hold its cache id
(Prompt.cache_ids), where genai looks; others hold what is added to its position. A first operation
in the graph takes them out again (PROMPT_ROWS), and one behind the embeddings of generated tokens
puts them in (ANSWER_ROWS). All of them are digits of 8 bits, which are exact in 16 bits, too, in
which a plugin may compute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ovchat_server.engine.genai.python_operation import python_operation

if TYPE_CHECKING:
    from collections.abc import Sequence

    import openvino as ov

    from ovchat_server.engine.genai.logits_hook import Floats, Integers
    from ovchat_server.engine.genai.model_graph import Graph, Output

PROMPT_ROWS = "PromptRows"
ANSWER_ROWS = "AnswerRows"
# Where genai looks: 64 bits, the lowest first.
NAME = np.arange(0, 400, 50)
# Of each of three positions the lower digit, then of each the upper one.
OFFSETS = np.arange(1, 7)
DIGIT = 256
# What a step tells of a row: the lowest digits of its cache id, which hold any token.
TOLD_DIGITS = 3
TOLD = DIGIT**TOLD_DIGITS - 1
# The positions of a token in models that have more than one, as Qwen's vision models.
AXES = 3
EMBEDDINGS, POSITIONS = "inputs_embeds", "position_ids"
# What genai gives a language model that gets rows.
INPUTS = frozenset({EMBEDDINGS, POSITIONS, "attention_mask", "beam_idx"})


class RowFormat:
    """How rows of one model are laid out.

    Attributes:
        width: How many columns they have.
        hidden_size: How many numbers an embedding has.
        axes: How many positions a token has.
    """

    def __init__(self, hidden_size: int, axes: int, scale: float = 1) -> None:
        """Lay out rows for a model.

        Args:
            hidden_size: See RowFormat.
            axes: 1, or AXES.
            scale: What the embeddings of text are multiplied by, as MiniCPM-V 2's are.
        """
        self.hidden_size = hidden_size
        self.axes = axes
        self._scale = np.float32(scale)
        taken = {*NAME.tolist(), *OFFSETS.tolist()}
        self.width = max(hidden_size + len(taken), max(taken) + 1)
        # The numbers of an embedding and their columns, as pieces between the columns taken: to
        # copy them number by number would take as long as a step.
        self._pieces: list[tuple[slice, slice]] = []
        start = column = 0
        for end in sorted((*taken, self.width)):
            if length := min(end - column, hidden_size - start):
                piece = slice(start, start + length), slice(column, column + length)
                self._pieces.append(piece)
                start += length
            column = end + 1

    def scaled(self, embeddings: Floats) -> Floats:
        """Return embeddings of text as the model gets them."""
        scaled: Floats = embeddings * self._scale
        return scaled

    def rows(
        self,
        embeddings: Floats,
        cache_ids: Sequence[int] | Integers,
        offsets: Integers | None = None,
    ) -> Floats:
        """Return the rows of tokens.

        Args:
            embeddings: As the model gets them: one in each row, in any number of batches.
            cache_ids: One for each.
            offsets: For each, what is added to its place: `axes` numbers; None: nothing.
        """
        rows = np.zeros((*embeddings.shape[:-1], self.width), np.float32)
        for piece, columns in self._pieces:
            rows[..., columns] = embeddings[..., piece]
        names = np.asarray(cache_ids, np.int64).reshape(embeddings.shape[:-1])
        for number, column in enumerate(NAME):
            rows[..., column] = names >> 8 * number & DIGIT - 1
        if offsets is not None and self.axes == AXES:
            upper, lower = np.divmod(offsets, DIGIT)
            rows[..., OFFSETS] = np.concatenate([lower, upper], axis=-1)
        return rows

    def embeddings(self, rows: Floats) -> Floats:
        """Return the embeddings in rows."""
        return np.concatenate([rows[..., columns] for _, columns in self._pieces], axis=-1)

    def told(self, rows: Floats) -> Integers:
        """Return the lowest digits of the cache ids in rows (TOLD)."""
        digits = rows[..., NAME[:TOLD_DIGITS]].astype(np.int64)
        told: Integers = digits @ (DIGIT ** np.arange(TOLD_DIGITS))
        return told

    def positions(self, rows: Floats, plain: Integers) -> Integers:
        """Return the positions of rows, of which there are some for each token.

        Args:
            rows: The rows.
            plain: Their places in their sequences.
        """
        if self.axes == 1:
            return plain
        lower, upper = np.split(rows[..., OFFSETS].astype(np.int64), 2, axis=-1)
        positions = plain.reshape(*rows.shape[:-1], 1) + lower + upper * DIGIT
        return np.moveaxis(positions, -1, 0)

    def operations(self) -> list[ov.OpExtension]:
        """Return the operations that `insert_prompt_rows` and `insert_answer_rows` insert."""
        positions = [AXES, -1, -1] if self.axes == AXES else [-1, -1]
        embeddings = [-1, -1, self.hidden_size]
        return [
            python_operation(PROMPT_ROWS, [embeddings, positions, [-1, -1]], self._split),
            python_operation(ANSWER_ROWS, [[-1, -1, self.width]], self._join),
        ]

    def _split(self, outputs: Sequence[ov.Tensor], inputs: Sequence[ov.Tensor]) -> None:
        rows, plain = (item.data for item in inputs)
        _write(outputs, self.embeddings(rows), self.positions(rows, plain), self.told(rows))

    def _join(self, outputs: Sequence[ov.Tensor], inputs: Sequence[ov.Tensor]) -> None:
        embeddings, tokens = (item.data for item in inputs)
        _write(outputs, self.rows(self.scaled(embeddings), tokens))


def row_format(graph: Graph, scale: float = 1) -> RowFormat:
    """Return the format of rows for a language model, which has INPUTS; `scale` as RowFormat's."""
    embeddings, positions = graph.parameters[EMBEDDINGS], graph.parameters[POSITIONS]
    axes = AXES if len(positions.shape) == AXES else 1
    return RowFormat(int(embeddings.shape[-1]), axes, scale)


def insert_prompt_rows(graph: Graph, rows: RowFormat) -> Output:
    """Have a language model take rows; return which output tells of each what `told` says."""
    embeddings, positions = graph.parameters[EMBEDDINGS], graph.parameters[POSITIONS]
    shape = positions.shape
    outputs = [(embeddings.precision, embeddings.shape), ("I32", shape), ("I32", ["-1", "-1"])]
    graph.resize(embeddings, ["-1", "-1", str(rows.width)])
    graph.resize(positions, ["-1", "-1"])
    inputs = [embeddings, positions]
    found, where, told = graph.insert(PROMPT_ROWS, "extension", inputs, outputs)
    # The CPU plugin computes integers in 32 bits, but leaves alone what operations of others give.
    [wide] = graph.insert("Convert", "opset1", [where], [("I64", shape)], destination_type="i64")
    graph.replace(embeddings, found)
    graph.replace(positions, wide, but=where)
    return told


def insert_answer_rows(graph: Graph, rows: RowFormat) -> None:
    """Have a model of text embeddings give rows.

    Raises:
        ValueError: It has another form than such models.
    """
    embeddings = graph.result
    if embeddings is None or len(graph.parameters) != 1:
        raise ValueError("the model of text embeddings has more than one input or result")
    [tokens] = graph.parameters.values()
    shape = ["-1", "-1", str(rows.width)]
    outputs = [(embeddings.precision, shape)]
    [given] = graph.insert(ANSWER_ROWS, "extension", [embeddings, tokens], outputs)
    graph.show(given)


def _write(outputs: Sequence[ov.Tensor], *values: Floats | Integers) -> None:
    for output, value in zip(outputs, values, strict=True):
        output.shape = value.shape
        output.data[...] = value
