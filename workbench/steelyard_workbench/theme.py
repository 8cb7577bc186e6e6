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
        """Return the one of a theme, ``default`` or ``dark``."""
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

#: The outline of what has the focus: 3 to 1 or more against the paper of both themes (1.4.11).
FOCUS = "#0a84c6"
_OUTLINE = {"outline": f"3px solid {FOCUS}", "outlineOffset": "2px"}
_INNER = {**_OUTLINE, "outlineOffset": "-3px"}
#: Labels stand as they are written, on one line.
_AS_WRITTEN = {"textTransform": "none", "whiteSpace": "nowrap"}
#: Colours change at once for whoever wants less motion.
_STILL = {"@media (prefers-reduced-motion: reduce)": {"transition": "none"}}

#: Of what stands in the bar at the top, which is darker than that.
ON_BAR = {"&.Mui-focusVisible": {"outline": "3px solid #fff", "outlineOffset": "-3px"}}

#: The bar at the top is dark in both themes: its words are white.
_COMPONENTS = {
    "MuiAppBar": {
        "styleOverrides": {
            "root": {
                "backgroundColor": "#004a73",
                "color": "#fff",
                "&& :focus-visible": {"outline": "3px solid #fff", "outlineOffset": "-3px"},
            }
        }
    },
    "MuiButtonBase": {"styleOverrides": {"root": {"&.Mui-focusVisible": _OUTLINE}}},
    "MuiListItemButton": {"styleOverrides": {"root": {"&.Mui-focusVisible": _INNER}}},
    "MuiMenuItem": {"styleOverrides": {"root": {"&.Mui-focusVisible": _INNER}}},
    "MuiTab": {"styleOverrides": {"root": {"&.Mui-focusVisible": _INNER, **_AS_WRITTEN, **_STILL}}},
    "MuiToggleButton": {"styleOverrides": {"root": {**_AS_WRITTEN, **_STILL}}},
    "MuiButton": {"styleOverrides": {"root": _STILL}},
    # Panel-material-ui gives code a light blue of 2.3 to 1 on white.
    "MuiTypography": {"styleOverrides": {"root": {"&& code": {"color": "inherit"}}}},
    # A dialog that is scrolled takes the focus itself.
    "MuiDialog": {"styleOverrides": {"paper": {"&:focus-visible": _INNER}}},
    "MuiSwitch": {
        "styleOverrides": {"root": {"&:has(input:focus-visible)": _INNER}},
    },
    "MuiCheckbox": {"styleOverrides": {"root": {"&:has(input:focus-visible)": _INNER}}},
    "MuiRadio": {"styleOverrides": {"root": {"&:has(input:focus-visible)": _INNER}}},
}

THEME_CONFIG = {
    "light": {
        "palette": {"primary": {"main": "#005a8c"}, "secondary": {"main": "#a63c00"}},
        "components": _COMPONENTS,
    },
    "dark": {
        "palette": {"primary": {"main": "#6cc4f5"}, "secondary": {"main": "#ff9d66"}},
        "components": _COMPONENTS,
    },
}
