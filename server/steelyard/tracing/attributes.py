"""The attributes of a span."""

from collections.abc import Mapping, Sequence

Attributes = Mapping[str, str | int | float | Sequence[str] | Sequence[int] | Sequence[float]]
