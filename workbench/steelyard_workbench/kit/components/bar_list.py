"""Charts of bars that are buttons: one small program draws all those of a part of a page.

A figure is some forty models and canvases of its own, and no key reaches its bars.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, NotRequired, TypedDict

import param
from panel.custom import JSComponent

from steelyard_workbench.kit.look import with_tokens
from steelyard_workbench.kit.theme import FOCUS, FONT, SMALL, TEXT

_STYLE = with_tokens(f"""
:host {{ color: var(--ink); font: {TEXT}/1.43 {FONT}; }}
.charts {{ display: flex; flex-wrap: wrap; gap: 16px 24px; }}
figure {{
  box-sizing: border-box; margin: 0; padding: 16px; flex: 1 1 280px; min-width: 0; max-width: 100%;
  background: var(--surface); border: 1px solid var(--line); border-radius: 8px;
}}
figcaption {{ font-weight: 700; overflow-wrap: anywhere; margin: 0 4px 8px; }}
figcaption small {{ font-size: {SMALL}; font-weight: 400; color: var(--muted); margin-left: 8px; }}
.series {{ display: inline-block; font-weight: 400; margin-left: 16px; }}
.series i {{ display: inline-block; width: 14px; height: 10px; margin-right: 6px; }}
ul {{
  display: grid; grid-template-columns: minmax(0, 11em) minmax(40px, 1fr) auto; column-gap: 8px;
  list-style: none; margin: 0; padding: 0;
}}
li, button {{ display: grid; grid-column: 1 / -1; grid-template-columns: subgrid; }}
button {{
  align-items: center; padding: 3px 4px; border: 0; border-radius: 6px;
  font: inherit; text-align: left; color: inherit; background: none; cursor: pointer;
}}
button:hover {{ background: var(--sunk); }}
button:disabled {{ cursor: default; }}
button:focus-visible {{ outline: 3px solid {FOCUS}; outline-offset: -3px; }}
.name {{ overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }}
.text {{ font-size: {SMALL}; color: var(--muted); font-variant-numeric: tabular-nums; }}
.bar {{
  display: flex; height: 10px; border-radius: 5px; overflow: hidden; background: var(--sunk);
  box-shadow: inset 0 0 0 1px var(--line);
}}
i.second {{
  background-image: repeating-linear-gradient(
    45deg, transparent 0 3px, rgba(255, 255, 255, 0.5) 3px 5px
  );
}}
""")


class Bar(TypedDict):
    """A bar: its name, how long each part of it is, from 0 to 1, and its numbers in words.

    With a colour of its own it has that in the place of those of the series.
    """

    name: str
    parts: list[float]
    text: str
    colour: NotRequired[str]


class BarChart(TypedDict):
    """A chart: its title, and of each part of a bar the name and the colour; a name may be empty."""

    title: str
    note: NotRequired[str]
    series: list[tuple[str, str]]
    bars: list[Bar]


class BarList(JSComponent):
    """Charts of bars from 0 to 1; ``open_`` is called with the places of the chart and the pressed bar."""

    charts = param.List(default=[])
    disabled = param.Boolean(default=False)

    _esm = Path(__file__).with_suffix(".js")
    _stylesheets: ClassVar[list[str]] = [_STYLE]

    def __init__(
        self, charts: Sequence[BarChart], open_: Callable[[int, int], None], **options: Any
    ) -> None:
        self._open = open_
        place = {"sizing_mode": "stretch_width", "margin": (5, 10)}
        super().__init__(**{**place, "charts": list(charts), **options})

    def press(self, chart: int, bar: int) -> None:
        """Open a bar's rows, by the places of its chart and of itself."""
        self._open(chart, bar)

    def _handle_msg(self, msg: Any) -> None:
        self.press(int(msg["chart"]), int(msg["bar"]))
