"""The header of a GGUF file: the model's facts, and the memory that its contexts need."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from steelyard.settings import InvalidSettingError

_MAGIC = b"GGUF"
#: Entries and bytes of one text that a header may have: more is no model's.
_MAX_ENTRIES, _MAX_TEXT = 4_096, 1 << 20
_SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_TEXT, _ARRAY = 8, 9
#: Bytes of a number of the cache (float16), and heads and width where a header leaves them out.
_CACHE_BYTES, _HEADS, _WIDTH = 2, 32, 128


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """A file's facts of its model."""

    name: str
    architecture: str
    #: Most tokens that the model was trained to read; 0 where the file does not say.
    context_tokens: int
    #: Bytes that the cache needs for each token of a context.
    cache_bytes: int
    file_bytes: int


def read_header(path: Path) -> GgufHeader:
    """Return the header of a GGUF file, or raise ``InvalidSettingError``."""
    try:
        with path.open("rb") as file:
            fields = _read_fields(file)
        size = path.stat().st_size
    except OSError as error:
        raise InvalidSettingError(f"{path} cannot be read: {error.strerror}.") from error
    except (struct.error, UnicodeDecodeError, ValueError) as error:
        raise InvalidSettingError(
            f"{path} is not a GGUF file; give one that llama.cpp can run."
        ) from error
    architecture = str(fields.get("general.architecture", ""))
    number = _numbers(fields, architecture)
    heads = number("attention.head_count", _HEADS)
    width = number("embedding_length", heads * _WIDTH) // max(heads, 1)
    per_head = number("attention.key_length", width) + number("attention.value_length", width)
    return GgufHeader(
        name=str(fields.get("general.name", "")) or path.stem,
        architecture=architecture,
        context_tokens=number("context_length", 0),
        cache_bytes=number("block_count", 0)
        * number("attention.head_count_kv", heads)
        * per_head
        * _CACHE_BYTES,
        file_bytes=size,
    )


def _numbers(fields: dict[str, Any], architecture: str) -> Any:
    def number(key: str, default: int) -> int:
        value = fields.get(f"{architecture}.{key}", default)
        return value if isinstance(value, int) and value >= 0 else default

    return number


def _read_fields(file: BinaryIO) -> dict[str, Any]:
    """Return the fields up to the tokenizer's, which are long and come last."""
    magic, version, _, n_fields = struct.unpack("<4sIQQ", file.read(24))
    if magic != _MAGIC or version < 2 or n_fields > _MAX_ENTRIES:
        raise ValueError
    fields: dict[str, Any] = {}
    for _ in range(n_fields):
        key = _read_text(file)
        if key.startswith("tokenizer."):
            break
        [kind] = struct.unpack("<I", file.read(4))
        fields[key] = _read_value(file, kind)
    return fields


def _read_value(file: BinaryIO, kind: int) -> Any:
    if kind == _TEXT:
        return _read_text(file)
    if kind == _ARRAY:
        item, length = struct.unpack("<IQ", file.read(12))
        if length > _MAX_ENTRIES or item == _ARRAY:
            raise ValueError
        values = [_read_value(file, item) for _ in range(length)]
        # Of numbers that differ by layer the largest counts: memory is estimated, never too low.
        return max(values) if values and item in _SCALARS else None
    form = "<" + _SCALARS.get(kind, "")
    if form == "<":
        raise ValueError
    return struct.unpack(form, file.read(struct.calcsize(form)))[0]


def _read_text(file: BinaryIO) -> str:
    [length] = struct.unpack("<Q", file.read(8))
    if length > _MAX_TEXT:
        raise ValueError
    data = file.read(length)
    if len(data) < length:
        raise ValueError
    return data.decode()
