"""The tokens of the look: every text is read on every ground, and an outcome has one colour everywhere."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest

from steelyard.maps.wire import MapPoints, MapValues
from steelyard_workbench.kit.look import beam, chip
from steelyard_workbench.kit.theme import (
    FOCUS,
    SERIES,
    colours_of,
    outcome_colours,
    outcome_places,
)
from steelyard_workbench.pages.map.colouring import colour
from steelyard_workbench.parts.datasets.overview import show_labels

TEXTS = ("ink", "muted", "accent", "brass", "good", "bad", "warn")
GROUNDS = ("ground", "surface", "sunk", "accent-tint")
TEAMS = ("billing", "shipping", "technical", "other")


def channels(colour):
    return np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)], dtype=float)


def ratio(one, other):
    def luminance(colour):
        part = colour / 255
        linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_is_read_on_every_ground(theme):
    look = {name: channels(value) for name, value in colours_of(theme).items()}
    pairs = [*product(TEXTS, GROUNDS), ("accent-ink", "accent")]
    pairs += [(name, f"{name}-tint") for name in ("accent", "brass", "good", "bad", "warn")]
    faint = {pair: ratio(look[pair[0]], look[pair[1]]) for pair in pairs}
    assert {pair: found for pair, found in faint.items() if found < 4.5} == {}
    # A chip: its colour thinned out over what it lies on, and darkened for its text.
    for place, ground in product(range(len(SERIES)), GROUNDS):
        own, under = look[f"outcome-{place}"], look[ground]
        text, tint = 0.65 * own + 0.35 * look["ink"], 0.12 * own + 0.88 * under
        assert ratio(text, tint) >= 4.5
        assert ratio(own, look["surface"]) >= 3
    # What is drawn on a canvas has one colour in both themes.
    assert min(ratio(channels(own), look["surface"]) for own in (*SERIES, FOCUS)) >= 3


def test_an_outcome_has_one_colour_in_chips_bars_and_the_map():
    place, own = outcome_places(TEAMS)["shipping"], outcome_colours(reversed(TEAMS))["shipping"]
    assert own == f"var(--mui-palette-look-outcome-{place})"
    assert own in chip("shipping", TEAMS)
    counts = {"expected": {"team": dict.fromkeys(TEAMS, 5)}}
    bars = show_labels(counts, lambda *_: None).charts[0]["bars"]
    assert [bar["colour"] for bar in bars if bar["name"] == "shipping"] == [own]
    points = MapPoints(map="m", index=[0], x=[0.0], y=[0.0], is_evaluation=[False], text=["a"])
    values = MapValues(
        map="m",
        decision="team",
        outcomes=list(TEAMS),
        expected=[1],
        answered=None,
        is_right=None,
        confidence=None,
    )
    coloured = colour("label", points, values)
    assert coloured.colors[coloured.codes[0]] == SERIES[place]
    assert len(set(outcome_places(map(str, range(8))).values())) == 8


def test_the_beam_says_its_difference_and_keeps_it_within():
    drawn = beam(0.2, 0.12, 0.28, "good")
    assert 'aria-label="+20 points, between +12 and +28"' in drawn
    assert all(0 <= float(at) <= 100 for at in re.findall(r"left:([-\d.]+)%", drawn))
