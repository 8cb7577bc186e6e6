"""Colours, in pairs for light and dark; nothing is told by colour alone.

The qualitative colours are those of Okabe and Ito (2008), which people with any common colour
vision tell apart. The pairs of statuses have a contrast of 4.5 to 1 or more against the paper of
their theme (WCAG 2.2, 1.4.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["good", "bad", "unsure", "running", "off"]


@dataclass(frozen=True, slots=True)
class Shade:
    """A colour in the light and in the dark theme, as hex."""

    light: str
    dark: str

    def of(self, theme: str) -> str:
        """Give the one of a theme, ``default`` or ``dark``."""
        return self.dark if theme == "dark" else self.light


STATUS: dict[Status, Shade] = {
    "good": Shade("#00664b", "#4dd6a8"),
    "bad": Shade("#a63c00", "#ff9d66"),
    "unsure": Shade("#6b5900", "#e6c84f"),
    "running": Shade("#00599c", "#6cc4f5"),
    "off": Shade("#5c5c5c", "#b3b3b3"),
}

BLUE, ORANGE, GREEN, YELLOW = "#0072b2", "#d55e00", "#009e73", "#e69f00"
SKY, PURPLE, GREY = "#56b4e9", "#cc79a7", "#888888"
#: Series in the order in which they are given colours.
SERIES = (BLUE, ORANGE, GREEN, PURPLE, SKY, YELLOW)

#: The bar at the top is dark in both themes: its words are white.
_BAR = {"MuiAppBar": {"styleOverrides": {"root": {"backgroundColor": "#004a73", "color": "#fff"}}}}

THEME_CONFIG = {
    "light": {
        "palette": {"primary": {"main": "#005a8c"}, "secondary": {"main": "#a63c00"}},
        "components": _BAR,
    },
    "dark": {
        "palette": {"primary": {"main": "#6cc4f5"}, "secondary": {"main": "#ff9d66"}},
        "components": _BAR,
    },
}
