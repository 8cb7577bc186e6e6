"""The line of a family as a picture: its models in a row, what each was trained from, what it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource

from steelyard.families.wire import Family
from steelyard_workbench.kit.components import figures
from steelyard_workbench.kit.theme import BLUE, GREEN, GREY, ORANGE
from steelyard_workbench.parts.families.labels import Choice, choices_of, outcome_of, roles_of

#: The picture has this many fine-tunes, the newest; the list beside it has all.
SHOWN = 12
_ORIGIN = "origin"


@dataclass(frozen=True, slots=True)
class _Stop:
    """A place on the line."""

    name: str
    note: str
    marker: str
    color: str
    adapter: str
    parent: str | None


def draw_line(family: Family, choose: Callable[[Choice], None]) -> Any:
    """Draw the line; clicking a place chooses its fine-tune."""
    choices = list(reversed(choices_of(family)[:SHOWN]))
    stops = [_Stop(family.origin, _ORIGIN, "square", GREY, _ORIGIN, None)]
    stops += [_stop(family, choice) for choice in choices]
    source = ColumnDataSource(
        {
            "x": list(range(len(stops))),
            "y": [0.0 if stop.marker != "diamond" else -0.55 for stop in stops],
            "name": [stop.name for stop in stops],
            "note": [stop.note for stop in stops],
            "marker": [stop.marker for stop in stops],
            "color": [stop.color for stop in stops],
        }
    )
    made = figures.plot(
        "",
        "",
        "",
        height=190,
        x_range=(-0.6, len(stops) - 0.4),
        y_range=(-1.0, 1.1),
        tools="hover,tap",
    )
    made.multi_line(*_arcs(stops), line_color=GREY, line_width=1.5)
    marks = made.scatter(
        x="x", y="y", size=20, marker="marker", color="color", line_color=GREY, source=source
    )
    made.hover.renderers = [marks]
    made.hover.tooltips = [("", "@name"), ("", "@note")]
    made.xaxis.ticker = list(range(len(stops)))
    made.xaxis.major_label_overrides = {
        float(place): f"{stop.name}\n{stop.note}" for place, stop in enumerate(stops)
    }
    made.xaxis.major_label_text_font_size = "12px"
    made.xaxis.axis_line_color = None
    made.xaxis.major_tick_line_color = None
    made.yaxis.visible = False
    made.grid.visible = False
    made.outline_line_color = None
    made.toolbar_location = None
    # The origin, at place 0, was trained by nobody here.
    figures.on_tap(made, source, lambda place: choose(choices[place - 1]) if place else None)
    return made


def _stop(family: Family, choice: Choice) -> _Stop:
    model = choice.model
    if model is None:
        name = f"version {choice.job.dataset_version}"
        return _Stop(name, outcome_of(choice.job)[1], "diamond", ORANGE, choice.job.id, None)
    note = roles_of(family, model)
    day = f"{datetime.fromtimestamp(choice.job.created_at, UTC):%d %b}"
    if model.status != "ready":
        shape = ("circle_x", GREY)
    elif note.startswith("served"):
        shape = ("star", GREEN)
    else:
        shape = ("circle", BLUE)
    return _Stop(f"@{model.version}, {day}", note, *shape, model.adapter, model.parent or _ORIGIN)


def _arcs(stops: list[_Stop]) -> tuple[list[list[float]], list[list[float]]]:
    """Return a curve from what each model was trained from to the model."""
    places = {stop.adapter: place for place, stop in enumerate(stops)}
    across, up = [], []
    turn = np.linspace(0.0, np.pi, 24)
    for place, stop in enumerate(stops):
        start = places.get(stop.parent or "")
        if start is None or start == place:
            continue
        middle, radius = (start + place) / 2, (place - start) / 2
        across.append((middle - radius * np.cos(turn)).tolist())
        up.append((np.sin(turn) * min(0.4 + 0.12 * (place - start), 0.95)).tolist())
    return across, up
