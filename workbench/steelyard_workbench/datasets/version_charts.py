"""Versions in pictures: how their sides grew, and which labels went where."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bokeh.models import ColumnDataSource

from steelyard.datasets.wire import DatasetVersion
from steelyard_workbench.components import figures
from steelyard_workbench.datasets.changes import Transition
from steelyard_workbench.theme import BLUE, ORANGE

#: Versions that are drawn, the newest.
MOST_VERSIONS = 30
#: Pixels of a cell, and the colours of the emptiest and the fullest one, as red, green and blue.
_CELL = 46
_PALE, _FULL = (0xDC, 0xEF, 0xFB), (0x56, 0xB4, 0xE9)


def draw_sides(versions: Sequence[DatasetVersion], open_: Callable[[int], None]) -> Any:
    """Draw the rows of each side, a bar a version; a bar opens its version.

    Parameters
    ----------
    versions : sequence of DatasetVersion
        Newest first.
    """
    drawn = versions[:MOST_VERSIONS]
    source = ColumnDataSource(
        {
            "name": [f"version {version.version}" for version in drawn],
            "version": [version.version for version in drawn],
            "training": [version.split.training for version in drawn],
            "evaluation": [version.split.evaluation for version in drawn],
        }
    )
    made = figures.plot(
        "Rows by side",
        "rows",
        "",
        height=110 + 30 * len(drawn),
        y_range=list(reversed(source.data["name"])),
    )
    sides = ["training", "evaluation"]
    made.hbar_stack(
        sides,
        y="name",
        height=0.65,
        color=[BLUE, ORANGE],
        source=source,
        legend_label=sides,
        hatch_pattern=[" ", "/"],
        hatch_alpha=0.5,
        hatch_color="white",
    )
    made.hover.tooltips = [
        ("", "@name"),
        ("training", "@training{0,0}"),
        ("evaluation", "@evaluation{0,0}"),
    ]
    made.x_range.start = 0
    made.add_layout(made.legend[0], "above")
    made.legend[0].orientation = "horizontal"
    figures.on_tap(made, source, lambda place: open_(drawn[place].version))
    return made


def draw_transitions(
    decision: str,
    counts: Mapping[Transition, int],
    open_: Callable[[Transition], None],
) -> Any:
    """Draw a matrix of the labels of one decision that changed; a cell opens its rows."""
    transitions = [transition for transition in counts if transition.decision == decision]
    outcomes = sorted(
        {name for transition in transitions for name in (transition.before, transition.after)}
    )
    most = max(counts[transition] for transition in transitions)
    source = ColumnDataSource(
        {
            "before": [transition.before for transition in transitions],
            "after": [transition.after for transition in transitions],
            "n": [counts[transition] for transition in transitions],
            "color": [_shade(counts[transition] / most) for transition in transitions],
        }
    )
    total = sum(counts[transition] for transition in transitions)
    made = figures.plot(
        f"{decision}: contexts whose label changed (n = {total:,})",
        "to",
        "from",
        height=130 + _CELL * len(outcomes),
        x_range=outcomes,
        y_range=list(reversed(outcomes)),
    )
    made.rect(
        x="after",
        y="before",
        width=0.94,
        height=0.94,
        source=source,
        color="color",
        line_color=None,
    )
    # The cells are light in both themes, so that the numbers in them can be black.
    made.text(
        x="after",
        y="before",
        text="n",
        source=source,
        text_align="center",
        text_baseline="middle",
        text_color="black",
    )
    made.hover.tooltips = [("from", "@before"), ("to", "@after"), ("contexts", "@n{0,0}")]
    made.xaxis.major_label_orientation = 0.6
    figures.on_tap(made, source, lambda place: open_(transitions[place]))
    return made


def _shade(share: float) -> str:
    """Return a colour between a pale and a full sky blue; ``share`` is 0 to 1."""
    mixed = (round(pale + (full - pale) * share) for pale, full in zip(_PALE, _FULL, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)
