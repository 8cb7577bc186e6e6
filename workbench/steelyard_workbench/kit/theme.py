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

#: The one scale of sizes: 24 pixels for titles, 17 for headings, 14 for text and tables, 12 for what
#: stands beside text. In rem, of which the page makes 14 pixels where the browser's own size is 16.
TITLE, HEADING, TEXT, SMALL = "1.714rem", "1.214rem", "1rem", "0.857rem"
#: Width of running text that reads well, and of a page on a wide screen.
READING_WIDTH, PAGE_WIDTH = "75ch", 1280
_TYPOGRAPHY = {
    "h1": {"fontSize": TITLE, "fontWeight": 600},
    "h2": {"fontSize": HEADING, "fontWeight": 600},
    "h3": {"fontSize": HEADING, "fontWeight": 600},
    "body1": {"fontSize": TEXT},
    "body2": {"fontSize": TEXT},
    "button": {"fontSize": TEXT},
    "caption": {"fontSize": SMALL},
}


#: Of tables: lines alone, and on a phone a card for each row, with the names of its columns.
TABLE_CSS = f"""
table {{ border-collapse: collapse; width: 100%; font-size: {TEXT}; }}
th, td {{
  text-align: left; vertical-align: top; padding: 0.35em 0.8em 0.35em 0;
  border-bottom: 1px solid rgba(128, 128, 128, 0.3);
}}
.number {{ text-align: right; font-variant-numeric: tabular-nums; }}
.long {{ overflow-wrap: anywhere; }}
@media (max-width: 599px) {{
  table.cards thead {{ position: absolute; clip-path: inset(50%); height: 1px; overflow: hidden; }}
  table.cards tr {{
    display: block; margin-bottom: 10px; padding: 6px 10px;
    border: 1px solid rgba(128, 128, 128, 0.4); border-radius: 6px;
  }}
  table.cards th, table.cards td {{
    display: block; text-align: left; border: 0; padding: 2px 0; overflow-wrap: anywhere;
  }}
  table.cards td:empty {{ display: none; }}
  table.cards td::before {{ content: attr(data-label) ": "; opacity: 0.75; }}
}}
"""

#: Of buttons in the bar at the top: quiet, in the colour of its words.
ON_BAR = {"&&": {"color": "inherit", "borderColor": "rgba(128,128,128,0.5)"}, **_AS_WRITTEN}


def _of_theme(paper: str, ink: str, muted: str) -> dict[str, object]:
    """Return what differs by theme: the slim bar at the top, grey buttons and what is said."""
    return {
        # What cannot be pressed now is read all the same: MUI's own grey has 2 to 1.
        "MuiButton": {
            "styleOverrides": {
                "root": {**_STILL, "&&.Mui-disabled": {"color": muted}},
                "sizeSmall": {"&&": {"fontSize": SMALL}},
            }
        },
        # Items of a menu are thinned out to a third otherwise.
        "MuiMenuItem": {
            "styleOverrides": {
                "root": {
                    "&.Mui-focusVisible": _INNER,
                    "&&.Mui-disabled": {"opacity": 1, "color": muted},
                }
            }
        },
        # What is said stands on the page, without a box: its icon and its words tell how it is.
        "MuiAlert": {
            "styleOverrides": {
                "root": {
                    "&&": {
                        "border": 0,
                        "padding": "2px 0",
                        "background": "none",
                        "color": "inherit",
                        "fontSize": TEXT,
                        "maxWidth": READING_WIDTH,
                    },
                    # But a message that comes and goes lies over the page.
                    ".notistack-SnackbarContainer &&&": {
                        "backgroundColor": paper,
                        "color": ink,
                        "padding": "4px 16px",
                        "boxShadow": "0 2px 8px rgba(0,0,0,0.4)",
                    },
                },
                "icon": {"&&": {"padding": "5px 0", "marginRight": "8px", "fontSize": "20px"}},
            }
        },
        "MuiAppBar": {
            "styleOverrides": {
                "root": {
                    "backgroundColor": paper,
                    "backgroundImage": "none",
                    "color": ink,
                    "boxShadow": "none",
                    "borderBottom": "1px solid rgba(128,128,128,0.35)",
                    "&& :focus-visible": _INNER,
                }
            }
        },
        # The bar, and the room that is kept for it above the page.
        "MuiToolbar": {"styleOverrides": {"root": {"&&": {"minHeight": "48px"}}}},
    }


_COMPONENTS = {
    # The label above a field, and the gap in its frame, which is as wide as the text of both.
    "MuiInputLabel": {
        "styleOverrides": {
            "outlined": {
                "&&.MuiInputLabel-shrink": {
                    "fontSize": SMALL,
                    "transform": "translate(14px, -8px)",
                    "maxWidth": "calc(100% - 28px)",
                }
            }
        }
    },
    "MuiOutlinedInput": {
        "styleOverrides": {
            "notchedOutline": {"&& legend": {"fontSize": SMALL}},
            # Small fields are of one height, whether text is written or chosen in them.
            "input": {"&&&.MuiInputBase-inputSizeSmall": {"paddingBlock": "8.5px"}},
        }
    },
    "MuiButtonBase": {"styleOverrides": {"root": {"&.Mui-focusVisible": _OUTLINE}}},
    "MuiListItemButton": {"styleOverrides": {"root": {"&.Mui-focusVisible": _INNER}}},
    "MuiTab": {"styleOverrides": {"root": {"&.Mui-focusVisible": _INNER, **_AS_WRITTEN, **_STILL}}},
    "MuiToggleButton": {
        "styleOverrides": {
            "root": {**_AS_WRITTEN, **_STILL},
            "sizeSmall": {"&&": {"fontSize": SMALL}},
        }
    },
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


def _palette(primary: str, secondary: str, muted: str) -> dict[str, object]:
    """Return the colours of a theme; fields that are disabled are read too: MUI's grey has 2.7 to 1."""
    return {
        "primary": {"main": primary},
        "secondary": {"main": secondary},
        "text": {"disabled": muted},
    }


THEME_CONFIG = {
    "light": {
        "palette": _palette("#005a8c", "#a63c00", STATUS["off"].light),
        "typography": _TYPOGRAPHY,
        "components": {**_COMPONENTS, **_of_theme("#ffffff", "#1b1b1b", STATUS["off"].light)},
    },
    "dark": {
        "palette": _palette("#6cc4f5", "#ff9d66", STATUS["off"].dark),
        "typography": _TYPOGRAPHY,
        "components": {**_COMPONENTS, **_of_theme("#121212", "#eeeeee", STATUS["off"].dark)},
    },
}
