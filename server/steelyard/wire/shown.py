"""Answers that show themselves in a notebook, as far as a way was registered.

A server never shows one: ``steelyard.client`` registers how, for each type that is worth it. The
methods stand on the types, and not on subclasses of a client's, so that an answer inside an answer
shows itself as well, and they are methods because that is what every notebook looks for: IPython's
own registry of formatters would leave out marimo, Panel and code that converts a struct by hand.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from steelyard.wire.requirements import required_for

if TYPE_CHECKING:
    import polars as pl


@functools.singledispatch
def to_html(answer: object) -> str | None:  # noqa: ARG001
    """Return an answer as HTML, every text in it escaped; ``None`` where nothing is registered."""
    return None


@functools.singledispatch
def to_frame(answer: object) -> pl.DataFrame:
    """Return an answer as a Polars frame; raises ``TypeError`` where nothing is registered."""
    raise TypeError(f"{type(answer).__name__} has no form as a frame; import steelyard.client.")


@functools.singledispatch
def to_plots(answer: object) -> Any:
    """Return the plots of an answer; raises ``TypeError`` where none are registered."""
    raise TypeError(f"{type(answer).__name__} cannot be drawn; import steelyard.client.")


class Shown:
    """An answer that shows itself in a notebook."""

    __slots__ = ()

    def _repr_html_(self) -> str | None:
        return to_html(self)


class Framed(Shown):
    """An answer that shows itself and turns into a frame."""

    __slots__ = ()

    def to_polars(self) -> pl.DataFrame:
        """Return it as a Polars frame; which columns it has stands at the call that answers it."""
        with required_for("A frame"):
            return to_frame(self)


class Plotted:
    """An answer that can be drawn."""

    __slots__ = ()

    @property
    def plot(self) -> Any:
        """Its plots: to be called, or with a method for each figure."""
        return to_plots(self)
