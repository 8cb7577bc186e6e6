"""Objects filled from others with fields of the same names, as answers of the API are from rows."""

from __future__ import annotations

from typing import Any, TypeVar

_Filled = TypeVar("_Filled")


def filled(cls: type[_Filled], source: object, /, **others: Any) -> _Filled:
    """Return a struct or dataclass of ``others``; its other fields are those of ``source``.

    >>> from types import SimpleNamespace
    >>> from steelyard.errors import Violation
    >>> filled(Violation, SimpleNamespace(message="Remove it.", type="unknown"), path=("body",))
    Violation(path=('body',), message='Remove it.', type='unknown')
    """
    names: Any = getattr(cls, "__struct_fields__", None) or getattr(cls, "__dataclass_fields__", ())
    return cls(**{name: getattr(source, name) for name in names if name not in others}, **others)
