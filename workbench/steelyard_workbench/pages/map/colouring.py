"""The colours of a map's points: groups of rows, each with a name and a colour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from steelyard.maps.wire import NONE, MapPoints, MapValues
from steelyard_workbench.kit.theme import BLUE, GREY, ORANGE, SERIES, SLATE, YELLOW, outcome_places

ColourBy = Literal["label", "error", "confidence", "side"]
COLOURS_BY: tuple[ColourBy, ...] = get_args(ColourBy)
#: Colours that need an evaluation.
OF_ANSWERS: tuple[ColourBy, ...] = ("error", "confidence")
_NOT_SCORED = "not scored"
#: Bounds of groups of probabilities, and a colour of each from sure to unsure.
_BOUNDS = (0.5, 0.7, 0.9)
_SURENESS = (ORANGE, YELLOW, SLATE, BLUE)


@dataclass(frozen=True, slots=True, eq=False)
class Colouring:
    """Groups of points: their names and colours, the group of each point, and its description."""

    names: tuple[str, ...]
    colors: tuple[str, ...]
    codes: NDArray[np.int64]
    descriptions: Sequence[str]

    @property
    def counts(self) -> list[int]:
        """How many points each group has."""
        counted: list[int] = np.bincount(self.codes, minlength=len(self.names)).tolist()
        return counted

    def members(self, group: int) -> list[int]:
        """Return the places of a group's points."""
        places: list[int] = np.flatnonzero(self.codes == group).tolist()
        return places

    def pixels(self) -> NDArray[np.uint32]:
        """Return the colour of each point as Bokeh takes it: red, green, blue and alpha."""
        palette = [int(f"{color[1:]}ff", 16) for color in self.colors]
        pixels: NDArray[np.uint32] = np.array(palette, dtype=np.uint32)[self.codes]
        return pixels


def colour(by: ColourBy, points: MapPoints, values: MapValues | None) -> Colouring:
    """Group points; a colouring without its values has one group, *not known*."""
    if by == "side":
        codes = np.array(points.is_evaluation, dtype=np.int64)
        return _named(("training", "evaluation"), (BLUE, ORANGE), codes)
    if values is None:
        return _named((_NOT_SCORED,), (GREY,), np.zeros(len(points.index), dtype=np.int64))
    if by == "label":
        return _labels(values)
    return _errors(values) if by == "error" else _confidence(values)


def _labels(values: MapValues) -> Colouring:
    """Group by the outcome expected: the most frequent have colours of their own."""
    n_named = min(len(SERIES), len(values.outcomes))
    expected = np.array(values.expected, dtype=np.int64)
    codes = np.where((expected >= 0) & (expected < n_named), expected, n_named)
    codes[expected == NONE] = n_named + 1
    names = (*values.outcomes[:n_named], "another answer", "no label")
    descriptions = [_outcome(values, place) for place in values.expected]
    places = outcome_places(values.outcomes)
    colours = (SERIES[places[name]] for name in values.outcomes[:n_named])
    return Colouring(names, (*colours, "#555555", GREY), codes, descriptions)


def _errors(values: MapValues) -> Colouring:
    right = values.is_right or [None] * len(values.expected)
    answered = values.answered or [NONE] * len(values.expected)
    codes = np.array(
        [2 if is_right is None else int(is_right is False) for is_right in right], dtype=np.int64
    )
    descriptions = [
        f"{_outcome(values, answer)} instead of {_outcome(values, expected)}"
        if is_right is False
        else _NOT_SCORED
        if is_right is None
        else f"right: {_outcome(values, answer)}"
        for is_right, answer, expected in zip(right, answered, values.expected, strict=True)
    ]
    return Colouring(("right", "wrong", _NOT_SCORED), (BLUE, ORANGE, GREY), codes, descriptions)


def _confidence(values: MapValues) -> Colouring:
    given = values.confidence or [None] * len(values.expected)
    sure = np.array(
        [np.nan if confidence is None else confidence for confidence in given], dtype=np.float64
    )
    codes = np.where(np.isnan(sure), len(_SURENESS), np.digitize(sure, _BOUNDS))
    low, middle, high = _BOUNDS
    names = (
        f"below {low}",
        f"{low} to {middle}",
        f"{middle} to {high}",
        f"{high} or more",
        _NOT_SCORED,
    )
    descriptions = [
        _NOT_SCORED if confidence is None else f"{confidence:.3f}" for confidence in given
    ]
    return Colouring(names, (*_SURENESS, GREY), codes.astype(np.int64), descriptions)


def _named(names: tuple[str, ...], colors: tuple[str, ...], codes: NDArray[np.int64]) -> Colouring:
    return Colouring(names, colors, codes, [names[code] for code in codes.tolist()])


def _outcome(values: MapValues, place: int) -> str:
    if place == NONE:
        return "no label"
    return values.outcomes[place] if place >= 0 else "another answer"
