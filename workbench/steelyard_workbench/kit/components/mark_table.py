"""The marks of a chart as a table beside it: each line opens the rows behind its mark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import panel_material_ui as pmui
import param
from panel.custom import JSComponent
from panel.viewable import Viewable

from steelyard_workbench.kit.components.choices import LINK_OR_BUTTON
from steelyard_workbench.kit.look import BUTTON_CSS, TABLE_CSS
from steelyard_workbench.kit.words import term_of

# The first line of a flex box is its baseline, where the cells beside it stand.
_STYLE = BUTTON_CSS + TABLE_CSS + "a, button.word { display: inline-flex; }"


class MarkTable(JSComponent):
    """A table whose first column has a button in each line, or a link where ``links`` has addresses."""

    columns = param.List(default=[])
    rows = param.List(default=[])
    links = param.List(default=[])
    numbers = param.List(default=[])
    terms = param.List(default=[])
    label = param.String(default="")
    opens = param.String(default="")
    disabled = param.Boolean(default=False)

    _esm = LINK_OR_BUTTON + Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
    _stylesheets = [_STYLE]  # noqa: RUF012  Panel reads it from the class

    def __init__(self, open_: Callable[[int], None], **options: Any) -> None:
        self._open = open_
        super().__init__(**{"sizing_mode": "stretch_width", "margin": (5, 10), **options})

    def _handle_msg(self, msg: Any) -> None:
        self.press(int(msg["open"]))

    def press(self, place: int) -> None:
        """Open a line's rows."""
        if not self.disabled and 0 <= place < len(self.rows):
            self._open(place)


def mark_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    label: str,
    open_: Callable[[int], None],
    numbers: Sequence[int] = (),
    opens: str = "Show the rows behind it",
    links: Sequence[str] = (),
) -> MarkTable:
    """Return a table whose lines open something: at the addresses ``links`` where it is a page."""
    return MarkTable(
        open_,
        columns=list(columns),
        terms=[term_of(name) for name in columns],
        rows=[list(row) for row in rows],
        links=list(links),
        label=label,
        numbers=list(numbers),
        opens=opens,
    )


def show_data(view: Viewable) -> Viewable:
    """Put a table beside a chart, closed at first, for readers who do not see the chart."""
    return pmui.Accordion(
        ("Show data", view), sizing_mode="stretch_width", margin=(5, 10), title_variant="body2"
    )
