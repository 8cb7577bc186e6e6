"""Where a label came from, and which labels count where nothing else is asked for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal, get_args

Origin = Literal["person", "expert", "outcome", "click", "model"]
LabelledBy = Literal["person", "expert", "outcome", "click", "model", "unknown"]

#: Origins of labels that nobody observed: they count only where somebody names them.
INFERRED = ("click", "model")
#: What is said of a label whose row says nothing.
UNKNOWN = "unknown"
_ORIGINS = frozenset(get_args(Origin))


def origins_of(metadata: Any) -> tuple[str, ...]:
    """Return where a row's labels came from, by its metadata; ``("unknown",)`` where it is not said.

    >>> origins_of({"by": "click, expert"}), origins_of({"by": "Ada"})
    (('click', 'expert'), ('unknown',))
    """
    text = metadata.get("by") if isinstance(metadata, Mapping) else None
    names = tuple(text.split(", ")) if isinstance(text, str) else ()
    return names if names and _ORIGINS.issuperset(names) else (UNKNOWN,)


def counts(origins: Collection[str], chosen: Collection[str] | None = None) -> bool:
    """Return whether labels of such origins count: all that are chosen, else all but inferred ones."""
    if chosen is None:
        return not set(INFERRED).intersection(origins)
    return set(chosen).issuperset(origins)
