"""Bokeh figures in one look: they follow the theme, and every mark can open the rows behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import panel as pn
import panel_material_ui as pmui
from bokeh.models import (
    BasicTicker,
    ColumnDataSource,
    FactorRange,
    NumeralTickFormatter,
    TapTool,
    TeeHead,
    Whisker,
)
from bokeh.plotting import figure

from steelyard.wire.measures import Measure, interval_text
from steelyard_workbench.kit.theme import BLUE, GREY, SERIES, token
from steelyard_workbench.kit.views import FRAME

#: What is drawn has the colours of the light theme; the dark one brightens them.
_MARKS_CSS = f".bk-Canvas {{ filter: {token('marks')}; }}"


def plot(title: str, x: str, y: str, *, height: int = 300, **given: Any) -> Any:
    """Make an empty figure."""
    made = figure(
        title=title,
        x_axis_label=x,
        y_axis_label=y,
        height=height,
        sizing_mode="stretch_width",
        toolbar_location="right",
        tools=given.pop("tools", "hover,tap,pan,wheel_zoom,reset,save"),
        # The card around it is its frame; the dark theme would draw another.
        outline_line_color=None,
        **given,
    )
    made.toolbar.logo = None
    made.toolbar.autohide = True
    return made


def show(made: Any) -> pn.pane.Bokeh:
    """Put a figure on a page; its colours follow the theme, and its ground is that of its card."""
    made.background_fill_alpha = made.border_fill_alpha = 0
    made.margin = (5, 10)  # that of the pane does not reach it
    made.styles = {name: FRAME[name] for name in ("border", "border-radius", "background")}
    made.stylesheets = [_MARKS_CSS]
    return pn.pane.Bokeh(made, sizing_mode="stretch_width", theme=None)


def legend_below(made: Any, orientation: Literal["horizontal", "vertical"] = "vertical") -> None:
    """Put the legend of a figure under it, where it covers no mark.

    Names stand under each other unless all of them are short: two are wider than a phone.
    """
    legend = made.legend[0]
    made.add_layout(legend, "below")
    legend.update(
        location="left", orientation=orientation, glyph_width=28, glyph_height=28, spacing=0
    )


def change(made: Any, work: Callable[[], None]) -> None:
    """Change a figure: one that is in a browser only while its document is locked for it."""
    document = made.document
    if document is None or document.session_context is None:
        work()
    else:
        document.add_next_tick_callback(work)


def intervals(
    made: Any,
    source: ColumnDataSource,
    *,
    base: str,
    low: str,
    high: str,
    dimension: str = "height",
) -> None:
    """Draw 95 % intervals from two columns of a source."""
    made.add_layout(
        Whisker(
            source=source,
            base=base,
            lower=low,
            upper=high,
            dimension=dimension,
            line_color=GREY,
            line_width=1.5,
            upper_head=TeeHead(line_color=GREY, size=8),
            lower_head=TeeHead(line_color=GREY, size=8),
        )
    )


def interval_columns(measures: Sequence[Measure]) -> dict[str, list[Any]]:
    """Return values, ends of intervals (the value itself where there is none) and numbers."""
    return {
        "value": [measure.value for measure in measures],
        "low": [measure.value if measure.low is None else measure.low for measure in measures],
        "high": [measure.value if measure.high is None else measure.high for measure in measures],
        "n": [measure.n for measure in measures],
        "interval": [
            interval_text(measure.low, measure.high, form=".3f", to=" to ") for measure in measures
        ],
    }


def room_for(values: Sequence[float]) -> tuple[float, float]:
    """Return a range that holds values, ends of intervals among them, with some room beside them.

    >>> room_for([0.0, 1.0])
    (-0.05, 1.05)
    """
    low, high = min(values, default=0.0), max(values, default=1.0)
    width = (high - low) or abs(high) or 1.0
    return low - 0.05 * width, high + 0.05 * width


def explain(
    made: Any,
    tooltips: Sequence[tuple[str, str]],
    *,
    marks: Any,
    source: ColumnDataSource,
    open_: Callable[[int], None] | None,
    places: Sequence[int] | None = None,
) -> None:
    """Show tooltips of marks, and open the rows behind a clicked one, by its number in ``places``."""
    made.hover.renderers, made.hover.tooltips = [marks], list(tooltips)
    if open_ is not None:
        on_tap(made, source, lambda at: open_(at if places is None else places[at]))


def blend(share: float, empty: Sequence[int], full: Sequence[int]) -> str:
    """Return the colour of a share between those of none and of all, as red, green and blue."""
    mixed = (round(a + (b - a) * share) for a, b in zip(empty, full, strict=True))
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def threshold_slider(label: str) -> pmui.FloatSlider:
    """Return a slider for a probability."""
    return pmui.FloatSlider(label=label, start=0.0, end=1.0, step=0.01, value=0.5, width=340)


def on_tap(made: Any, source: ColumnDataSource, open_: Callable[[int], None]) -> None:
    """Call with the index of a mark that was clicked, so that it can open the rows behind it."""
    if not made.select(type=TapTool):
        made.add_tools(TapTool())

    def chosen(_: str, __: Sequence[int], new: Sequence[int]) -> None:
        if new:
            # A mark that stays selected is let go of by the next click on it, which opens nothing,
            # and the others are drawn pale.
            source.selected.indices = []
            open_(new[0])

    source.selected.on_change("indices", chosen)


def bars(
    names: Sequence[str],
    values: Sequence[float],
    *,
    title: str,
    x: str,
    full_names: Sequence[str] | None = None,
    open_: Callable[[int], None] | None = None,
) -> Any:
    """Make a chart of horizontal bars, the first at the top; no two names may be alike."""
    full = list(names if full_names is None else full_names)
    source = ColumnDataSource({"name": list(names), "value": list(values), "full": full})
    # Shares are compared across charts: their axes are all of one length.
    ends = {"x_range": (0, 1)} if x.startswith(("probability", "share")) else {}
    made = plot(
        title,
        x,
        "",
        height=60 + 26 * max(1, len(names)),
        y_range=list(reversed(list(names))),
        **ends,
    )
    made.hbar(y="name", right="value", height=0.7, source=source, color=BLUE)
    made.hover.tooltips = [("", "@full"), (x, "@value{0,0.[000]}")]
    # Beside rows there is room for few numbers of five digits.
    made.xaxis.ticker = BasicTicker(desired_num_ticks=3)
    made.xaxis.formatter = NumeralTickFormatter(format="0,0.[000]")
    if open_ is not None:
        on_tap(made, source, open_)
    return made


def grouped_bars(
    names: Sequence[str], series: Mapping[str, Sequence[float]], *, title: str, x: str
) -> Any:
    """Make a chart of horizontal bars from 0 to 1, for each name one of each of ``series``."""
    factors = [(name, label) for name in names for label in series]
    source = ColumnDataSource(
        {
            "factor": factors,
            "value": [series[label][place] for place in range(len(names)) for label in series],
            "color": [SERIES[place % len(SERIES)] for place in range(len(series))] * len(names),
            "name": [" ".join(factor) for factor in factors],
        }
    )
    chart = plot(
        title,
        x,
        "",
        height=70 + 22 * max(1, len(factors)) + 8 * len(names),
        x_range=(0, 1),
        y_range=FactorRange(*reversed(factors), group_padding=0.6),
    )
    chart.y_range.range_padding = 0.1
    chart.yaxis.group_label_orientation = "horizontal"
    chart.hbar(y="factor", right="value", height=0.8, source=source, color="color")
    chart.hover.tooltips = [("", "@name"), (x, "@value{0,0.[000]}")]
    return chart
