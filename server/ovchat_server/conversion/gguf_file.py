"""A GGUF file: what it says about its model, and the model's tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import gguf

from ovchat_server.conversion.errors import ConversionError
from ovchat_server.conversion.magic import check_magic

if TYPE_CHECKING:
    from pathlib import Path

Value = TypeVar("Value", str, int, float, bool)


class GgufFile:
    """A file that was found to be whole. Tensors are read when they are looked at.

    Attributes:
        path: Where it is.
        fields: Its metadata, by key.
        tensors: Its tensors, by name.
    """

    def __init__(self, path: Path) -> None:
        """Open a file.

        Raises:
            ConversionError: It is not a GGUF file, damaged, or a part of a model.
        """
        self.path = path
        check_magic(path)
        try:
            reader = gguf.GGUFReader(path)
        # Whatever numpy makes of lengths that lead nowhere.
        except (ValueError, IndexError, KeyError, OverflowError, MemoryError) as error:
            raise ConversionError(
                f"{path} is cut off or damaged: copy or download it anew"
            ) from error
        self.fields = reader.fields
        self.tensors = {tensor.name: tensor for tensor in reader.tensors}
        if (parts := self.get("split.count", int, 1)) > 1:
            raise ConversionError(
                f"{path} is one of {parts} parts of a model: join them with "
                "`llama-gguf-split --merge`"
            )

    @property
    def architecture(self) -> str:
        """What the model is, such as "llama": the first word of the keys that describe it."""
        return self.required("general.architecture", str)

    def get(self, key: str, kind: type[Value], default: Value) -> Value:
        """Return the value of a key, or the default where there is none.

        Raises:
            ConversionError: It is of another kind.
        """
        field = self.fields.get(key)
        if field is None:
            return default
        value = field.contents()
        if kind is float and isinstance(value, int):
            value = float(value)
        if not isinstance(value, kind):
            raise ConversionError(f"{self.path}: {key} is not {kind.__name__}, but {value!r}")
        return value

    def required(self, key: str, kind: type[Value]) -> Value:
        """Return the value of a key that must be there.

        Raises:
            ConversionError: It is not, or is of another kind.
        """
        if key not in self.fields:
            raise ConversionError(f"{self.path} does not say its {key}")
        return self.get(key, kind, kind())

    def values(self, key: str, kind: type[Value]) -> list[Value]:
        """Return the values in an array; none where there is none.

        Raises:
            ConversionError: They are of another kind.
        """
        field = self.fields.get(key)
        values = field.contents() if field is not None and field.data else []
        if not isinstance(values, list) or not all(isinstance(item, kind) for item in values):
            raise ConversionError(f"{self.path}: {key} is not a list of {kind.__name__}")
        return values
