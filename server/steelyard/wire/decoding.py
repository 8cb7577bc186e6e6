"""Decoding into types, safely from threads that do it for the first time at once.

msgspec keeps how a struct is read on its class, and puts it there before it is whole, since structs
may hold themselves. While it then fills it in, Python code runs (it reads annotations), so that
another thread can take its turn, find the half-made one and follow a null pointer: the process ends
with a segmentation fault. Upstream's way is to build a ``Decoder`` once, before threads use it. So
each is built here, one at a time, and nothing else in this project decodes into a type.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache, partial
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_lock = threading.Lock()
_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def decoder_of(type_: type[T]) -> msgspec.json.Decoder[T]:
    """Return the decoder of JSON into a type, the same for every caller."""
    decoder = _decoders.get(type_)
    if decoder is None:
        with _lock:
            decoder = _decoders[type_] = _decoders.get(type_) or msgspec.json.Decoder(type_)
    return decoder


def decode(data: bytes | bytearray | str | msgspec.Raw, type_: type[T]) -> T:
    """Return the value that JSON holds, in a type; raise ``msgspec.DecodeError`` where it holds none."""
    try:
        return decoder_of(type_).decode(data)
    except RecursionError as error:
        raise msgspec.DecodeError("JSON is nested too deep") from error


def convert(value: object, type_: type[T], *, strict: bool = True) -> T:
    """Return a decoded value in a type."""
    decoder_of(type_)
    return msgspec.convert(value, type_, strict=strict)


@cache
def converter_to(type_: Any) -> Callable[[object], Any]:
    """Return a prepared ``convert`` for a type, for values that are converted at every request."""
    decoder_of(type_)
    return partial(msgspec.convert, type=type_)
