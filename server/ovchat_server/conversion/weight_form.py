"""What the matrices of a converted model are kept in."""

from __future__ import annotations

from enum import StrEnum


class WeightForm(StrEnum):
    """What the matrices of a converted model are kept in.

    Attributes:
        INT8: 8 bits, with a scale for each row: what the file says but for a rounding that
            perplexity hardly shows (0.4% on SmolLM2-135M), multiplied fastest where it was
            measured (docs/gguf.md).
        FILE: What the file has them in, of which OpenVINO knows 4 bits (Q4_0, Q4_1, Q4_K), 8 bits
            (Q8_0), F16, BF16 and F32; others become INT8. Takes the least memory.
    """

    INT8 = "int8"
    FILE = "file"
