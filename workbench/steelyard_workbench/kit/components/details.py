"""Rarely needed parts of a page: closed at first, and drawn once opened."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard_workbench.kit.basics import Boxed, stack


class Details(Boxed):
    """A card of one line, a ``hint`` of its contents; ``draw`` makes them when it is opened first."""

    def __init__(
        self,
        draw: Callable[[], Sequence[Viewable]],
        hint: str = "",
        *,
        is_open: bool = False,
        on_open: Callable[[bool], None] | None = None,
    ) -> None:
        super().__init__()
        self._draw, self._on_open = draw, on_open
        self._place = stack()
        self._box = pmui.Accordion(
            (f"Details: {hint}" if hint else "Details", self._place),
            title_variant="body1",
            disable_gutters=True,
            margin=(12, 10),
            sizing_mode="stretch_width",
        )
        pn.bind(self._on_active, self._box.param.active, watch=True)
        if is_open:
            self.open()

    def open(self) -> None:
        """Show its parts."""
        self._box.active = [0]

    def _on_active(self, active: list[int]) -> None:
        if active and not self._place.objects:
            self._place[:] = list(self._draw())
        if self._on_open is not None:
            self._on_open(bool(active))
