"""Objects filled from others with fields of the same names, as answers of the API are from rows."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, TypeVar

import msgspec

_Filled = TypeVar("_Filled")


def filled(cls: type[_Filled], source: object, /, **others: Any) -> _Filled:
    """Return a struct or dataclass of ``others``; its other fields are those of ``source``.

    >>> from types import SimpleNamespace
    >>> from steelyard.errors import Violation
    >>> filled(Violation, SimpleNamespace(message="Remove it.", type="unknown"), path=("body",))
    Violation(path=('body',), message='Remove it.', type='unknown')
    """
    copies = {name: getattr(source, name) for name in _fields(cls) if name not in others}
    return cls(**copies, **others)


@functools.cache
def _fields(cls: Any) -> tuple[str, ...]:
    if issubclass(cls, msgspec.Struct):
        return cls.__struct_fields__
    return tuple(field.name for field in dataclasses.fields(cls) if field.init)
