"""What the matrices of a converted model are kept in."""

from __future__ import annotations

from enum import StrEnum


class WeightForm(StrEnum):
    """What the matrices of a converted model are kept in.

    Attributes:
        AUTO: What is multiplied fastest without a loss that matters (docs/gguf.md): Q4_0 as in the
            file, others as INT8.
        INT8: 8 bits, with a scale for each row, made of the file's numbers.
        FILE: What the file has them in, of which OpenVINO knows 4 bits (Q4_0, Q4_1, Q4_K), 8 bits
            (Q8_0), F16, BF16 and F32; others become INT8. Takes the least memory.
    """

    AUTO = "auto"
    INT8 = "int8"
    FILE = "file"
