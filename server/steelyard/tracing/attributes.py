"""The attributes of a span."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Attributes = Mapping[str, str | int | float | Sequence[str] | Sequence[int] | Sequence[float]]
