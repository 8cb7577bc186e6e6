"""A dialog that is drawn when it is opened."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard_workbench.kit.basics import Boxed
from steelyard_workbench.kit.components.unseen import FirstField


class DrawnDialog(Boxed):
    """A dialog, made again each time.

    One that is drawn closed with its page misses that it was opened while the page is still being
    drawn; and its contents keep the colours of the theme that was on then.

    ``width``: pixels of its contents. ``has_field``: it is opened to type into, so its first field
    has the focus then.
    """

    def __init__(
        self,
        title: str,
        *content: Viewable,
        draw: Callable[[], Iterable[Viewable]] = tuple,
        width: int | None = None,
        has_field: bool = False,
    ) -> None:
        super().__init__()
        self._draw = draw
        self._title, self._content, self._width = title, content, width
        self._has_field = has_field
        self._dialog = pmui.Dialog(open=False)
        self._box = pn.Column(margin=0)

    @property
    def is_open(self) -> bool:
        """Whether it is shown."""
        return bool(self._dialog.open)

    def open(self, title: str = "") -> None:
        """Show it, under another title if one is given."""
        focus = [FirstField()] if self._has_field else []
        self._dialog = pmui.Dialog(
            pn.Column(*self._content, *self._draw(), *focus, width=self._width),
            title=title or self._title,
            open=True,
        )
        self._box[:] = [self._dialog]

    def close(self) -> None:
        """Show it no more."""
        self._dialog.open = False
